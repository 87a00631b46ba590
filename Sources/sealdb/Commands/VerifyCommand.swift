import ArgumentParser
import SealedDB

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every page and the structure of a store.",
        discussion: """
            Compares the authentication code of every page, the number of pages, and SQLite's structure. What is \
            wrong is listed, damaged pages by number (exit 65). With --deep, also every index, and the codes once more \
            without SQLCipher.

              sealdb verify app.db --key-file app.key
              sealdb verify app.db --key-file app.key --deep --progress always

            What nobody can tell: that a page was put back as it once was, by somebody who kept it.
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @Flag(help: "Check indexes too, and every page twice.")
    var deep = false

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let settings = try cipherOptions.settings
        let report = try keyOptions.withKey(of: store) { key in
            try progressOptions.watchingSignals {
                try IntegrityReport.verify(path: path, key: key, cipherSettings: settings, isDeep: deep, progress: $0)
            }
        }
        let output = StandardOutput()
        if json {
            try output.writeJSON(report)
        } else {
            for page in report.damagedPages { try output.write("page \(page): damaged\n") }
            for problem in report.structureProblems { try output.write(TerminalText.escaped(problem) + "\n") }
            if report.isSound {
                try output.write("\(TerminalText.escaped(store)): sound, \(report.pageCount) pages\n")
            }
        }
        try output.flush()
        guard report.isSound else {
            throw Failure(
                .data,
                "\(store) is damaged: \(report.damagedPages.count) of \(report.pageCount) pages, "
                    + "\(report.structureProblems.count) structure problems. Restore it from a backup."
            )
        }
    }
}
