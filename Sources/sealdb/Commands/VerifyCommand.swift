import ArgumentParser
import SealedDB

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every page and the structure of a store.",
        discussion: """
            Compares the authentication code of every page, the number of pages, and SQLite's structure. What is \
            wrong is listed, damaged pages by number (exit 65). A damaged first page looks like a wrong key (exit 77).

              sealdb verify app.db --key-file app.key
            """
    )

    @Argument(help: "The store.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let report = try keyOptions.withKey(of: store) { try IntegrityReport.verify(path: path, key: $0) }
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
