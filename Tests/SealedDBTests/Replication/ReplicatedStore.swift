import Foundation
import Testing

@testable import SealedDB

/// A repository of which calls fail, and that counts them.
final class TestStorage: RepositoryStorage {
    /// How a call fails.
    enum Failure: CaseIterable, Sendable {
        /// Nothing was done.
        case before
        /// It was done, and the caller does not know.
        case after
    }

    let base: any RepositoryStorage
    private(set) var callCount = 0
    /// Which calls fail, by their number from 0.
    var fails: (Int) -> Failure? = { _ in nil }
    /// Objects with this in their name are written, and the caller does not know.
    var failAfterWriting: String?
    /// The names that were written.
    private(set) var written: [String] = []
    /// The names that were removed.
    private(set) var removed: [String] = []
    /// The names that were read.
    var namesRead: [String] = []
    /// What lists say of what there is.
    var listed: ([StoredObject]) -> [StoredObject] = { $0 }

    init(_ directory: String) throws {
        base = try DirectoryStorage(directory, creates: true)
    }

    var name: String { base.name }

    static let error = DatabaseError(extendedCode: SQLITE_FULL, reason: .noSpace, message: "The repository is full.")

    private func call<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let failure = fails(callCount)
        callCount += 1
        if failure == .before { throw TestStorage.error }
        let result = try body()
        if failure == .after { throw TestStorage.error }
        return result
    }

    func objects(under part: String) throws(DatabaseError) -> [StoredObject] {
        try call { () throws(DatabaseError) in listed(try base.objects(under: part)) }
    }

    func read(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]? {
        try call { () throws(DatabaseError) in
            namesRead.append(name)
            return try base.read(name, limit: limit)
        }
    }

    /// Each object is a call. Those before the first that fails are written together.
    func write(_ objects: [NewObject]) throws(DatabaseError) -> [Bool] {
        var reached: [NewObject] = []
        var error: DatabaseError?
        for object in objects where error == nil {
            let failure = fails(callCount)
            callCount += 1
            if failure != .before {
                reached.append(object)
                written.append(object.name)
            }
            if failure != nil || failAfterWriting.map(object.name.contains) == true { error = TestStorage.error }
        }
        let isNew = try base.write(reached)
        if let error { throw error }
        return isNew
    }

    func makeDurable(_ names: [String]) throws(DatabaseError) {
        try call { () throws(DatabaseError) in try base.makeDurable(names) }
    }

    func replace(_ bytes: [UInt8], as name: String) throws(DatabaseError) {
        try call { () throws(DatabaseError) in
            written.append(name)
            try base.replace(bytes, as: name)
        }
    }

    func remove(_ name: String) throws(DatabaseError) {
        try call { () throws(DatabaseError) in
            removed.append(name)
            try base.remove(name)
        }
    }

    func lease(known mark: RepositoryMark?) throws(DatabaseError) -> Bool {
        try call { () throws(DatabaseError) in try base.lease(known: mark) }
    }

    func release() { base.release() }
}

/// A store whose commits are numbered, a repository that it is shipped to, and what the store was after each commit.
final class ReplicatedStore {
    let directory: TemporaryDirectory
    let path: String
    let repository: String
    var database: Database
    /// The byte that the key of each generation consists of.
    private(set) var key: UInt8 = 1
    private(set) var keys: [Int64: UInt8] = [:]
    /// What the store held after each commit; the first one made the tables.
    private(set) var states: [String] = []
    /// How many commits were reported as shipped.
    private(set) var shippedCount = 0
    /// Until when how many commits were reported as shipped.
    private(set) var reports: [(time: RepositoryTime, count: Int)] = []
    private(set) var replicator: Replicator?
    var storage: TestStorage
    var options = Replicator.Options()
    private var restoredCount = 0
    /// How many reports were of what the copy of the repository has, and the keys of its generations; `nil` without one.
    private var kept: (reports: Int, keys: [Int64: UInt8])?

    init(_ name: String = "app.db") throws {
        directory = try TemporaryDirectory()
        path = directory.file(name)
        repository = directory.file("repository")
        database = try Database.testing(path, journalMode: .wal)
        storage = try TestStorage(repository)
        options.segmentBytes = 40_000
        options.chunkPages = 4
        options.relievedAt = 60_000
        try commit("CREATE TABLE step (number INTEGER PRIMARY KEY); CREATE TABLE data (id INTEGER PRIMARY KEY, sum, x)")
    }

