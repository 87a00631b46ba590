import ArgumentParser
import SealedDB

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every page and the structure of stores.",
        discussion: """
            Computes the authentication code of every page, without SQLCipher, and checks the number of pages and \
            SQLite's structure. What is wrong is listed, damaged pages by number (exit 65). With --deep, also every \
            index is compared with its table. With --pages-only, the codes and the number of pages are all that is \
            checked, which takes a fraction of the time: it finds whatever was changed without the key, and not what \
            was wrong when it was written. `sealdb status` does not count it as a verification.

              sealdb verify app.db --key-file app.key
              sealdb verify app.db --key-file app.key --deep --progress always
              sealdb verify app.db --key-file app.key --pages-only
              sealdb verify --key-map keys.tsv --jobs 4 --continue-on-error

            What nobody can tell: that a page was put back as it once was, by somebody who kept it.
            """
    )

    @OptionGroup
    var list: StoreListOptions

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Key")
    var keyTable: KeyTableOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @Flag(help: "Compare indexes with their tables too.")
    var deep = false

    @Flag(help: "Check the codes of the pages, and not the structure.")
    var pagesOnly = false

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try keyTable.validate(with: keyOptions.choice)
        if deep, pagesOnly { throw ValidationError("--deep is about the structure, which --pages-only leaves out.") }
    }

    func run() throws {
        reportOptions.begin()
        let map = try keyTable.map()
        let stores = try list.items(or: map?.entries.map(\.path) ?? [])
        if list.isSingle { reportOptions.begin(stores[0].path) }
        let keys = try keyTable.assignment(keyOptions.choice, map, stores)
        let ciphers = try cipherOptions.assignment()
        let work = StoreWork(
            isSingle: list.isSingle,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: "sound"
        ) { [deep, pagesOnly] store, progress in
            // Should another file take its place meanwhile, the record is not about that.
            let mark = try? StoreMark(path: store.path)
            let report = try keys.withKey(of: store) { key, _ in
                if pagesOnly {
                    return try IntegrityReport.verifyPages(
                        path: store.path,
                        key: key,
                        cipherSettings: ciphers.settings(of: store),
                        progress: progress
                    )
                }
                return try IntegrityReport.verify(
                    path: store.path,
                    key: key,
                    cipherSettings: ciphers.settings(of: store),
                    isDeep: deep,
                    progress: progress
                )
            }
            if !pagesOnly {
                let isDeep = deep && report.tablesNotCompared.isEmpty
                StoreRecords.note(.verification, of: store.path, .init(mark, isSound: report.isSound, isDeep: isDeep))
            }
            return VerifyCommand.report(report, of: store)
        }
        try work.run(stores)
    }

    /// The members of the JSON object.
    private struct Content: Encodable, Sendable {
        let report: IntegrityReport
        let slots: SlotRemarks?

        private enum Names: String, CodingKey { case slotProblems, hasRecoverySlot }

        func encode(to encoder: any Encoder) throws {
            try report.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            try container.encodeIfPresent(slots?.problems, forKey: .slotProblems)
            try container.encodeIfPresent(slots?.hasRecovery, forKey: .hasRecoverySlot)
        }
    }

    /// What is said of free pages that are not as they were written.
    private static func freePages(_ report: IntegrityReport) -> [String] {
        guard let first = report.damagedFreePages.first else { return [] }
        let count = report.damagedFreePages.count.counted("free page")
        return [
            "\(count) not as written, the first is page \(first): a power failure may leave them. By the list of free pages "
                + "they hold nothing; a rotation writes them anew."
        ]
    }

    private static func report(_ report: IntegrityReport, of store: StoreItem) -> StoreReport {
        let slots = SlotRemarks(store.path)
        let verdict =
            !report.isStructureChecked
            ? "every page is as it was written; the structure was not checked"
            : report.isAuthenticated
                ? "sound" : "not authenticated, so that changes cannot be found out; the structure holds"
        let lines =
            report.isSound
            ? ["\(TerminalText.escaped(store.name)): \(verdict), \(report.pageCount.counted("page"))"]
            : report.damagedPages.map { "page \($0): damaged" }
                + report.structureProblems.map { TerminalText.escaped($0) }
        let remarks =
            report.tablesNotCompared.map {
                "table \(TerminalText.escaped($0)): not compared with its indexes: the schema names a collation, function "
                    + "or tokenizer that only its own program has, or it is full text without contents"
            } + freePages(report) + (slots?.lines(store.name) ?? [])
        let problemsOfDamage = report.structureProblems.count - (report.hasUncountedPages ? 1 : 0)
        let isDamaged = !report.damagedPages.isEmpty || problemsOfDamage > 0
        let failure = Failure(
            .data,
            isDamaged
                ? "\(store.name) is damaged: \(report.damagedPages.count) of \(report.pageCount.counted("page")), "
                    + "\(report.structureProblems.count.counted("structure problem")). Restore it from a backup. Without one, "
                    + "`sealdb recover` saves what can be read into a new store."
                : "\(store.name) may lack what was stored last; what it has is sound. "
                    + IntegrityReport.remedyForUncountedPages
        )
        return StoreReport(
            text: .lines(lines + remarks),
            content: Content(report: report, slots: slots),
            failure: report.isSound ? nil : failure
        )
    }
}
