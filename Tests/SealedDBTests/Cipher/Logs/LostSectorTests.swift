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

    /// Nothing tells whether the last transaction was committed, and a recovery says so.
    @Test func theHeaderOfTheLastFrameWhosePageIsNotInTheFile() throws {
        let file = try rounds.file
        for value in 1...5 { try rounds.update(1...1, to: value) }
        try rounds.put(file, losing(32 + 4 * LogRounds.frameSize, 0, of: rounds.log))

        #expect(try rounds.isSound())
        #expect(try rounds.recovered(isComplete: false) == [3, 0, 0, 0, 0, 0, 0, 0])
    }
}