    /// Commits a numbered transaction.
    func commit(_ sql: String = "") throws {
        #expect(database.beginTransaction())
        if !sql.isEmpty { #expect(database.executeStatements(sql)) }
        try database.executeUpdate("INSERT INTO step (number) VALUES (?)", values: [states.count])
        #expect(database.commit())
        states.append(try ReplicatedStore.state(database))
    }

    /// The file of the newest moment, by a restore that nobody disturbs.
    func restoredBytes() throws -> Data {
        let target = directory.file("restored-whole.db")
        try RepositoryRestore(from: repository, to: target).run()
        defer { unlink(target) }
        return try Data(contentsOf: URL(fileURLWithPath: target))
    }

    /// Rows of some size.
    static func rows(_ count: Int, bytes: Int) -> String {
        """
        INSERT INTO data (sum, x) SELECT abs(random() % 1000000), randomblob(\(bytes)) FROM \
        (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count)) SELECT i FROM n);
        """
    }

    static func state(_ database: Database) throws -> String {
        let rows = try database.executeQuery(
            "SELECT (SELECT count(*) FROM step), (SELECT max(number) FROM step), count(*), total(sum), total(length(x)) "
                + "FROM data",
            values: nil
        )
        guard try rows.nextWithError() else { return "" }
        defer { rows.close() }
        return (0..<5).map { rows.string(forColumnIndex: $0) ?? "-" }.joined(separator: " ")
    }

    // MARK: Shipping

    @discardableResult
    func ship() throws -> Replicator.Report {
        if replicator == nil {
            replicator = try Replicator(path: path, key: .testing(key), storage: storage, options: options)
        }
        let count = states.count
        let report = try replicator!.ship()
        shippedCount = count
        keys[report.generation] = key
        reports.append((RepositoryTime(milliseconds: report.shippedAt), count))
        return report
    }

    /// Ends the shipper, as if it were killed: nothing is shipped any more.
    func killShipper() {
        replicator?.close()
        replicator = nil
    }

    /// Gives the store another key. Nobody has it open meanwhile.
    func rotate() throws {
        killShipper()
        try noteKey()
        database.close()
        let next = key + 1
        try KeyRotation(path: path, from: .testing(key), to: .testing(next)).run()
        key = next
        database = try Database.testing(path, key: key, journalMode: .wal)
    }

    /// Gives the store another key as others do it: in place, through the log, while a shipper may run.
    func rekeyInPlace(to next: UInt8) throws {
        try noteKey()
        database.close()
        func text(_ byte: UInt8) -> String { "\"x'\(String(repeating: "0\(byte)", count: 32))'\"" }
        let keys = "PRAGMA key = \(text(key)); PRAGMA rekey = \(text(next));"
        _ = try StockShell.run(path, keys + " SELECT count(*) FROM step;")
        key = next
        database = try Database.testing(path, key: key, journalMode: .wal)
    }

    /// Keeps the key of generations that no report tells of: a shipper that failed may have written some.
    private func noteKey() throws {
        for object in try storage.base.objects(under: ObjectName.generations) {
            let number = try #require(object.name.split(separator: "/").dropFirst().first.flatMap { Int64($0) })
            keys[number] = keys[number] ?? key
        }
    }

    // MARK: Another state of the repository

    /// Keeps what the repository has now.
    func keepCopy() throws {
        let copy = repository + "-copy"
        try? FileManager.default.removeItem(atPath: copy)
        try FileManager.default.copyItem(atPath: repository, toPath: copy)
        try noteKey()
        kept = (reports.count, keys)
    }

    /// Puts the copy in the place of the repository. What was shipped since is not there any more.
    /// - Parameter keepsDirectory: whether only what is in it is replaced.
    func putCopyBack(keepsDirectory: Bool = false) throws {
        guard let kept else { return }
        let files = FileManager.default
        if keepsDirectory {
            for name in try files.contentsOfDirectory(atPath: repository) {
                try files.removeItem(atPath: repository + "/" + name)
            }
            for name in try files.contentsOfDirectory(atPath: repository + "-copy") {
                try files.copyItem(atPath: "\(repository)-copy/\(name)", toPath: "\(repository)/\(name)")
            }
        } else {
            try files.removeItem(atPath: repository)
            try files.copyItem(atPath: repository + "-copy", toPath: repository)
        }
        keys = kept.keys
        reports.removeLast(reports.count - kept.reports)
        shippedCount = reports.last?.count ?? 0
    }

    // MARK: Restoring

    /// Restores a moment, and verifies it under the key that the store had then.
    /// - Returns: the number of commits that it holds, after which the store was just so.
    @discardableResult
    func restore(
        _ moment: RepositoryMoment = .newest,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> (commits: Int, report: RepositoryRestore.Report) {
        restoredCount += 1
        let target = directory.file("restored-\(restoredCount).db")
        let report = try RepositoryRestore(from: repository, at: moment, to: target).run()
        let byte = keys[report.generation] ?? key
        let key = try Key.testing(byte)
        let soundness = try IntegrityReport.verify(path: target, key: key)
        #expect(soundness.isSound, "\(soundness)", sourceLocation: sourceLocation)
        let copy = try Database.testing(target, key: byte)
        defer { copy.close() }
        let state = try ReplicatedStore.state(copy)
        let commits = try copy.integers("SELECT count(*) FROM step")[0]
        #expect(commits > 0 && states[commits - 1] == state, "\(commits): \(state)", sourceLocation: sourceLocation)
        return (commits, report)
    }

    /// The names of the objects in the repository.
    func objects(_ part: String = ObjectName.generations) throws -> [String] {
        try storage.base.objects(under: part).map(\.name).sorted()
    }

    func object(_ name: String) -> String { "\(repository)/\(name)" }

    /// Changes a byte of an object.
    func damage(_ name: String, at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: object(name)))
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 0x40]))
        try file.close()
    }

    var status: RepositoryStatus {
        get throws { try RepositoryStatus.of(directory: repository, verifies: true) }
    }
}

extension RepositoryStorage {
    func write(_ bytes: [UInt8], as name: String) throws(DatabaseError) -> Bool {
        try write([NewObject(name: name, bytes: bytes)]) == [true]
    }
}
