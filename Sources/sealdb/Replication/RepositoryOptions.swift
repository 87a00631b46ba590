import ArgumentParser
import SealedDB

/// What "restore" takes from a repository, and which moment.
struct RepositoryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Restore from a repository of "replicate", a directory or s3://BUCKET/PREFIX: then the only argument is the \
            store, and no key is needed.
            """,
            valueName: "repository"
        ),
        completion: .directory
    )
    var from: String?

    @Option(
        help: ArgumentHelp(
            "With --from: the last commit that was shipped by then, such as 2026-11-25T18:04:00Z.",
            valueName: "time"
        )
    )
    var at: String?

    @Option(help: ArgumentHelp("With --from: the last commit of this generation.", valueName: "number"))
    var generation: Int64?

    @OptionGroup(title: "Reaching the repository")
    var objectStoreOptions: ObjectStoreOptions

    /// - Parameter hasTwo: whether both a backup and a store are named.
    func validate(hasTwo: Bool, hasKey: String?) throws {
        try objectStoreOptions.validate(for: from)
        guard let from else {
            if at != nil { throw ValidationError("--at is for --from.") }
            if generation != nil { throw ValidationError("--generation is for --from.") }
            if !hasTwo { throw ValidationError("Give the backup and the store, or --from and the store.") }
            return
        }
        if from.isEmpty { throw ValidationError("The name of the repository is empty.") }
        if hasTwo { throw ValidationError("With --from give the store alone.") }
        if at != nil, generation != nil { throw ValidationError("--at and --generation exclude each other.") }
        if let hasKey {
            throw ValidationError("--from needs no key: leave \(hasKey) to \"sealdb verify\".")
        }
        if let at, RepositoryTime(at) == nil {
            throw ValidationError("--at takes a date and time with its zone, such as 2026-11-25T18:04:00Z or …+01:00.")
        }
    }

    var moment: RepositoryMoment {
        if let generation { return .generation(generation) }
        if let time = at.flatMap(RepositoryTime.init) { return .time(time) }
        return .newest
    }

    /// The members of the JSON object.
    private struct Restored: Encodable, Sendable {
        let report: RepositoryRestore.Report

        private enum Names: String, CodingKey {
            case pageCount, replacedPath, generation, commitCount, restoredTo, hasSlots, remarks
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Names.self)
            try container.encode(report.pageCount, forKey: .pageCount)
            try container.encode(report.replacedPath, forKey: .replacedPath)
            try container.encode(report.generation, forKey: .generation)
            try container.encode(report.commitCount, forKey: .commitCount)
            try container.encode(
                RepositoryTime(report.restoredTo).description,
                forKey: .restoredTo
            )
            try container.encode(report.hasSlots, forKey: .hasSlots)
            try container.encode(report.remarks, forKey: .remarks)
        }
    }

    func restore(
        _ repository: String,
        to path: String,
        replaces: Bool,
        _ forceOptions: ForceOptions,
        _ progressOptions: ProgressOptions,
        _ reportOptions: ReportOptions
    ) throws {
        let restore = RepositoryRestore(
            from: repository,
            access: objectStoreOptions.access,
            at: moment,
            to: path,
            replaces: replaces,
            ignoresUnseenUsers: forceOptions.force
        )
        let report = try progressOptions.watchingSignals { try restore.run(progress: $0) }
        for remark in report.remarks { StandardError.message(remark, .warning) }
        let name = TerminalText.escaped(path)
        let (pages, time) = (report.pageCount.counted("page"), RepositoryTime(report.restoredTo))
        var text = "\(name): restored \(pages), as of \(time), generation \(report.generation)"
        text += report.hasSlots ? ", with its key slots\n" : "\n"
        if let replaced = report.replacedPath {
            text += "The store that was there is now \(TerminalText.escaped(replaced))\n"
        }
        try reportOptions.report(text, Restored(report: report))
    }
}
