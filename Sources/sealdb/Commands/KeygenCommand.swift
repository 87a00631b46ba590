import ArgumentParser
import Foundation
import SealedDB

struct KeygenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Write a new random key to a file.",
        discussion: """
            Writes 32 random bytes as 64 hex digits into a new file that only its owner may read (mode 0600). A file \
            that exists is never overwritten (exit 73). Keep a copy of the key: without it a store is lost. With - the \
            key goes to standard output, for a program that keeps it; a terminal does not get it.

              sealdb keygen app.key
              sealdb keygen - | systemd-creds encrypt --name=app.key - app.cred
            """
    )

    @Argument(help: "The key file to make, or - for standard output.", completion: .file())
    var file: String

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        if file == "-" { try reportOptions.requireNoJSON() }
        if file.isEmpty { throw ValidationError("The name of the key file is empty.") }
    }

    func run() throws {
        SignalWatch.start()
        if file == "-" {
            guard !ResultOutput.isTerminal else {
                throw Failure(.usage, "Standard output is a terminal, which would show the key. No key was made.")
            }
            try KeyFile.write(toDescriptor: STDOUT_FILENO)
            return
        }
        reportOptions.begin(file)
        try KeyFile.create(atPath: file)
        try reportOptions.report("\(TerminalText.escaped(file)): new key, mode 0600\n")
    }
}
