import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system fails while a store is made, copied, replaced or looked at, all rows are there, under the key
/// that the error says.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct StoreCallTests {
    typealias Manner = CallSweep.Manner
    typealias Mode = Configuration.JournalMode

    private static let rows = 60

    /// Makes a store that is closed.
    static func make(_ directory: TemporaryDirectory, _ name: String = "db", key: UInt8? = 1, mode: Mode = .delete)
        throws
    {
        var configuration = Configuration(key: try key.map { try .testing($0) })
        configuration.journalMode = mode
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        try database.fill(rows: rows)
        try #require(database.close())
    }

    /// Demands that this key opens the store, and that all rows are there.
    static func requireRows(
        _ directory: TemporaryDirectory,
        _ name: String = "db",
        key: UInt8? = 1,
        pageSize: Int? = nil
    ) throws {
        var configuration = Configuration(key: try key.map { try .testing($0) })
        configuration.createsFile = false
        if let pageSize { configuration.cipherSettings = CipherSettings(pageSize: pageSize) }
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        defer { database.close() }
        try #require(
            try database.integers("SELECT count(DISTINCT body) FROM t WHERE body LIKE 'secret row %'") == [rows]
        )
    }

    private static func saysThatKeyIsNew(_ error: DatabaseError) -> Bool {
        error.message.hasPrefix("The store has the new key") || error.message.hasPrefix("The store now has the new")
    }

    // MARK: Rotation

    private func sweepOfRotation(_ mode: Mode, keepingOld suffix: String? = nil) -> CallSweep {
        CallSweep(
            prepare: { try Self.make($0, mode: mode) },
            run: {
                try KeyRotation(path: $0.file("db"), from: .testing(1), to: .testing(2), oldFileSuffix: suffix).run()
            },
            check: { directory, state in
                try Self.requireRows(directory, key: state == .done ? 2 : 1)
                guard state == .done, let suffix else { return }
                try Self.requireRows(directory, "db" + suffix, key: 1)
            },
            state: { Self.saysThatKeyIsNew($0) ? .done : .undone }
        )
    }

    @Test(arguments: [Manner.alone, .openSSL]) func rotation(_ manner: Manner) throws {
        try sweepOfRotation(.delete)(manner)
    }

    @Test(arguments: Manner.all) func rotationInWAL(_ manner: Manner) throws { try sweepOfRotation(.wal)(manner) }

    @Test func rotationThatKeepsTheOldFile() throws {
        try sweepOfRotation(.delete, keepingOld: ".old")(.alone)
    }

    @Test(arguments: Manner.all) func rekeyingInPlace(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0) },
            run: { directory in
                let opening = StoreOpening(path: directory.file("db"), key: try .testing(1))
                try InPlaceRekey(opening: opening, newKey: .testing(2)).run()
            },
            check: { directory, state in
                do {
                    try Self.requireRows(directory, key: state == .undone ? 1 : 2)
                } catch let error as DatabaseError {
                    guard state == .either, error.reason == .wrongKey else { throw error }
                    try Self.requireRows(directory, key: 1)
                }
            },
            state: { error in
                if error.message.hasPrefix("The store has the new key") { return .done }
                return error.message.hasPrefix("Rekeying ended") ? .either : .undone
            }
        )
        try sweep(manner)
    }

    // MARK: Conversion

    @Test(arguments: [Manner.alone, .openSSL]) func migration(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0) },
            run: {
                let migration = StoreMigration(
                    path: $0.file("db"),
                    key: try .testing(1),
                    from: .init(),
                    to: CipherSettings(pageSize: 8192)
                )
                _ = try migration.run()
            },
            check: { try Self.requireRows($0, pageSize: $1 == .done ? 8192 : 4096) },
            state: {
                $0.message.hasPrefix("The store has the new") || $0.message.hasPrefix("The store now has the new")
                    ? .done : .undone
            }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func encryption(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, key: nil) },
            run: {
                let (from, to) = ($0.file("db"), $0.file("new"))
                _ = try StoreEncryption(plaintextPath: from, path: to, key: .testing(1)).run()
            },
            check: { directory, state in
                try Self.requireRows(directory, key: nil)
                if state == .done {
                    try Self.requireRows(directory, "new")
                } else {
                    try #require(!directory.names.contains("new"))
                }
            },
            state: { $0.message.contains("is complete, but") ? .done : .undone }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func decryption(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0) },
            run: {
                let (from, to) = ($0.file("db"), $0.file("new"))
                _ = try StoreDecryption(path: from, key: .testing(1), plaintextPath: to).run()
            },
            check: { directory, state in
                try Self.requireRows(directory)
                if state == .done {
                    try Self.requireRows(directory, "new", key: nil)
                } else {
                    try #require(!directory.names.contains("new"))
                }
            },
            state: { $0.message.contains("is complete, but") ? .done : .undone }
        )
        try sweep(manner)
    }

    // MARK: Backup and restore

    @Test(arguments: [Manner.alone, .openSSL]) func backup(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, mode: .wal) },
            run: { try StoreBackup(path: $0.file("db"), key: .testing(1), to: $0.file("new")).run() },
            check: { directory, state in
                try Self.requireRows(directory)
                if state == .done {
                    try Self.requireRows(directory, "new")
                } else {
                    try #require(!directory.names.contains("new"))
                }
            },
            state: { $0.message.contains("is complete, but") ? .done : .undone }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func restoreToAFreeName(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, "backup") },
            run: { try StoreRestore(backupPath: $0.file("backup"), key: .testing(1), to: $0.file("db")).run() },
            check: { directory, state in
                try Self.requireRows(directory, "backup")
                if state == .done {
                    try Self.requireRows(directory)
                } else {
                    try #require(!directory.names.contains("db"))
                }
            },
            state: { $0.message.contains("is complete, but") ? .done : .undone }
        )
        try sweep(manner)
    }

    /// The store that is replaced has a log, or none.
    @Test(arguments: Manner.all, [Mode.delete, .wal]) func restoreOverAStore(_ manner: Manner, _ mode: Mode) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.make(directory, "backup")
                try Self.make(directory, key: 7, mode: mode)
                // As a killed process leaves it.
                if mode == .wal { try directory.write("db-wal", []) }
            },
            run: { try StoreRestore(backupPath: $0.file("backup"), key: .testing(1), to: $0.file("db")).run() },
            check: { directory, state in
                try Self.requireRows(directory, "backup")
                if state != .either { try Self.requireRows(directory, key: state == .done ? 1 : 7) }
                let kept = directory.names.filter { $0.contains(/^db\.replaced-[0-9a-f]+$/) }
                try #require(state == .undone || !kept.isEmpty)
                for name in kept where state != .undone {
                    // It has a second name if a call that failed could not remove that.
                    let copy = try directory.write("copy", directory.bytes(name))
                    try Self.requireRows(directory, "copy", key: 7)
                    unlink(copy)
                }
            },
            state: { error in
                if error.message.contains("the store is whole as") { return .either }
                return error.message.hasPrefix("The store now has the new") ? .done : .undone
            }
        )
        try sweep(manner)
    }

    // MARK: Use

    @Test(arguments: Manner.all) func creation(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { _ in },
            run: { directory in
                let database = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
                try database.openVerified()
                defer { database.close() }
                try database.fill(rows: Self.rows)
            },
            check: { if $1 == .done { try Self.requireRows($0) } },
            state: { $0.message.hasPrefix("The transaction may be stored") ? .either : .undone }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL], [Mode.delete, .wal]) func reading(_ manner: Manner, _ mode: Mode) throws
    {
        let sweep = CallSweep(
            prepare: { try Self.make($0, mode: mode) },
            run: { try Self.requireRows($0) },
            check: { directory, _ in try Self.requireRows(directory) }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func lookingAtAStore(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, mode: .wal) },
            run: { directory in
                let report = try IntegrityReport.verify(path: directory.file("db"), key: .testing(1))
                try #require(report.isSound)
                _ = try StoreInfo.inspect(path: directory.file("db"), key: .testing(1))
                _ = try StoreInfo.outside(path: directory.file("db"))
                _ = try StoreDiagnosis.examine(path: directory.file("db"), key: .testing(1))
            },
            check: { directory, _ in try Self.requireRows(directory) }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func attaching(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { directory in
                try Self.make(directory)
                try Self.make(directory, "other", key: 2)
            },
            run: { directory in
                let database = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
                try database.openVerified()
                defer { database.close() }
                try database.attach(directory.file("other"), as: "other", key: .testing(2))
                try #require(try database.integers("SELECT count(*) FROM other.t") == [Self.rows])
                try database.detach("other")
            },
            check: { directory, _ in
                try Self.requireRows(directory)
                try Self.requireRows(directory, "other", key: 2)
            }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL]) func images(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0) },
            run: { directory in
                let database = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
                try database.openVerified()
                defer { database.close() }
                let image = try database.serialized()
                let opened = try Database.opening(serialized: image, configuration: Configuration(key: try .testing(1)))
                defer { opened.close() }
                try #require(try opened.integers("SELECT count(*) FROM t") == [Self.rows])
            },
            check: { directory, _ in try Self.requireRows(directory) }
        )
        try sweep(manner)
    }

    /// The copy of a rotation in service is made while the store is in use.
    @Test(arguments: Manner.all) func rotationInService(_ manner: Manner) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, mode: .wal) },
            run: { directory in
                var configuration = Configuration(key: try .testing(1))
                // A lock that cannot be had is one that somebody else has, as long as the patience lasts.
                configuration.busyTimeout = .milliseconds(100)
                let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
                defer { queue.close() }
                do { try queue.rotateKey(to: .testing(2)) } catch let error as DatabaseError {
                    // Says what the state of the store is, whatever failed.
                    #expect(error.message.contains(/store (is|has|now)/), "\(error)")
                    throw error
                }
            },
            check: { try Self.requireRows($0, key: $1 == .done ? 2 : 1) },
            state: { $0.message.contains("has the new") ? .done : .undone }
        )
        try sweep(manner)
    }
}
