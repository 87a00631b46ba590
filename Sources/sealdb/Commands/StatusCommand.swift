import ArgumentParser
import Foundation
import SealedDB
import Synchronization

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tell how far a batch is, or what is due for stores: rotation, verification, backup.",
        discussion: """
            Of a journal: exit 0 when every store is done, and 2 when something is left. No key is needed and no store \
            is opened: a run asks the stores themselves, and may find one done that the journal calls interrupted. A \
            journal that another user could have written is refused (exit 78).

              sealdb status sealdb-rotate.journal

            Of stores: those that are named, or with --all those on disk that sections of the configuration are for (see: \
            sealdb config). Each is opened with its key, and only read. Exit 0 if nothing is due, 1 if something is, 2 if \
            a store cannot be opened, a section names a store that is missing, or a place cannot be searched for stores. A \
            link that matches a pattern, and leads to what none of its stores is, counts as such a place.

              sealdb status --all
              sealdb status --stores app.db other.db --key-ring app.ring --json
              sealdb status --all \\
                  --prometheus /var/lib/prometheus/node-exporter/sealdb.prom

            A rotation is due if the active key of the ring is another one, or the key is older than rotate-after says; \
            the others if verify-after or backup-after says so. Times come from the state-directory of the configuration, \
            where create, encrypt, rotate, verify and backup note what they have done; what has no note is due, and so is what \
            has a time that is still to come. A note counts only for the file that it is about, and that of a backup only \
            while the backup is there. Where none tells since when a store has its key, the time of the key file tells how old \
            it is at least.
            """
    )

    @Argument(help: "The journal of a batch.", completion: .file())
    var journal: String?

    @Flag(help: "All stores on disk that the configuration is for.")
    var all = false

    @Option(parsing: .upToNextOption, help: ArgumentHelp("These stores.", valueName: "store"), completion: .file())
    var stores: [String] = []

    @Option(
        help: ArgumentHelp(
            "Write the state of the stores for Prometheus into this file, in one step, with mode 0644.",
            discussion: "It is a text file for the textfile collector of the node exporter, and holds no key.",
            valueName: "file"
        ),
        completion: .file()
    )
    var prometheus: String?

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of stores that have other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    @OptionGroup
    var batchOptions: BatchOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        guard [journal != nil, all, !stores.isEmpty].count(where: { $0 }) == 1 else {
            throw ValidationError("Give a journal, --all, or --stores.")
        }
        guard journal == nil || prometheus == nil else {
            throw ValidationError("--prometheus goes with --all or --stores.")
        }
        try keyOptions.choice.validate(isRequired: !stores.isEmpty)
    }

    func run() throws {
        if let journal { return try tell(of: journal) }
        reportOptions.begin()
        try Engine.requireEncryption()
        if let prometheus { _ = try PrometheusText.requireReplaceable(prometheus) }
        let file = try ConfigurationInUse.file()
        let (items, problems) = try items(file)
        for problem in problems { StandardError.message(problem) }
        let source = StoreStatusSource(
            choice: keyOptions.choice,
            keys: try keyOptions.choice.assignment(prompt: "Passphrase of the stores: ", confirm: false),
            ciphers: try cipherOptions.assignment(),
            configuration: file
        )
        let found = Mutex<[ExactText: StoreStatus]>([:])
        var batchOptions = batchOptions
        // What is known of the others must not depend on one that fails.
        batchOptions.givenContinueOnError = true
        let work = StoreWork(
            isSingle: false,
            batchOptions: batchOptions,
            progressOptions: progressOptions,
            reportOptions: reportOptions,
            doneText: "examined"
        ) { store, _ in
            let status = try source.status(of: store)
            found.withLock { $0[ExactText(store.identity)] = status }
            return StoreReport(
                text: .lines(["\(TerminalText.escaped(store.name)): \(status.text)"]),
                content: status,
                exitCode: status.due.isEmpty ? 0 : ExitStatus.different.rawValue
            )
        }
        let result = Result { try work.run(items) }
        if let prometheus, SignalWatch.exitStatus == nil {
            let known = found.withLock { $0 }
            let states = items.map { ($0.identity, known[ExactText($0.identity)]) }
            let former = try PrometheusText.requireReplaceable(prometheus)
            let text = PrometheusText(states, unseen: problems.count, time: Date()).text
            try ReplacedFile.write(Data(text.utf8), to: prometheus, mode: 0o644, replacing: former)
        }
        // A store that is not seen would not be missed. What is due of the others counts less.
        do {
            try result.get()
        } catch let code as ExitCode where !problems.isEmpty && code.rawValue == ExitStatus.different.rawValue {
            throw ExitCode(ExitStatus.partial.rawValue)
        }
        guard problems.isEmpty else { throw ExitCode(ExitStatus.partial.rawValue) }
    }

    /// - Returns: the stores, and what keeps others from being seen.
    private func items(_ file: ConfigurationFile?) throws -> (items: [StoreItem], problems: [String]) {
        guard all else {
            var known: Set<ExactText> = []
            let items = try stores.map { name in try StoreItem(name) }
            return (items.filter { known.insert(ExactText($0.identity)).inserted }, [])
        }
        guard let file else {
            throw Failure(.noInput, "No configuration says which stores there are. See: sealdb help config")
        }
        var problems: [String] = []
        let items = try file.storesOnDisk { problems.append($0) }.map(\.store)
        guard !items.isEmpty else {
            throw Failure(
                .noInput,
                problems.isEmpty
                    ? "No store on disk belongs to a section of \(file.path)."
                    : "No store can be found: \(problems.joined(separator: "; ")). Nothing was done."
            )
        }
        return (items, problems)
    }

    private func tell(of journal: String) throws {
        reportOptions.begin(journal)
        guard let state = try JournalFile.state(journal) else {
            throw Failure(.data, "\(journal) is empty: no batch was begun.")
        }
        let report = BatchStatus(state, journal: journal, isRunning: try JournalFile.isInUse(journal))
        let output = ResultOutput()
        if reportOptions.json {
            let exitCode = state.isComplete ? 0 : ExitStatus.partial.rawValue
            let path = StoreItem.identity(of: journal)
            let status = state.isComplete ? "done" : "partial"
            try output.writeJSON(ResultRecord(path: path, status: status, exitCode: exitCode, content: report))
        } else if !reportOptions.quiet || !state.isComplete {
            try output.write(report.text)
        }
        JSONReport.end()
        try output.flush()
        guard state.isComplete else { throw ExitCode(ExitStatus.partial.rawValue) }
    }
}
