import ArgumentParser
import SealedDB

struct RecoverCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recover",
        abstract: "Save what can still be read of a damaged store into a new one.",
        discussion: """
            Every page that is as it was written under the key is used, also behind damaged ones. Nobody may have the \
            store open (exit 75), and it is only read. Tables come back with their row ids; indexes, views and triggers \
            are made anew. Rows to which nothing leads any more, or that do not fit their table, go to the table \
            lost_and_found, as in SQLite's shell: their page, number of values, row id and values. Some of them may have \
            been deleted before, or be entries of indexes.

              sealdb recover broken.db saved.db --key-file app.key
              sealdb query saved.db 'SELECT * FROM lost_and_found' --key-file app.key

            Where the first 16 bytes of the file are damaged, and neither log nor journal has them, take those of an older \
            copy of the file: --salt $(xxd -p -l 16 COPY).

            The report says what was saved of each table, and what is missing; exit 0 if nothing is, else 2. If there is \
            a backup, restore that, and compare it with what was saved: sealdb diff.
            """
    )

    @Argument(help: "The damaged store.", completion: .file())
    var store: String

    @Argument(help: "The store to make.", completion: .file())
    var recovered: String

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Key of the new store; without any of these the old one's")
    var newKeyOptions: NewKeyOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's, and so will the new one")
    var cipherOptions: CipherOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        try newKeyOptions.choice.validate(isRequired: false)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        guard !PipedFile.isMeant(by: recovered) else {
            throw Failure(.usage, "A recovered store cannot go to standard output. Name a file.")
        }
        let newPath = try Store.literalPath(recovered)
        reportOptions.begin(path)
        try Store.requireAbsent(newPath)
        let newKey =
            newKeyOptions.choice.isGiven
            ? try newKeyOptions.choice.key(
                prompt: "New passphrase of \(TerminalText.escaped(newPath)): ",
                confirm: true
            )
            : nil
        var settings = try cipherOptions.settings(of: path)
        var salt: [UInt8]?
        // Only a store with a plaintext header has its salt in the settings.
        if settings.plaintextHeaderSize == 0 { swap(&salt, &settings.salt) }
        let report = try keyOptions.withKey(of: store) { [settings, salt] key in
            let recovery = StoreRecovery(
                path: path,
                key: key,
                cipherSettings: settings,
                salt: salt,
                to: newPath,
                newKey: newKey
            )
            return try progressOptions.watchingSignals { try recovery.run(progress: $0) }
        }
        let failure =
            report.isComplete
            ? nil
            : Failure(
                .partial,
                "\(recovered) has what could be read; see above for what is missing. \(store) is unchanged."
            )
        try reportOptions.report(RecoverCommand.text(report, settings.remarkOnAuthentication), report, failure: failure)
    }

    private static func text(_ report: StoreRecovery.Report, _ remark: String) -> String {
        var text = ""
        for table in report.tables {
            text += "\(TerminalText.escaped(table.name)): \(count(table.rowCount, "row"))"
            if table.brokenRowCount > 0 { text += ", \(count(table.brokenRowCount, "row")) not whole" }
            if !table.lostPages.isEmpty {
                let pages = table.lostPages.prefix(10).map(String.init).joined(separator: ", ")
                let rest = table.lostPages.count > 10 ? " and \(table.lostPages.count - 10) more" : ""
                text += ", missing below \(table.lostPages.count == 1 ? "page" : "pages") \(pages)\(rest)"
            }
            text += "\n"
        }
        if report.lostAndFoundCount > 0 { text += "lost_and_found: \(count(report.lostAndFoundCount, "row"))\n" }
        for problem in report.problems { text += TerminalText.escaped(problem) + "\n" }
        let pages = count(Int(report.pageCount), "page")
        return text + "\(report.damagedPages.count) of \(pages) damaged\(remark)\n"
    }

    private static func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
