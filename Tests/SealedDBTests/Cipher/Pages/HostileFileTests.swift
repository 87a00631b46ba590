import Foundation
import Testing

@testable import SealedDB

/// Files that somebody without the key has changed at random: nothing traps, and nothing changed is called sound.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct HostileFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Repeats with its seed.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
            return mixed ^ mixed >> 31
        }
    }

    private func damage(_ bytes: Data, _ generator: inout Generator) -> Data {
        var result = [UInt8](bytes)
        guard !result.isEmpty else { return bytes }
        // Where headers stand, more often.
        let limit = Bool.random(using: &generator) ? min(200, result.count) : result.count
        let place = Int.random(in: 0..<limit, using: &generator)
        let end = min(result.count, place + [1, 4, 100, 4096].randomElement(using: &generator)!)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: result[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: for index in place..<end { result[index] = 0 }
        case 2: for index in place..<end { result[index] = 0xff }
        case 3: for index in place..<end { result[index] = .random(in: 0...255, using: &generator) }
        case 4: result.removeLast(result.count - place)
        default: result += result.prefix(Int.random(in: 1...5000, using: &generator))
        }
        return Data(result)
    }

    /// What a table of rows that were added in steps may hold.
    private func countIfItOpens() throws -> Int? {
        var configuration = Configuration(key: try .testing(1))
        configuration.createsFile = false
        configuration.isReadOnly = true
        let database = Database(path: directory.file("db"), configuration: configuration)
        guard (try? database.openVerified()) != nil else { return nil }
        defer { database.close() }
        return try? database.integers("SELECT count(*) FROM t").first
    }

    private func useAll() throws -> Bool {
        let path = directory.file("db")
        let key = try Key.testing(1)
        for key in [key, nil] {
            _ = try? StoreDiagnosis.examine(path: path, key: key)
            _ = try? StoreInfo.inspect(path: path, key: key)
        }
        let isSound = (try? IntegrityReport.verify(path: path, key: key))?.isSound ?? false
        _ = try? KeyRotation(path: path, from: key, to: .testing(2)).plan()
        return isSound
    }

    @Test(.hangLimit, arguments: 0..<4 as Range<UInt64>)
    func storeAlone(seed: UInt64) throws {
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 60)
        database.close()
        let intact = try directory.bytes("db")
        var generator = Generator(state: seed)
        for trial in 0..<60 {
            let damaged = damage(intact, &generator)
            try directory.write("db", damaged)
            let isSound = try useAll()
            #expect(!isSound || damaged == intact, "seed \(seed), trial \(trial)")
            try #require(directory.bytes("db") == damaged, "seed \(seed), trial \(trial): written to")
        }
    }

    @Test(.hangLimit, arguments: 0..<4 as Range<UInt64>)
    func storeWithLog(seed: UInt64) throws {
        let owner = try Database.testing(directory.file("owned"), journalMode: .wal)
        try owner.fill(rows: 20)
        for _ in 0..<5 { try owner.fill(rows: 20) }
        let intact = try ["", "-wal"].map { try directory.bytes("owned" + $0) }
        owner.close()
        var generator = Generator(state: seed)
        for trial in 0..<60 {
            var files = intact
            let which = Int.random(in: 0...1, using: &generator)
            files[which] = damage(files[which], &generator)
            for suffix in ["-wal", "-shm", "-journal"] { unlink(directory.file("db" + suffix)) }
            try directory.write("db", files[0])
            try directory.write("db-wal", files[1])
            let isSound = try useAll()
            guard isSound, let count = try countIfItOpens() else { continue }
            #expect(count % 20 == 0 && count <= 120, "seed \(seed), trial \(trial)")
        }
    }

    /// Its checksums are right: they need no key. Each of its pages would be looked for.
    @Test(.hangLimit)
    func journalOfAStoreOfManyPages() throws {
        let owner = try Database.testing(directory.file("db"))
        try owner.fill(rows: 300)
        owner.close()
        var journal: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        for number in [0, 0, 0xffff_fff0, 512, 4096] as [UInt32] {
            journal += (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }
        try directory.write("db-journal", journal + [UInt8](repeating: 0, count: 512 - journal.count))
        let path = directory.file("db")
        let error = #expect(throws: DatabaseError.self) { try IntegrityReport.verify(path: path, key: .testing(1)) }
        #expect(error?.reason == .damaged)
    }

    @Test(.hangLimit, arguments: 0..<4 as Range<UInt64>)
    func storeWithJournal(seed: UInt64) throws {
        let owner = try Database.testing(directory.file("owned"))
        try owner.fill(rows: 300)
        #expect(owner.beginImmediateTransaction())
        try owner.spillChanges()
        try owner.executeUpdate("UPDATE t SET body = body || 'x'", values: nil)
        let intact = try ["", "-journal"].map { try directory.bytes("owned" + $0) }
        #expect(owner.rollback())
        owner.close()
        var generator = Generator(state: seed)
        for _ in 0..<40 {
            var files = intact
            let which = Int.random(in: 0...1, using: &generator)
            files[which] = damage(files[which], &generator)
            try directory.write("db", files[0])
            try directory.write("db-journal", files[1])
            _ = try useAll()
        }
    }
}
