import Testing

@testable import SealedDB

/// Sectors of a log that became zeros, of which all bits are set, or that kept what stood there before.
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
        try rounds.checkpoint(ofFrame: 3, log, to: &file)
        try rounds.put(file, log)
        #expect(try rounds.values() == [3, 0, 0, 0, 9, 9, 0, 0])

        try rounds.put(file, losing(header, byte, of: log))
        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false).suffix(4) == [9, 9, 0, 0])
    }

    /// Without codes, SQLite's end of the log holds. What the file has is not undone, whether or not a header tells its number.
    @Test(arguments: [0, 0xff] as [UInt8]) func aHeaderThatIsLostWithoutCodes(byte: UInt8) throws {
        let rounds = try LogRounds(CipherSettings(usesHMAC: false))
        for (row, value) in [(1, 1), (2, 7), (1, 2), (5, 9)] { try rounds.update(row...row, to: value) }
        try rounds.checkpoint()
        try rounds.put(rounds.file, losing(32 + 2 * LogRounds.frameSize, byte, of: rounds.log))
        #expect(try rounds.recovered(isComplete: false) == [2, 7, 0, 0, 9, 0, 0, 0])
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

    /// As above, of a transaction of two frames. The file has the page of the second one alone.
    @Test(arguments: [0, 0xff] as [UInt8]) func theChecksumBeforeAFrameWhosePageIsInTheFile(byte: UInt8) throws {
        var file = try rounds.file
        for value in 1...60 { try rounds.update(1...1, to: value) }
        try rounds.update(4...5, to: 61)
        try rounds.update(4...5, to: 62)
        let start = 32 + 62 * LogRounds.frameSize + 16
        let log = try rounds.log
        try #require(start.isMultiple(of: 512) && log.count == start + 2 * LogRounds.frameSize - 16)
        try rounds.checkpoint(ofFrame: 63, log, to: &file)
        try rounds.put(file, losing(start, byte, of: log))

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [60, 0, 0, 61, 62, 0, 0, 0])
    }

    /// The sector begins with the salts of a frame, and leaves its numbers. In the least of logs the salts are about to begin at 0 again.
    @Test(arguments: [3, 0x1234_5678] as [UInt32], [0, 0xff] as [UInt8])
    func theSaltsOfAFrameWhosePageIsInTheFile(salt: UInt32, byte: UInt8) throws {
        for value in 1...42 { try rounds.update(1...1, to: value) }
        let start = 32 + 41 * LogRounds.frameSize + 8
        let log = try salted(salt, rounds.log)
        try #require(start.isMultiple(of: 512))
        try rounds.checkpoint()
        try rounds.put(rounds.file, losing(start, byte, of: log))

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false)[0] == 42)
    }

    /// The sector ends with the numbers of a frame, and leaves its salts.
    @Test(arguments: [0, 0xff] as [UInt8]) func theNumbersOfAFrameWhosePageIsInTheFile(byte: UInt8) throws {
        for value in 1...40 { try rounds.update(1...1, to: value) }
        try rounds.update(2...2, to: 7)
        try rounds.update(1...1, to: 42)
        let start = 32 + 41 * LogRounds.frameSize
        let log = try rounds.log
        try #require((start + 8).isMultiple(of: 512) && log.count == start + LogRounds.frameSize)
        try rounds.checkpoint()
        try rounds.put(rounds.file, losing(start, byte, of: log))

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [42, 7, 0, 0, 0, 0, 0, 0])
    }

    // MARK: Sectors that the disk has not written

    /// The older log has a frame for each row. The newer one has those of row 1, of `second` and of `row`, and unless that is the last,
    /// of row 3. The disk has kept the header and the beginning of the page that the older log has in the place of the one of `row`.
    private func keepingASector(ofRow row: Int, behind second: Int = 2, size: Int, isLast: Bool) throws -> [UInt8] {
        for row in (1...8).reversed() { try rounds.update(row...row, to: row) }
        try rounds.checkpoint()
        for row in [1, second] { try rounds.update(row...row, to: 100 + row) }
        let older = try rounds.log
        try rounds.update(row...row, to: 200 + row)
        if !isLast { try rounds.update(3...3, to: 303) }
        var log = try rounds.log
        let sector = (32 + 2 * LogRounds.frameSize) / size * size
        log.replaceSubrange(sector..<sector + size, with: older[sector..<sector + size])
        return log
    }

    /// SQLite would put the older page of row 1 over that of the file, or leave out the frame behind.
    @Test(arguments: [(1, 512, true), (1, 4096, true), (1, 512, false), (5, 512, false), (1, 4096, false)])
    func aHeaderOfAnOlderLogWhosePageIsInTheFile(row: Int, size: Int, isLast: Bool) throws {
        let log = try keepingASector(ofRow: row, size: size, isLast: isLast)
        try rounds.checkpoint()
        try rounds.put(rounds.file, log)

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        var values = [101, 102, isLast ? 3 : 303, 4, 5, 6, 7, 8]
        values[row - 1] = 200 + row
        #expect(try rounds.recovered(isComplete: false) == values)
    }

    /// The older log had row 6 there, which has changed since, so that only the next frame of that log tells whose header it is.
    @Test func aHeaderOfAnOlderLogWhosePageHasChanged() throws {
        let log = try keepingASector(ofRow: 1, behind: 6, size: 512, isLast: true)
        try rounds.checkpoint()
        try rounds.put(rounds.file, log)

        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [201, 2, 3, 4, 5, 106, 7, 8])
    }

    /// Nothing tells whether what it belonged to was committed, and a recovery says so.
    @Test func aHeaderOfAnOlderLogWhosePageIsNotInTheFile() throws {
        let log = try keepingASector(ofRow: 1, size: 512, isLast: false)
        try rounds.put(rounds.file, log)

        #expect(try rounds.isSound())
        #expect(try rounds.recovered(isComplete: false) == [101, 102, 3, 4, 5, 6, 7, 8])
    }

    /// Where the file has nothing of the newer log, what the older one has left there tells nothing.
    @Test func theFrameOfAnOlderLogAtTheEnd() throws {
        for row in (1...8).reversed() { try rounds.update(row...row, to: row) }
        try rounds.checkpoint()
        let file = try rounds.file
        // The next frame of the older log is that of a row whose page the newer log has.
        for row in [1, 2, 6] { try rounds.update(row...row, to: 100 + row) }
        var log = try rounds.log
        try rounds.put(file, log)
        #expect(try rounds.isSound())
        // A power failure has written the end of the next frame, and not its beginning.
        let end = 32 + 3 * LogRounds.frameSize
        log.replaceSubrange(end + 2048..<end + LogRounds.frameSize, with: log[32 + 2048..<32 + LogRounds.frameSize])
        try rounds.put(file, log)
        #expect(try rounds.isSound())
        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.recovered(isComplete: true) == [101, 102, 3, 4, 5, 106, 7, 8])
    }

    /// A process was killed in the midst of a page, so that the older log before has the rest of it, and the file has that one's page.
    @Test func aTornFrameOfAnOlderLogAtTheEnd() throws {
        for row in (1...8).reversed() { try rounds.update(row...row, to: row) }
        try rounds.checkpoint()
        for row in 1...2 { try rounds.update(row...row, to: 100 + row) }
        let salts = try rounds.log[16..<24]
        try rounds.checkpoint()
        let file = try rounds.file
        for row in 6...7 { try rounds.update(row...row, to: 200 + row) }
        var log = try rounds.log
        let end = 32 + 2 * LogRounds.frameSize
        let page = BigEndian.number(log[end..<end + 4])
        let torn = [0, 0, 0, 4, 0, 0, 0, 0] + salts + (0..<2056).map { UInt8(truncatingIfNeeded: $0 * 7 / 5) }
        log.replaceSubrange(end..<end + torn.count, with: torn)
        #expect(page == BigEndian.number(log[32..<36]))
        try rounds.put(file, log)

        #expect(try rounds.isSound())
        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.recovered(isComplete: true) == [101, 102, 3, 4, 5, 206, 207, 8])
    }

    // MARK: Forged logs

    /// A copy of a frame of the log without its header. The file has not its page, and the log has it.
    @Test func aFrameOfTheLogThatComesTwice() throws {
        let file = try rounds.file
        for row in 1...2 { try rounds.update(row...row, to: row) }
        var log = try rounds.log
        log += [UInt8](repeating: 0, count: 24) + log.suffix(4096)
        try rounds.put(file, log)

        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.isSound())
    }

    /// SQLite reads no log of another version.
    @Test func anotherVersion() throws {
        let file = try rounds.file
        for row in 1...2 { try rounds.update(row...row, to: row) }
        let log = try rounds.log
        var header = Array(log.prefix(24))
        header[7] += 1
        var sum = LogChecksum(isBigEndian: false)
        sum.add(header[...])
        var other = header + sum.bytes
        sum = LogChecksum(isBigEndian: false, after: other[24...])
        for place in stride(from: 32, to: log.count, by: LogRounds.frameSize) {
            let frame = log[place..<place + LogRounds.frameSize]
            sum = sum.adding(LogFrameHeader(frame), frame.dropFirst(24))
            other += frame.prefix(16) + sum.bytes + frame.dropFirst(24)
        }
        try rounds.put(file, other)

        #expect(try !rounds.isSound())
        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        #expect(try rounds.recovered(isComplete: false) == [1, 2, 0, 0, 0, 0, 0, 0])
    }

    // MARK: Frames that other logs have left

    /// A log with other salts has left a frame, of whose header a power failure may have written the numbers anew. The file has its page.
    /// Or the database was larger then.
    @Test(arguments: [(nil, false), (2, false), (3, false), (nil, true)] as [(UInt8?, Bool)])
    func aFrameOfALogWithOtherSalts(number: UInt8?, wasLarger: Bool) throws {
        for row in 1...2 { try rounds.update(row...row, to: 10 + row) }
        let older = try rounds.log
        try rounds.checkpoint()
        let file = try rounds.file
        for row in 1...2 { try rounds.update(row...row, to: 20 + row) }
        let end = 32 + LogRounds.frameSize
        var log = try salted(0x1234_5678, Array(rounds.log.prefix(end))) + older[end..<end + LogRounds.frameSize]
        if wasLarger { log[end + 6] = 1 }
        if let number { log[end + 3] = number }
        try rounds.put(file, log)

        #expect(try rounds.isSound())
        try LogDamage.requireNone(ofStore: rounds.path)
        #expect(try rounds.recovered(isComplete: !wasLarger) == [21, 12, 0, 0, 0, 0, 0, 0])
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
