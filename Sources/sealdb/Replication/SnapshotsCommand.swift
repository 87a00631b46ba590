import ArgumentParser
import Foundation
import SealedDB

struct SnapshotsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshots",
        abstract: "List what a repository of \"replicate\" holds, and check it.",
        discussion: """
            For each generation: why it began, when its last commit was shipped, and its snapshots, each with the moments \
            that can be had from it. What is damaged or missing is listed (exit 65).

              sealdb snapshots /mnt/backup/app
              sealdb snapshots /mnt/backup/app --verify
              sealdb snapshots s3://backups/app
              sealdb snapshots /mnt/backup/app --verify --key-file app.key

            With --verify, all digests, sizes and checksums are computed, which needs no key: it finds whatever was changed \
            by accident. With a key as well, the newest moment is restored in $TMPDIR, encrypted, and verified as by "sealdb \
            verify": it finds pages that were written without the key, but not those of another moment. Whoever can write to the repository may take away the end \
            of what was shipped, and nobody can tell: look at the time of the last commit.
            """
    )

    @Argument(help: "Directory of the repository, or s3://BUCKET/PREFIX.", completion: .directory)
    var repository: String

    @Flag(help: "Read everything, and check it.")
    var verify = false

    @OptionGroup(title: "Reaching the repository")
    var objectStoreOptions: ObjectStoreOptions

    @OptionGroup(title: "Key of the newest generation, for --verify")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings of a store that has other ones than SQLCipher 4's")
    var cipherOptions: CipherOptions

    @OptionGroup
    var progressOptions: ProgressOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    private var choice: KeyChoice { keyOptions.choice }

    func validate() throws {
        try choice.validate(isRequired: false)
        try objectStoreOptions.validate(for: repository)
        if !verify, let option = choice.given.first?.name, option.begins(with: "--") {
            throw ValidationError("\(option) is for --verify.")
        }
    }

    func run() throws {
        if repository.isEmpty { throw Failure(.usage, "The name of the repository is empty.") }
        reportOptions.begin(repository)
        let status = try progressOptions.watchingSignals {
            try RepositoryStatus.of(
                directory: repository,
                access: objectStoreOptions.access,
                verifies: verify,
                progress: $0
            )
        }
        var problems = status.problems
        var newest: IntegrityReport?
        if verify, choice.isGiven, problems.isEmpty, !status.generations.isEmpty {
            let report = try verifyNewest()
            newest = report
            if !report.isSound {
                problems += report.damagedPages.map { "page \($0) of the newest moment: damaged" }
                problems += report.structureProblems
            }
        }
        let failure = Failure(
            .data,
            "\(repository) is damaged: \(problems.count.counted("problem")). What is whole can be restored, as --generation or "
                + "--at name it."
        )
        try reportOptions.report(
            text(status, problems, newest),
            Content(status: status, problems: problems, newestPageCount: newest?.pageCount),
            failure: problems.isEmpty ? nil : failure,
            failureStatus: "failed"
        )
    }

    /// Restores the newest moment, and verifies it.
    private func verifyNewest() throws -> IntegrityReport {
        let file = PipedFile()
        defer { file.remove() }
        try file.prepare()
        let restore = RepositoryRestore(from: repository, access: objectStoreOptions.access, to: file.path)
        // Its parts may be damaged although they have the right digests: that is what is to be found out.
        _ = try progressOptions.watchingSignals { try restore.run(progress: $0) }
        let settings = try cipherOptions.settings(of: file.path)
        return try keyOptions.withKey(of: file.path) { key in
            try progressOptions.watchingSignals {
                try IntegrityReport.verify(path: file.path, key: key, cipherSettings: settings, progress: $0)
            }
        }
    }

    /// The members of the JSON object.
    private struct Content: Encodable, Sendable {
        let status: RepositoryStatus
        let problems: [String]
        /// The pages of the newest moment, if all of them were verified with the key.
        let newestPageCount: Int64?

        private enum Names: String, CodingKey { case problems, newestPageCount }

        func encode(to encoder: any Encoder) throws {
            try status.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            try container.encode(problems, forKey: .problems)
            try container.encodeIfPresent(newestPageCount, forKey: .newestPageCount)
        }
    }

    // MARK: Text

    private static let reasons: [String: String] = [
        "first": "the first one",
        "log-unseen": "the log had been begun anew unseen: what was committed in between is in the snapshot alone",
        "replaced": "another file had taken the store's place: what is older may need the key of then",
        "replaced-unseen":
            "another file had taken the store's place: what was last committed to the old one could not be read",
        "log-replaced": "the store's log or its index had been removed or replaced while the store was open",
        "overwritten": "something else than SQLite had written to the store while it was open",
        "rekeyed": "the store had been given another key in place: what is older needs the key of then",
        "damaged": "the generation before was not whole",
        "moved": "the store had another path before",
    ]

    private func text(_ status: RepositoryStatus, _ problems: [String], _ newest: IntegrityReport?) -> String {
        var lines: [String] = []
        for generation in status.generations {
            let reason = generation.begunBecause.flatMap { SnapshotsCommand.reasons[$0] } ?? "its beginning is not kept"
            // It is in the first snapshot, which may be damaged.
            let store = generation.store.isEmpty ? "" : " of \(TerminalText.escaped(generation.store))"
            lines.append("generation \(generation.number)\(store): \(reason)")
            for snapshot in generation.snapshots {
                let size = ByteText.size(snapshot.pageCount * Int64(snapshot.pageSize))
                lines.append("  snapshot \(time(snapshot.time)), \(size); moments until \(time(snapshot.until))")
            }
            lines += generation.gaps.map { "  not kept: \($0)" }
            let commits = "\(generation.commitCount.counted("commit")) in \(generation.segmentCount.counted("segment"))"
            let size = ByteText.size(generation.byteCount)
            let slots = generation.hasSlots ? ", with key slots" : ""
            let shipped = generation.shippedAt > 0 ? "; last shipped \(time(generation.shippedAt))" : ""
            lines.append("  \(commits), \(size)\(slots)\(shipped)")
        }
        if status.generations.isEmpty { lines.append("no snapshot yet") }
        lines.append("\(status.chunkCount.counted("chunk")) of snapshots, \(ByteText.size(status.chunkBytes))")
        lines += problems.map { TerminalText.escaped($0) }
        if problems.isEmpty, status.isVerified {
            var line = "all digests and checksums are right"
            if let newest { line += "; the newest moment, \(newest.pageCount.counted("page")), is sound under its key" }
            lines.append(line)
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func time(_ milliseconds: Int64) -> String { RepositoryTime(milliseconds: milliseconds).description }
}
