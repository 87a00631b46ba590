import ArgumentParser
import SealedDB

struct KeygenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Write a new random key to a file.",
        discussion: """
            Writes 32 random bytes as 64 hex digits into a new file that only its owner may read (mode 0600). A file \
            that exists is never overwritten (exit 73). Keep a copy of the key: without it a store is lost.

              sealdb keygen app.key
            """
    )

    @Argument(help: "The key file to make.", completion: .file())
    var file: String

    func validate() throws {
        if file.isEmpty { throw ValidationError("The name of the key file is empty.") }
    }

    func run() throws {
        SignalWatch.start()
        try KeyFile.create(atPath: file)
        let output = StandardOutput()
        try output.write("\(TerminalText.escaped(file)): new key, mode 0600\n")
        try output.flush()
    }
}
