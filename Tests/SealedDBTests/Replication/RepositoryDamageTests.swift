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
            try RepositoryRestore(from: store.repository, at: moment, to: target).run()
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
        #expect(try store.ship().healed == [ObjectName.chunk(own).text])
        #expect(try store.status.problems == [])
    }

    /// Its name says what it must hold, so it is no other shipper's.
    @Test(arguments: [0, 5, 1 << 40])
    func aDamagedObjectWithItsDigestAsName(_ size: Int64) throws {
        let bytes = Array("slots".utf8)
        let digest = try ObjectDigest.of(bytes)
        for name in [ObjectName.slots(digest), .chunk(digest)] {
            let path = store.object(name.text)
            #expect(try store.storage.require(bytes, as: name) == .new)
            #expect(try store.storage.require(bytes, as: name) == .there)
            try Data("other".utf8).write(to: URL(fileURLWithPath: path))
            #expect(truncate(path, off_t(size)) == 0)
            #expect(try store.storage.require(bytes, as: name) == .healed)
            #expect(try store.storage.read(name.text) == bytes)
        }
        let segment = ObjectName.segment(generation: 1, sequence: 5)
        let error = #expect(throws: DatabaseError.self) { try store.storage.require(bytes, as: segment) }
        #expect(error?.reason == .alreadyExists && error?.message.contains("another shipper") == true)
    }

    /// If it cannot be written again, that is told with its name, and not as another shipper's work.
    @Test func aDamagedObjectThatStays() throws {
        let name = ObjectName.slots(try ObjectDigest.of([7]))
        _ = try store.storage.write([8], as: name.text)
        let first = store.storage.callCount
        store.storage.fails = { $0 == first + 2 ? .before : nil }
        let error = #expect(throws: DatabaseError.self) { try store.storage.require([7], as: name) }
        #expect(error?.reason == .noSpace && error?.message.hasPrefix(name.text) == true)
        #expect(error?.message.contains("is damaged") == true)
    }

    /// The name of an unfinished file is another one at each attempt; a message that is repeated is told once.
    @Test func failuresThatAreTheSame() throws {
        let name = "slots/\(try ObjectDigest.of([1]))"
        func write() throws { _ = try store.storage.write([1], as: name) }
        try write()
        try store.storage.remove(name)
        let count = CallWatch(store.repository)
        try write()
        let index = try #require(count.endWithAll().firstIndex { $0.contains(".sealdb-") })
        let messages = try (0..<2).map { _ in
            try store.storage.remove(name)
            let watch = CallWatch(store.repository, failing: index...index)
            defer { watch.end() }
            return #expect(throws: DatabaseError.self, performing: write)?.message
        }
        #expect(messages[0] == messages[1])
        #expect(messages[0]?.contains(name) == true && messages[0]?.contains(".sealdb-") == false)
    }

    // MARK: Sizes

    /// Writes the last frame of the last segment anew, with right digests.
    private func rewriteLast(page: UInt32?, pageCount: UInt32) throws {
        let reader = RepositoryReader(storage: store.storage)
        let (header, bytes, _) = try reader.segment(1, 5)
        let size = LogFrameHeader.size + header.pageSize
        var frames = Array(bytes[header.offset...])
        let start = frames.count - size
        func put(_ number: UInt32, at offset: Int) {
            for index in 0..<4 {
                frames[start + offset + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index))
            }
        }
        if let page { put(page, at: 0) }
        put(pageCount, at: 4)
        let before = start > 0 ? Array(frames[(start - size)...].dropFirst(16).prefix(8)) : header.log.checksum
        var sum = LogChecksum(isBigEndian: LogHeader(try #require(header.log.header)).isBigEndian, after: before[...])
        sum.add(frames[start..<(start + 8)])
        sum.add(frames[(start + LogFrameHeader.size)...])
        frames.replaceSubrange((start + 16)..<(start + 24), with: sum.bytes)
        let last = try #require(header.commits.last)
        let commit = LogSegment.Commit(frame: last.frame, pageCount: Int64(pageCount), time: last.time)
        let segment = LogSegment(
            generation: 1,
            sequence: 5,
            previous: header.previous,
            pageSize: header.pageSize,
            log: header.log,
            lastChecksum: sum.bytes,
            time: header.time,
            commits: header.commits.dropLast() + [commit],
            slots: header.slots,
            frames: frames
        )
        #expect(unlink(store.object(self.segment(5))) == 0)
        _ = try store.storage.write(segment.bytes(), as: self.segment(5))
        _ = try reader.segment(1, 5)
    }

    /// The digests have no key: whoever can write to the repository can say any number.
    @Test(arguments: [nil, UInt32.max])
    func aCommitOfMorePagesThanThereCanBe(_ page: UInt32?) throws {
        try rewriteLast(page: page, pageCount: .max)
        try expectDamage { error in #expect(error.message.contains("more pages than it can have")) }
    }

    /// A page far behind, which the store never has, takes no room.
    @Test func aPageThatTheStoreNeverHas() throws {
        let (_, report) = try store.restore()
        try rewriteLast(page: .max, pageCount: UInt32(report.pageCount))
        let target = store.directory.file("restored.db")
        let other = try RepositoryRestore(from: store.repository, to: target).run()
        #expect(other.pageCount == report.pageCount)
        #expect(try FileSystem.status(target).st_size == report.pageCount * 4096)
    }

    @Test func theBoundOfPages() {
        func frame(_ page: UInt8, _ count: UInt8) -> [UInt8] {
            [0, 0, 0, page, 0, 0, 0, count] + [UInt8](repeating: 0, count: 16 + 512)
        }
        func isWithin(_ frames: [UInt8]...) -> Bool {
            var bound = PageBound(pageCount: 10)
            // One after the other, as from several segments.
            return frames.allSatisfy { bound.read($0[...], pageSize: 512) }
        }
        #expect(isWithin(frame(3, 10)) && isWithin(frame(3, 4), frame(3, 10)))
        #expect(isWithin(frame(11, 0), frame(12, 12)) && isWithin(frame(11, 11), frame(12, 12)))
        // Its locks lie on one page that is never written.
        #expect(isWithin(frame(12, 12)))
        #expect(!isWithin(frame(3, 11)) && !isWithin(frame(13, 13)) && !isWithin(frame(11, 0), frame(3, 12)))
        #expect(!isWithin(frame(12, 0), frame(3, 10), frame(4, 11)))
    }

    @Test func aTimeBeforeEverything() throws {
        let target = store.directory.file("early.db")
        let error = #expect(throws: DatabaseError.self) {
            try RepositoryRestore(
                from: store.repository,
                at: .time(RepositoryTime(milliseconds: 0)),
                to: target
            ).run()
        }
        #expect(error?.reason == .noSuchFile)
        #expect(throws: DatabaseError.self) {
            try RepositoryRestore(from: store.repository, at: .generation(7), to: target).run()
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

    /// An older state of the repository has the same mark. What is shipped must not follow what is not there.
    @Test(arguments: [false, true], [false, true])
    func anOlderCopyOfTheRepository(isLogGone: Bool, keepsDirectory: Bool) throws {
        try store.ship()
        try store.keepCopy()
        for _ in 0..<3 {
            try store.commit(ReplicatedStore.rows(5, bytes: 3000))
            try store.ship()
        }
        try store.putCopyBack(keepsDirectory: keepsDirectory)
        // Also if there is nothing new.
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
        if isLogGone { try store.database.checkpoint(.truncate) }
        try store.ship()
        #expect(try store.status.problems == [])
        #expect(try store.restore().commits == store.states.count)
        try store.commit()
        try store.ship()
        #expect(try store.restore().commits == store.states.count)
        // Nothing is gone on with that lies in another directory.
        #expect(try store.status.generations.count == (isLogGone || !keepsDirectory ? 2 : 1))
    }

    /// What was committed to the new file would count as shipped.
    @Test func aStoreThatIsReplacedWhileItIsShipped() throws {
        try store.ship()
        try store.commit()
        let (path, storage) = (store.path, store.storage)
        let written = storage.callCount + 4
        storage.fails = { number in
            // After the lease, the mark, the end of the repository, and what would follow it.
            if number == written { #expect(rename(path, path + ".old") == 0) }
            return nil
        }
        let error = #expect(throws: DatabaseError.self) { try store.ship() }
        #expect(error?.reason == .busy, "\(String(describing: error))")
        storage.fails = { _ in nil }
        #expect(rename(path + ".old", path) == 0)
        try store.ship()
        #expect(try store.restore().commits == store.states.count)
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
            let size = LogFrameHeader.size + header.pageSize
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
