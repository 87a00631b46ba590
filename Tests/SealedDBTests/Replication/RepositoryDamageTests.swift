import Foundation
import Testing

@testable import SealedDB

/// What is damaged, missing or not what it seems in a repository is told, and nothing is made up.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct RepositoryDamageTests {
    private let store: ReplicatedStore

    /// A snapshot and five segments.
    init() throws {
        store = try ReplicatedStore()
        // One log for all.
        store.options.relievedAt = 1 << 40
        try store.ship()
        for _ in 0..<5 {
            try store.commit(ReplicatedStore.rows(3, bytes: 3000))
            try store.ship()
        }
    }

    private func expectDamage(
        _ moment: RepositoryMoment = .newest,
        _ body: (DatabaseError) throws -> Void = { _ in }
    ) throws {
        let target = store.directory.file("damaged.db")
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(directory: store.repository, moment: moment, to: target).run()
        }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        if let error { try body(error) }
        #expect(!FileSystem.exists(target))
        #expect(try store.status.problems != [])
        #expect(store.directory.names.filter { $0.hasPrefix(".damaged") } == [])
    }

    private func segment(_ number: Int64) -> String { ObjectName.segment(generation: 1, sequence: number).text }

    @Test func aChangedChunk() throws {
        let chunk = try #require(try store.objects(ObjectName.chunks).first)
        try store.damage(chunk, at: 5000)
        try expectDamage()
    }

    @Test func aMissingChunk() throws {
        let chunk = try #require(try store.objects(ObjectName.chunks).first)
        #expect(unlink(store.object(chunk)) == 0)
        try expectDamage()
        let status = try RepositoryStatus.of(directory: store.repository, verifies: false)
        #expect(status.problems.count == 1)
    }

    /// Each byte that is looked at counts.
    @Test(arguments: [10, 90, 400, 5000])
    func aChangedSegment(_ offset: Int) throws {
        try store.damage(segment(3), at: offset)
        try expectDamage { error in #expect(error.message.contains("--at ")) }
    }

    /// The latest moment before it is named, and can be had.
    @Test func aMissingSegment() throws {
        #expect(unlink(store.object(segment(3))) == 0)
        var name = ""
        try expectDamage { error in
            let found = try #require(error.message.firstMatch(of: /--at ([0-9TZ:.-]+)\)/))
            name = String(found.output.1)
        }
        let time = try #require(RepositoryTime(name))
        let (commits, report) = try store.restore(.time(time))
        #expect(commits == 3)
        #expect(report.generation == 1)
    }

    @Test func aSegmentThatIsCutOff() throws {
        #expect(truncate(store.object(segment(5)), 3000) == 0)
        try expectDamage()
    }

    @Test(arguments: [0, 100, 300])
    func aSnapshotThatIsCutOff(_ size: Int) throws {
        #expect(truncate(store.object(ObjectName.snapshot(generation: 1, sequence: 0).text), size) == 0)
        try expectDamage()
    }

    /// A segment with right digests that belongs elsewhere.
    @Test func aSegmentOfAnotherPlace() throws {
        let (from, to) = (store.object(segment(2)), store.object(segment(3)))
        #expect(unlink(to) == 0 && link(from, to) == 0)
        try expectDamage()
    }

    /// Whoever writes all digests anew makes no chain that leads through another segment.
    @Test func aSegmentWithoutTheOneBefore() throws {
        let reader = RepositoryReader(storage: store.storage)
        let (header, bytes, _) = try reader.segment(1, 3)
        let other = LogSegment(
            generation: 1,
            sequence: 2,
            previous: try reader.segment(1, 1).digest,
            pageSize: header.pageSize,
            log: header.log,
            lastChecksum: header.end.checksum,
            time: header.time,
            commits: header.commits,
            slots: header.slots,
            frames: Array(bytes[header.offset...])
        )
        #expect(unlink(store.object(segment(2))) == 0)
        _ = try store.storage.write(other.bytes(), as: segment(2))
        try expectDamage { error in #expect(error.message.contains("do not follow")) }
    }

    /// An older snapshot and more segments serve instead of one that is damaged.
    @Test func aDamagedSnapshotBehindAWholeOne() throws {
        store.options.snapshotInterval = .zero
        store.killShipper()
        try store.commit("DELETE FROM data; \(ReplicatedStore.rows(30, bytes: 2500))")
        try store.ship()
        let newest = try #require(try store.status.generations.last?.snapshots.last?.sequence)
        let (manifest, _) = try RepositoryReader(storage: store.storage).snapshot(1, newest)
        let first = try RepositoryReader(storage: store.storage).snapshot(1, 0).0
        // Not the beginning of the store, which each commit changes.
        let own = try #require(manifest.chunks.dropFirst().first { !first.chunks.contains($0) })
        try store.damage(ObjectName.chunk(own).text, at: 17)
        let (commits, report) = try store.restore()
        #expect(commits == store.states.count)
        #expect(report.snapshot == 0)
        #expect(report.remarks.count == 1)
        #expect(try store.status.problems.count == 1)
        // The next snapshot brings back what is the same in it.
        try store.commit()
        try store.ship()
        #expect(try store.status.problems == [])
    }

    @Test func aTimeBeforeEverything() throws {
        let target = store.directory.file("early.db")
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(
                directory: store.repository,
                moment: .time(RepositoryTime(milliseconds: 0)),
                to: target
            ).run()
        }
        #expect(error?.reason == .noSuchFile)
        #expect(throws: DatabaseError.self) {
            try RepositoryRestore(directory: store.repository, moment: .generation(7), to: target).run()
        }
    }

    /// What is no repository is not taken for an empty one.
    @Test func aDirectoryWithoutAMark() throws {
        #expect(unlink(store.object("repository")) == 0)
        #expect(throws: DatabaseError.self) { try store.status }
        #expect(throws: DatabaseError.self) { try store.restore() }
        store.killShipper()
        #expect(throws: DatabaseError.self) { try store.ship() }
    }

    /// A page in the log that somebody has changed.
    @Test func aChangedFrameIsNotShipped() throws {
        try store.commit(ReplicatedStore.rows(3, bytes: 3000))
        let log = store.path + "-wal"
        let size = try FileSystem.status(log).st_size
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: log))
        try file.seek(toOffset: UInt64(size) - 2000)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(size) - 2000)
        try file.write(contentsOf: Data([byte ^ 1]))
        try file.close()
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .damaged)
        #expect(try store.status.problems == [])
        #expect(try store.restore().commits == store.shippedCount)
    }

    /// What is left of a generation does not become a part of the next one.
    @Test func aGenerationThatHasLostItsSnapshot() throws {
        #expect(unlink(store.object(ObjectName.snapshot(generation: 1, sequence: 0).text)) == 0)
        store.killShipper()
        try store.commit()
        #expect(try store.ship().generation == 2)
        try store.commit()
        try store.ship()
        #expect(try store.restore().commits == store.states.count)
    }

    /// Names that no shipper gives are none, however large their numbers are.
    @Test(arguments: ["9223372036854775807/snapshot-000000000000", "00000001/snapshot-9223372036854775807"])
    func aNumberThatIsTooLarge(_ name: String) throws {
        let path = store.object("\(ObjectName.generations)/\(name)")
        try FileManager.default.createDirectory(
            atPath: FileSystem.directory(of: path),
            withIntermediateDirectories: true
        )
        try Data().write(to: URL(fileURLWithPath: path))
        store.killShipper()
        try store.commit()
        #expect(try store.ship().generation == 1)
        #expect(try store.restore().commits == store.states.count)
    }

    /// A file of any size is not read into memory.
    @Test func anObjectOfAnySize() throws {
        let chunk = try #require(try store.objects(ObjectName.chunks).first)
        #expect(truncate(store.object(chunk), 1 << 40) == 0)
        try expectDamage()
        #expect(truncate(store.object("repository"), 1 << 40) == 0)
        let error = #expect(throws: DatabaseError.self) { try store.status }
        #expect(error?.reason == .damaged)
    }

    /// A link leads to what is not the repository's: nothing is read or written there.
    @Test(arguments: [ObjectName.chunks, ObjectName.generations])
    func aLinkInThePlaceOfADirectory(_ part: String) throws {
        let elsewhere = store.directory.file("elsewhere")
        #expect(rename(store.object(part), elsewhere) == 0 && symlink(elsewhere, store.object(part)) == 0)
        let before = FileSystem.names(in: elsewhere)?.count
        store.killShipper()
        store.options.snapshotInterval = .zero
        try store.commit(ReplicatedStore.rows(30, bytes: 3000))
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .notRegularFile, "\(String(describing: error))")
        #expect(throws: DatabaseError.self) { try store.restore() }
        #expect(FileSystem.names(in: elsewhere)?.count == before)
    }

    /// Whoever writes all digests anew leaves no part of a transaction behind.
    @Test func aLogThatBeginsAnewWithinATransaction() throws {
        try store.database.checkpoint(.passive)
        try store.ship()
        try store.commit()
        try store.ship()
        let reader = RepositoryReader(storage: store.storage)
        #expect(try reader.segment(1, 6).header.log.frame == 0)
        func rewrite(_ number: Int64, previous: String, dropping count: Int64) throws -> String {
            let (header, bytes, _) = try reader.segment(1, number)
            let size = LogPlace.frameHeaderSize + header.pageSize
            let frames = Array(bytes[header.offset...].dropLast(Int(count) * size))
            let last = frames[(frames.count - size)...]
            let segment = LogSegment(
                generation: 1,
                sequence: number,
                previous: previous,
                pageSize: header.pageSize,
                log: header.log,
                lastChecksum: Array(last.dropFirst(16).prefix(8)),
                time: header.time,
                commits: header.commits.filter { $0.frame <= header.end.frame - count },
                slots: header.slots,
                frames: frames
            )
            #expect(unlink(store.object(self.segment(number))) == 0)
            _ = try store.storage.write(segment.bytes(), as: self.segment(number))
            return try reader.segment(1, number).digest
        }
        let digest = try rewrite(5, previous: reader.segment(1, 4).digest, dropping: 1)
        _ = try rewrite(6, previous: digest, dropping: 0)
        try expectDamage { error in #expect(error.message.contains("within a transaction")) }
    }

    /// A look that fails with its first read leaves no transaction behind, which would end all later ones.
    @Test func aLookThatFails() throws {
        func keyText(_ byte: UInt8) -> String { "\"x'\(String(repeating: "0\(byte)", count: 32))'\"" }
        store.database.close()
        func rekey(from byte: UInt8, to other: UInt8) throws {
            let keys = "PRAGMA key = \(keyText(byte)); PRAGMA rekey = \(keyText(other));"
            _ = try StockShell.run(store.path, keys + " SELECT count(*) FROM step;")
        }
        try rekey(from: 1, to: 2)
        for _ in 0..<2 {
            let error = #expect(throws: DatabaseError.self) { try store.ship() }
            #expect(error?.message.contains("transaction within") == false, "\(String(describing: error))")
        }
        try rekey(from: 2, to: 1)
        // Pages of the other key are in the log, until it begins anew.
        store.killShipper()
        store.database = try Database.testing(store.path, journalMode: .wal)
        try store.database.checkpoint(.truncate)
        try store.commit()
        #expect(try store.ship().begunBecause == "log-unseen")
        #expect(try store.restore().commits == store.states.count)
    }
}
