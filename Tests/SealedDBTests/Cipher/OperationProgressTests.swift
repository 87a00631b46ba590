import Foundation
import Testing

@testable import SealedDB

/// Every operation on a whole store moves in each of its phases, and can be stopped in each.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct OperationProgressTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 2000)
        // More than the cache of a connection holds.
        try database.executeUpdate("UPDATE t SET body = body || hex(zeroblob(1500))")
        database.close()
    }

    private struct Stop: Error {}

    enum Operation: CaseIterable {
        case verify, deepVerify, rotate, rotateQueue, backup, backupOfQueue, backupOfPlaintext, restore, encrypt,
            decrypt
        case migrate, recover
    }

    private func run(_ operation: Operation, _ progress: @escaping (KeyRotation.Progress) throws -> Void) throws {
        let store = directory.file("db")
        let new = directory.file("new")
        let key = try Key.testing(1)
        let other = try Key.testing(2)
        var configuration = Configuration(key: key)
        // Otherwise opening would change the file.
        configuration.journalMode = .delete
        switch operation {
        case .verify, .deepVerify:
            let isDeep = operation == .deepVerify
            #expect(try IntegrityReport.verify(path: store, key: key, isDeep: isDeep, progress: progress).isSound)
        case .rotate: try KeyRotation(path: store, from: key, to: other).run(progress: progress)
        case .rotateQueue:
            let queue = try DatabaseQueue(path: store, configuration: configuration)
            defer { queue.close() }
            try queue.rotateKey(to: other, progress: progress)
        case .backup: try StoreBackup(path: store, key: key, to: new).run(progress: progress)
        case .backupOfQueue:
            let queue = try DatabaseQueue(path: store, configuration: configuration)
            defer { queue.close() }
            try queue.backup(to: new, progress: progress)
        case .backupOfPlaintext:
            let queue = try DatabaseQueue(path: directory.file("plain"), configuration: Configuration())
            defer { queue.close() }
            // The progress of a backup must not end what the caller is asked.
            let calls = Guarded(0)
            queue.inDatabase { db in
                db.setProgressHandler(interval: 1000) {
                    calls.withLock { $0 += 1 }
                    return true
                }
            }
            defer {
                let before = calls.withLock { $0 }
                queue.inDatabase { db in #expect((try? db.integers("SELECT count(*) FROM t a, t b")) == [4_000_000]) }
                #expect(calls.withLock { $0 } > before)
            }
            try queue.backup(to: new, progress: progress)
        case .restore: try StoreRestore(backupPath: store, key: key, to: new).run(progress: progress)
        case .encrypt:
            try StoreEncryption(plaintextPath: directory.file("plain"), path: new, key: key).run(progress: progress)
        case .decrypt: try StoreDecryption(path: store, key: key, plaintextPath: new).run(progress: progress)
        case .migrate:
            try StoreMigration(path: store, key: key, to: CipherSettings(pageSize: 8192)).run(progress: progress)
        case .recover:
            _ = try StoreRecovery(path: store, key: key, to: new).run(progress: progress)
        }
    }

    /// Those that read rows write a plaintext file first.
    private func prepare(_ operation: Operation) throws {
        guard [.encrypt, .backupOfPlaintext].contains(operation) else { return }
        try StoreDecryption(
            path: directory.file("db"),
            key: .testing(1),
            plaintextPath: directory.file("plain")
        ).run()
    }

    private func restore(_ bytes: Data) throws {
        if FileManager.default.fileExists(atPath: directory.file("new")) {
            try FileManager.default.removeItem(atPath: directory.file("new"))
        }
        try directory.write("db", bytes)
    }

    @Test(arguments: Operation.allCases)
    func everyPhaseMovesAndCanBeStopped(operation: Operation) throws {
        try prepare(operation)
        let names = directory.namesOfFiles
        let before = try directory.bytes("db")

        var calls: [KeyRotation.Progress.Phase: Int] = [:]
        try run(operation) { state in calls[state.phase, default: 0] += 1 }
        try restore(before)
        // Stopped where each phase begins, and where it has come further.
        for (phase, count) in calls {
            for place in Set([1, (count + 1) / 2]) {
                var seen = 0
                let stop = { (state: KeyRotation.Progress) in
                    guard state.phase == phase else { return }
                    seen += 1
                    if seen >= place { throw Stop() }
                }
                do {
                    try run(operation, stop)
                    // How often threads are asked differs from run to run.
                    #expect(seen < place, "\(phase) \(place)")
                } catch let error as DatabaseError {
                    #expect(error.reason == .interrupted && error.underlyingError is Stop, "\(error)")
                    #expect(directory.namesOfFiles == names, "\(phase) \(place)")
                    #expect(try directory.bytes("db") == before, "\(phase) \(place)")
                }
                try restore(before)
            }
        }
        let expected: Set<KeyRotation.Progress.Phase> =
            switch operation {
            case .verify, .deepVerify: [.verify, .structure]
            case .rotate, .rotateQueue: [.copy, .verify, .sync, .swap]
            case .backup, .backupOfQueue: [.copy, .verify, .sync, .swap]
            case .backupOfPlaintext: [.copy, .structure, .compare, .sync, .swap]
            case .restore: [.verify, .structure, .copy, .sync, .swap]
            case .encrypt, .migrate, .recover: [.copy, .verify, .structure, .compare, .sync, .swap]
            case .decrypt: [.copy, .structure, .compare, .sync, .swap]
            }
        #expect(Set(calls.keys) == expected)
    }

    @Test(arguments: Operation.allCases)
    func theFractionGrows(operation: Operation) throws {
        try prepare(operation)
        var last = 0.0
        var inPhase: [KeyRotation.Progress.Phase: Set<Double>] = [:]
        try run(operation) { state in
            #expect(state.fractionCompleted >= last && state.fractionCompleted <= 1, "\(state) after \(last)")
            #expect(state.completedPages >= 0 && state.completedPages <= state.totalPages, "\(state)")
            last = state.fractionCompleted
            inPhase[state.phase, default: []].insert(last)
        }
        if let steps = inPhase[.structure] { #expect(steps.count > 2) }
        // It begins with the check of the structure, and may be over before that.
        if let steps = inPhase[.compare] { #expect(steps.count > 1) }
        if ![.verify, .deepVerify].contains(operation) { #expect(last > 0.95) }
    }
}
