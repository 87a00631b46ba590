import Testing

@testable import SealedDB

/// Sectors of a log that became zeros, or of which all bits are set.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LostSectorTests {
    private let rounds: LogRounds

    init() throws { rounds = try LogRounds() }

    private func losing(_ start: Int, _ byte: UInt8, of log: [UInt8]) -> [UInt8] {
        var log = log
        let sector = start / 512 * 512..<start / 512 * 512 + 512
        log.replaceSubrange(sector, with: [UInt8](repeating: byte, count: sector.count))
        return log
    }

    /// The same log with other salts.
    private func salted(_ first: UInt32, _ log: [UInt8]) throws -> [UInt8] {
        let header = LogHeader(Array(log.prefix(32)))
        let salts = BigEndian.bytes(first) + log[20..<24]
        var result = LogHeader.bytes(pageSize: header.pageSize, salts: salts)
        try #require(!header.isBigEndian)
        var sum = LogChecksum(isBigEndian: false, after: result[24...])
        for place in stride(from: 32, to: log.count, by: LogRounds.frameSize) {
            let frame = log[place..<place + LogRounds.frameSize]
            sum = sum.adding(LogFrameHeader(frame), frame.dropFirst(24))
            result += frame.prefix(8) + salts + sum.bytes + frame.dropFirst(24)
        }
        return result
    }

    /// What became of the header is not the frame of a newer log, whatever its salts.
    @Test(arguments: [0x1234_5678, 0xffff_fffe, 0xffff_0005, 3] as [UInt32], [0, 0xff] as [UInt8])
    func theFirstOne(salt: UInt32, byte: UInt8) throws {
        let file = try rounds.file
        for row in 1...6 { try rounds.update(row...row, to: 10 + row) }
        let log = try salted(salt, rounds.log)
        try rounds.put(file, log)
        #expect(try rounds.values() == [11, 12, 13, 14, 15, 16, 0, 0])

        try rounds.put(file, losing(0, byte, of: log))
        #expect(try !rounds.isSound())
        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        // The first frame was lost with the header.
        #expect(try rounds.recovered(isComplete: false) == [0, 12, 13, 14, 15, 16, 0, 0])
    }

    /// SQLite would put the page of a frame before in the place of that whose header was lost, and which the file has.
    @Test(arguments: [0, 0xff] as [UInt8], [3, 0xffff_fffe] as [UInt32])
    func theHeaderOfTheLastFrameWhosePageIsInTheFile(byte: UInt8, salt: UInt32) throws {
        for value in 1...5 { try rounds.update(1...1, to: value) }
        try rounds.checkpoint()
        let log = try salted(salt, rounds.log)
        try rounds.put(rounds.file, losing(32 + 4 * LogRounds.frameSize, byte, of: log))

        let error = #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        #expect(error?.message.contains("the file has pages of it") == true)
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [5, 0, 0, 0, 0, 0, 0, 0])
    }

    /// A checkpoint was cut off, so that the file has one of two pages of the transaction, which no frame before has. SQLite would drop
    /// the other one.
    @Test(arguments: [0, 0xff] as [UInt8]) func theHeaderOfATransactionOfWhichTheFileHasAPart(byte: UInt8) throws {
        var file = try rounds.file
        for value in 1...3 { try rounds.update(1...1, to: value) }
        try rounds.update(5...6, to: 9)
        let log = try rounds.log
        let header = 32 + 3 * LogRounds.frameSize
        let place = (Int(BigEndian.number(log[header..<header + 4])) - 1) * 4096
        file.replaceSubrange(place..<place + 4096, with: log[header + 24..<header + LogRounds.frameSize])
        try rounds.put(file, log)
        #expect(try rounds.values() == [3, 0, 0, 0, 9, 9, 0, 0])

        try rounds.put(file, losing(header, byte, of: log))
        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false).suffix(4) == [9, 9, 0, 0])
    }

    /// The sector begins with the checksum of the last frame, and leaves its numbers and its salts.
    @Test(arguments: [0, 0xff] as [UInt8]) func theChecksumOfTheLastFrameWhosePageIsInTheFile(byte: UInt8) throws {
        for value in 1...63 { try rounds.update(1...1, to: value) }
        try rounds.checkpoint()
        let start = 32 + 62 * LogRounds.frameSize + 16
        let log = try rounds.log
        try #require(start.isMultiple(of: 512) && log.count == start + LogRounds.frameSize - 16)
        try rounds.put(rounds.file, losing(start, byte, of: log))

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [63, 0, 0, 0, 0, 0, 0, 0])
    }

    /// A log with other salts has left a frame, of whose header a power failure may have written the numbers anew. The file has its page.
    @Test(arguments: [nil, 2, 3] as [UInt8?]) func aFrameOfALogWithOtherSalts(number: UInt8?) throws {
        for row in 1...2 { try rounds.update(row...row, to: 10 + row) }
        let older = try rounds.log
        try rounds.checkpoint()
        let file = try rounds.file
        for row in 1...2 { try rounds.update(row...row, to: 20 + row) }
        let end = 32 + LogRounds.frameSize
        var log = try salted(0x1234_5678, Array(rounds.log.prefix(end))) + older[end..<end + LogRounds.frameSize]
        if let number { log[end + 3] = number }
        try rounds.put(file, log)

        #expect(try rounds.isSound())
        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.recovered(isComplete: true) == [21, 12, 0, 0, 0, 0, 0, 0])
    }

    /// For SQLite the log ends there. Nothing stands before the first page of a file.
    @Test func aFrameOfPageZero() throws {
        let file = try rounds.file
        try rounds.update(1...1, to: 1)
        var log = try rounds.log
        let last = log.suffix(LogRounds.frameSize)
        let zero = [UInt8](repeating: 0, count: 8) + log[16..<24]
        let page = (0..<4096).map { UInt8(truncatingIfNeeded: $0 * 7 / 5) }
        let sum = LogChecksum(isBigEndian: false, after: last.dropFirst(16).prefix(8))
            .adding(LogFrameHeader(zero[...]), page[...])
        log += zero + sum.bytes + page + [UInt8](repeating: 0, count: 24) + page
        try rounds.put(file, log)

        #expect(try rounds.isSound())
        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.recovered(isComplete: false)[0] == 1)
    }

    /// Bytes that are alike by chance, or because they were lost, prove nothing.
    @Test func howMuchCiphertextIsShared() {
        let page = [UInt8](repeating: 0, count: 64)
        for (bytes, shares) in [
            ([], false), ([1, 2, 3], false), ([1, 2, 3, 4], true), ([1, 1, 2, 2, 3, 3, 4], true),
            ([4, 4, 4, 4, 4], false),
        ] as [([UInt8], Bool)] {
            var one = page
            one.replaceSubrange(24..<24 + bytes.count, with: bytes)
            var other = one
            other[63] = 9
            #expect(LogOverlay.shareCiphertext(one, other, from: 0) == shares, "\(bytes)")
        }
    }

    /// Nothing tells whether the last transaction was committed, and a recovery says so.
    @Test func theHeaderOfTheLastFrameWhosePageIsNotInTheFile() throws {
        let file = try rounds.file
        for value in 1...5 { try rounds.update(1...1, to: value) }
        try rounds.put(file, losing(32 + 4 * LogRounds.frameSize, 0, of: rounds.log))

        #expect(try rounds.isSound())
        #expect(try rounds.recovered(isComplete: false) == [3, 0, 0, 0, 0, 0, 0, 0])
    }
}
