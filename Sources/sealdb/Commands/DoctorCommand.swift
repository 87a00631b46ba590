import ArgumentParser
import SealedDB

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this installation: versions, the cipher, limits.",
        discussion: """
            Makes the checks that also precede every use of a key: that the SQLite library in the process is a \
            SQLCipher that sealdb can use, of one piece and not too old. Exit 78 if one fails.

              sealdb doctor
            """
    )

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() throws {
        let engine = EngineInfo.current()
        let output = ResultOutput()
        if json {
            let failed = engine.checks.filter { !$0.passed }
            let status = failed.isEmpty ? "done" : "failed"
            let exitCode = failed.isEmpty ? 0 : ExitStatus.configuration.rawValue
            try output.writeJSON(ResultRecord(path: nil, status: status, exitCode: exitCode, content: engine))
        } else {
            try output.write(FieldList(rows(engine)).text)
        }
        try output.flush()
        let failed = engine.checks.filter { !$0.passed }
        guard failed.isEmpty else {
            throw Failure(
                .configuration,
                "Failed: \(failed.map(\.name).joined(separator: ", ")). Keys are refused until this is mended. Keep "
                    + "libsqlite3 out of LD_PRELOAD, and install libsqlcipher 4.5 or later."
            )
        }
    }

    private func rows(_ engine: EngineInfo) -> [(String, String)] {
        var rows = [
            ("sealdb", EngineInfo.version),
            ("SQLite", "\(engine.sqliteVersion) (\(engine.sourceID))"),
        ]
        // The plain build has no checks.
        if !engine.checks.isEmpty {
            rows.append(("SQLCipher", engine.cipherVersion ?? "no answer"))
            let provider = [engine.cipherProvider, engine.cipherProviderVersion].compactMap(\.self)
            rows.append(("provider", provider.isEmpty ? "no answer" : provider.joined(separator: ", ")))
        } else {
            rows.append(("SQLCipher", "none: this build has no encryption (trait PlainSQLite)"))
        }
        rows.append(("compiled with", engine.compileOptions.joined(separator: " ")))
        for check in engine.checks {
            rows.append(("check", "\(check.passed ? "ok" : "FAILED"), \(check.name): \(check.detail)"))
        }
        if !engine.checks.isEmpty {
            rows.append(("damaged pages", damagedPages(engine)))
            rows.append(("page contexts", pageContexts(engine)))
        }
        rows.append(("memory lock", memoryLock(engine.memoryLockLimit)))
        return rows
    }

    private func damagedPages(_ engine: EngineInfo) -> String {
        guard !engine.noticesDamagedPages else { return "every one that is read is an error" }
        return """
            the last one that a statement reads can pass for zeros, because \(engine.damagedPagesDetail ?? "it is unknown"); \
            copies and `sealdb verify` look for themselves
            """
    }

    private func pageContexts(_ engine: EngineInfo) -> String {
        guard !engine.keepsPageContexts else { return "kept by each connection" }
        return "made anew for each page, because \(engine.pageContextsDetail ?? "nothing is known of them")"
    }

    private func memoryLock(_ limit: Int64?) -> String {
        guard let limit else { return "unlimited" }
        // SQLCipher's private heap and a few keys need about this much.
        let isScarce = limit < 64 * 1024
        return ByteText.size(limit) + (isScarce ? ": keys may be swapped out; raise it with ulimit -l" : "")
    }
}
