import Foundation
import Testing

@testable import SealedDB

/// Key slots that are shipped, and removed when nothing needs them any more.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct ReplicatedSlotsTests {
    private let store: SlotStore
    private let storage: TestStorage
    private let replicator: Replicator
    private let database: Database

    init() throws {
        store = try SlotStore()
        storage = try TestStorage(store.directory.file("repository"))
        database = try store.open(.testing(1))
        #expect(database.executeStatements("PRAGMA journal_mode = WAL"))
        var options = Replicator.Options()
        options.snapshotInterval = .zero
        replicator = try Replicator(path: store.path, key: .testing(1), storage: storage, options: options)
    }

    private func commit() throws { #expect(database.executeStatements("DELETE FROM t WHERE id = 1")) }

    private func objects() throws -> Set<String> {
        Set(try storage.base.objects(under: ObjectName.allSlots).map(\.name))
    }

    /// The name of the slots that the store has now.
    private func name() throws -> String { ObjectName.slots(try ObjectDigest.of(store.bytes())).text }

    private func problems() throws -> [String] { try RepositoryStatus(storage, verifies: true).problems }

    @Test func thoseThatNothingNamesAreRemoved() throws {
        _ = try replicator.ship()
        var names = [try name()]
        for key in 3...5 {
            _ = try store.slots().add(.init(.key(.testing(UInt8(key))), label: "\(key)"))
            // A segment that brings the slots, and then a snapshot.
            try commit()
            _ = try replicator.ship()
            names.append(try name())
        }
        #expect(try objects() == Set(names))
        let kept = try replicator.removeOld { times in times.indices.map { $0 == 1 } }
        #expect(kept.snapshots == 2 && kept.slots == 2)
        // The newest, and the one before, with the segments from that to the newest.
        #expect(try objects() == Set(names.suffix(2)))
        #expect(try problems() == [])
        #expect(try replicator.removeOld { $0.map { _ in false } }.slots == 1)
        #expect(try objects() == [names[3]])
        #expect(try problems() == [])
        let target = store.directory.file("restored.db")
        try RepositoryRestore(storage: storage, to: target).run()
        #expect(try IntegrityReport.verify(path: target, key: .testing(5)).isSound)
    }

    /// As in a copy that was put in the place of the repository. Without them nobody could open what is there.
    @Test(arguments: [false, true]) func slotsThatAreGoneAreWrittenAgain(byAnotherShipper: Bool) throws {
        _ = try replicator.ship()
        unlink(store.directory.file("repository/") + (try name()))
        try commit()
        if byAnotherShipper {
            replicator.close()
            let second = try Replicator(path: store.path, key: .testing(1), storage: storage, options: .init())
            defer { second.close() }
            #expect(try second.ship().begunBecause == "damaged")
        } else {
            #expect(try replicator.ship().madeSnapshot)
        }
        #expect(try objects() == [name()] && problems() == [])
    }

    @Test(arguments: [false, true]) func nothingIsRemovedInFavourOfWhatNobodyOpens(isOfSegment: Bool) throws {
        _ = try replicator.ship()
        try commit()
        _ = try replicator.ship()
        if isOfSegment {
            replicator.options.snapshotInterval = nil
            _ = try store.slots().add(.init(.key(.testing(3)), label: "3"))
            _ = try replicator.ship()
        }
        unlink(store.directory.file("repository/") + (try name()))
        let before = try storage.base.objects(under: "").map(\.name).sorted()
        let error = #expect(throws: DatabaseError.self) { try replicator.removeOld { $0.map { _ in false } } }
        #expect(error?.message.contains("\(try name())") == true, "\(error as Any)")
        #expect(try storage.base.objects(under: "").map(\.name).sorted() == before)
    }

    /// It may come back, and without them nobody could open it.
    @Test func thoseOfAGenerationThatIsAwayStay() throws {
        _ = try replicator.ship()
        let first = try name()
        replicator.close()
        database.close()
        _ = try store.slots().reencrypt(keeping: [.init(.key(.testing(2)), label: "safe", isRecovery: true)])
        var options = Replicator.Options()
        options.snapshotInterval = .zero
        let second = try Replicator(path: store.path, key: .testing(1), storage: storage, options: options)
        #expect(try second.ship().generation == 2)
        let generation = store.directory.file("repository/generations/00000001")
        let elsewhere = store.directory.file("elsewhere")
        try FileManager.default.moveItem(atPath: generation, toPath: elsewhere)
        #expect(try second.removeOld { $0.map { _ in false } }.slots == 0)
        try FileManager.default.moveItem(atPath: elsewhere, toPath: generation)
        #expect(try objects().contains(first) && problems() == [])
        // The retention itself removes them with their generation.
        #expect(try second.removeOld { $0.map { _ in false } }.slots == 1)
        #expect(try !objects().contains(first) && problems() == [])
    }

    /// They are read last, when all else is restored; that stays.
    @Test func slotsThatCannotBeReached() throws {
        _ = try replicator.ship()
        let target = store.directory.file("restored.db")
        let reading = try TestStorage(store.directory.file("repository"))
        reading.fails = { [unowned reading] _ in
            // The store has one chunk, and no segments.
            reading.namesRead.contains { $0.hasPrefix(ObjectName.chunks) } ? .before : nil
        }
        let error = #expect(throws: DatabaseError.self) { try RepositoryRestore(storage: reading, to: target).run() }
        #expect(error?.message.contains("Restore to the same path again") == true, "\(String(describing: error))")
        #expect(TemporaryFile.leftovers(of: target).count == 1 && !FileSystem.exists(target))
        (reading.fails, reading.namesRead) = ({ _ in nil }, [])
        try RepositoryRestore(storage: reading, to: target).run()
        #expect(!reading.namesRead.contains { $0.hasPrefix(ObjectName.chunks) })
        #expect(try IntegrityReport.verify(path: target, key: .testing(1)).isSound)
    }

    /// What segments name behind the last snapshot is needed, and so is what will be named next.
    @Test func thoseThatAreNamedStay() throws {
        _ = try replicator.ship()
        replicator.options.snapshotInterval = nil
        for key in 3...4 {
            _ = try store.slots().add(.init(.key(.testing(UInt8(key))), label: "\(key)"))
            _ = try replicator.ship()
            try commit()
            _ = try replicator.ship()
        }
        _ = try store.slots().add(.init(.key(.testing(5)), label: "5"))
        storage.fails = { [storage] _ in storage.written.last?.contains("slots/") == true ? .before : nil }
        #expect(throws: DatabaseError.self) { try replicator.ship() }
        storage.fails = { _ in nil }
        let names = try objects()
        #expect(try names.count == 4 && names.contains(name()))
        #expect(try replicator.removeOld { $0.map { _ in false } }.slots == 0)
        #expect(try objects() == names)
        _ = try replicator.ship()
        #expect(try problems() == [])
    }

    /// Slots that somebody has put back beside the store, as an old passphrase would open it with, do not travel.
    @Test(arguments: [false, true]) func olderSlotsAreNotShipped(isAccepted: Bool) throws {
        replicator.options.acceptsOlderSlots = isAccepted
        _ = try replicator.ship()
        let old = try store.bytes()
        _ = try store.slots().add(.init(.key(.testing(3)), label: "3"))
        try commit()
        _ = try replicator.ship()
        let new = try store.bytes()
        for ending in [SlotFiles.ending, SlotFiles.secondEnding] {
            try Data(old).write(to: URL(fileURLWithPath: store.path + ending))
        }
        try commit()
        _ = try replicator.ship()
        let target = store.directory.file("restored.db")
        try RepositoryRestore(storage: storage, to: target).run()
        let restored = try Data(contentsOf: URL(fileURLWithPath: target + SlotFiles.ending))
        #expect(Array(restored) == (isAccepted ? old : new))
    }

    /// A shipper that is ended between slots and commits leaves a repository whose newest moment opens.
    @Test(arguments: 1...3)
    func slotsComeBeforeWhatIsCommittedWithThem(objects: Int) throws {
        _ = try replicator.ship()
        replicator.options.snapshotInterval = nil
        _ = try store.slots().add(.init(.key(.testing(3)), label: "3"))
        let first = storage.written.count
        storage.fails = { [storage] _ in storage.written.count >= first + objects ? .before : nil }
        // With three, all of it may be there.
        try? _ = replicator.ship()
        storage.fails = { _ in nil }
        #expect(storage.written.count >= first + min(objects, 2))
        let target = store.directory.file("restored.db")
        try RepositoryRestore(storage: storage, to: target).run()
        #expect(try IntegrityReport.verify(path: target, key: .testing(1)).isSound)
    }

    /// A slot may have been removed in what is not kept.
    @Test func slotsOfAnEndThatIsNotKept() throws {
        _ = try replicator.ship()
        _ = try store.slots().add(.init(.key(.testing(3)), label: "3"))
        try commit()
        _ = try replicator.ship()
        replicator.options.snapshotInterval = nil
        _ = try store.slots().add(.init(.key(.testing(4)), label: "4"))
        _ = try replicator.ship()
        replicator.close()
        try database.checkpoint(.truncate)
        #expect(database.executeStatements("DELETE FROM t WHERE id = 2"))
        let next = try Replicator(path: store.path, key: .testing(1), storage: storage)
        #expect(try next.ship().generation == 2)
        #expect(try next.removeOld { times in times.indices.map { $0 != 1 } }.snapshots == 1)
        let target = store.directory.file("restored.db")
        let remarks = try RepositoryRestore(storage: storage, at: .generation(1), to: target).run().remarks
        #expect(remarks.count == 2 && remarks[0].contains("older key slots"), "\(remarks)")
        #expect(try IntegrityReport.verify(path: target, key: .testing(3)).isSound)
        #expect(try problems() == [])
    }

    /// A segment that cannot be read may name any.
    @Test func noneIsRemovedIfASegmentIsDamaged() throws {
        _ = try replicator.ship()
        replicator.options.snapshotInterval = nil
        _ = try store.slots().add(.init(.key(.testing(3)), label: "3"))
        _ = try replicator.ship()
        let first = try objects()
        _ = try store.slots().add(.init(.key(.testing(4)), label: "4"))
        _ = try replicator.ship()
        let path = "\(storage.name)/\(ObjectName.segment(generation: 1, sequence: 1).text)"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[40] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(throws: DatabaseError.self) { try replicator.removeOld { $0.map { _ in false } } }
        #expect(try objects().isSuperset(of: first))
    }
}
