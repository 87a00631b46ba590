import Testing

@testable import SealedDB

/// Logs that have begun anew, and of which the frames of an older log are left behind the newer ones. What stands at their beginning
/// was lost, or is what the disk had before.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct LogRoundTests {
    private let rounds: LogRounds

    init() throws { rounds = try LogRounds() }

    /// SQLite reads frames of the older log that commit nothing.
    @Test(arguments: [2, 3]) func aPartOfAnOlderTransactionComesFirst(pageCount: Int) throws {
        try rounds.update(1...pageCount, to: 1)
        try rounds.checkpoint()
        let (file, older) = (try rounds.file, try rounds.log)
        for row in 1...8 { try rounds.update(row...row, to: 10 + row) }
        try rounds.put(file, Array(older.prefix(pageCount * 4096) + rounds.log.dropFirst(pageCount * 4096)))

        #expect(try !rounds.isSound())
        #expect(throws: DatabaseError.self) { try LogDamage.requireNone(ofStore: rounds.path) }
        let saved = try rounds.recovered(isComplete: false)
        #expect(saved == (1...8).map { $0 > pageCount ? 10 + $0 : 1 })
    }

    /// What is left of two newer logs counts as that of the newest.
    @Test func twoNewerLogs() throws {
        try rounds.update(1...1, to: 1)
        try rounds.checkpoint()
        let older = try rounds.log
        for row in 1...8 { try rounds.update(row...row, to: 10 + row) }
        try rounds.checkpoint()
        let file = try rounds.file
        for row in 1...4 { try rounds.update(row...row, to: 20 + row) }
        try rounds.put(file, Array(older.prefix(32) + rounds.log.dropFirst(32)))

        #expect(try LogDamage.lostTransactions(ofStore: rounds.path) == 4)
        #expect(try rounds.recovered(isComplete: false) == [21, 22, 23, 24, 15, 16, 17, 18])
        try rounds.checkpoint()
        try rounds.put(rounds.file, Array(older.prefix(32) + rounds.log.dropFirst(32)))
        #expect(try rounds.isSound())
    }

    /// A checkpoint writes pages in their order, so that it may have written those of all transactions but the first.
    @Test func aCheckpointLeftOutThePageOfTheFirstFrame() throws {
        let before = try rounds.file
        try rounds.update(8...8, to: 100)
        for row in 1...4 { try rounds.update(row...row, to: 100 + row) }
        var log = try rounds.log
        try rounds.checkpoint()
        var file = try rounds.file
        let place = (Int(BigEndian.number(log[32..<36])) - 1) * 4096
        file.replaceSubrange(place..<place + 4096, with: before[place..<place + 4096])
        try rounds.put(file, log)
        #expect(try rounds.isSound())

        log.replaceSubrange(0..<32, with: [UInt8](repeating: 0, count: 32))
        try rounds.put(file, log)
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [101, 102, 103, 104, 0, 0, 0, 100])
    }

    @Test(arguments: [0, 0xff] as [UInt8]) func aCheckpointLeftOutThePageOfTheSecondFrame(byte: UInt8) throws {
        let before = try rounds.file
        for (number, row) in [1, 8, 3, 4].enumerated() { try rounds.update(row...row, to: 101 + number) }
        let log = try rounds.log
        try rounds.checkpoint()
        var file = try rounds.file
        let header = 32 + LogRounds.frameSize
        let place = (Int(BigEndian.number(log[header..<header + 4])) - 1) * 4096
        file.replaceSubrange(place..<place + 4096, with: before[place..<place + 4096])

        try rounds.put(file, [UInt8](repeating: byte, count: 512) + log.dropFirst(512))
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [101, 0, 103, 104, 0, 0, 0, 102])
    }

    /// One bit of the numbers or of the checksum of the last frame, whose page the file has. SQLite would put an older one there.
    @Test(arguments: [3, 7, 17, 22]) func theLastHeaderWasChanged(place: Int) throws {
        for row in 1...4 { try rounds.update(row...row, to: 100 + row) }
        try rounds.update(1...1, to: 105)
        try rounds.checkpoint()
        var log = try rounds.log
        log[32 + 4 * LogRounds.frameSize + place] ^= 4
        try rounds.put(rounds.file, log)
        try expectNobodyOpens(rounds.path)
        #expect(try rounds.recovered(isComplete: false) == [105, 102, 103, 104, 0, 0, 0, 0])
    }

    /// A file has the frames of few logs. To compare those of thousands would take hours.
    @Test(arguments: [3, 1000]) func saltsOfManyLogs(count: Int) {
        var tail = LogTail(ofLogWith: [0, 0, 0, 1, 0, 0, 0, 1], limit: 100)
        for number in (0..<count).flatMap({ [$0, $0] }) {
            let salts = [UInt32(0x8000_0000) + UInt32(number) << 17, 7].flatMap(BigEndian.bytes)
            let header = [0, 0, 0, 2, 0, 0, 0, 0] + salts + [UInt8](repeating: 9, count: 8)
            tail.append(
                LogChain.Frame(
                    offset: 0,
                    header: LogFrameHeader(header[...]),
                    page: [UInt8](repeating: 0, count: 16)[...],
                    followsPrevious: false,
                    hasOwnPage: false,
                    previousSum: LogChecksum(isBigEndian: false)
                )
            )
        }
        #expect(tail.strangersSalts.count == (count == 3 ? 3 : 0))
    }

    /// The frames of the older log, of which the file has newer pages, are not taken for those of the log.
    @Test(arguments: [(32, 1), (32, 2), (512, 2), (4096, 2), (4096, 3)], [0, 0xff] as [UInt8])
    func theNewerLogIsInTheFile(damage: (size: Int, count: Int), byte: UInt8) throws {
        for row in (1...8).reversed() { try rounds.update(row...row, to: row) }
        try rounds.checkpoint()
        for row in 1...damage.count { try rounds.update(row...row, to: 100 + row) }
        try rounds.checkpoint()
        let log = try [UInt8](repeating: byte, count: damage.size) + rounds.log.dropFirst(damage.size)
        let values = (1...8).map { $0 > damage.count ? $0 : 100 + $0 }

        try rounds.put(rounds.file, log)
        #expect(try rounds.isSound())
        #expect(try rounds.recovered(isComplete: true) == values)
        #expect(try rounds.values() == values)
    }

    /// The header of the log can be told from its first frame.
    @Test func aSingleTransactionBehindALostHeader() throws {
        for row in 1...8 { try rounds.update(row...row, to: row) }
        try rounds.checkpoint()
        let file = try rounds.file
        try rounds.update(1...1, to: 101)
        try rounds.put(file, [UInt8](repeating: 0, count: 32) + rounds.log.dropFirst(32))
        #expect(try LogDamage.lostTransactions(ofStore: rounds.path) == 1)
        #expect(try rounds.recovered(isComplete: false) == [101, 2, 3, 4, 5, 6, 7, 8])
    }

    /// A power failure tears a transaction over frames of another log, whose salts SQLite has not counted up to those of this one.
    @Test func aTornTransactionOverTheFramesOfAStranger() throws {
        func setSalt(_ log: inout [UInt8], _ frame: Int, by distance: UInt8) {
            let place = 32 + frame * LogRounds.frameSize + 8
            // Checksums of frames do not cover the salts.
            log[place] ^= 0x40
            log[place + 3] &+= distance
        }
        try rounds.update(1...1, to: 1)
        try rounds.update(1...8, to: 2)
        try rounds.checkpoint()
        let file = try rounds.file
        // Each frame has the same page as before.
        try rounds.update(1...1, to: 3)
        var before = try rounds.log
        try rounds.update(1...5, to: 4)
        var after = try rounds.log
        for frame in 1..<9 {
            setSalt(&before, frame, by: frame < 3 ? 1 : 0)
            if frame > 5 { setSalt(&after, frame, by: 0) }
        }
        let blocks = (32 + LogRounds.frameSize) / 4096..<(32 + 6 * LogRounds.frameSize) / 4096 + 1
        for (first, second) in blocks.flatMap({ first in blocks.map { (first, $0) } }) where first <= second {
            var log = before
            for start in [first * 4096, second * 4096] {
                log.replaceSubrange(start..<start + 4096, with: after[start..<start + 4096])
            }
            try rounds.put(file, log)
            #expect(throws: Never.self, "blocks \(first) and \(second)") {
                try LogDamage.requireNone(ofStore: rounds.path)
            }
        }
    }

    /// A power failure tears a transaction over the frames of one that was rolled back: some blocks have frames of that.
    @Test(arguments: [1, 2], [0, 1]) func aTornTransactionOverOneThatWasRolledBack(count: Int, missing: Int) throws {
        try rounds.update(1...1, to: 1)
        try rounds.begin([4, 5, 6, 7, 8], value: 5)
        try rounds.end("ROLLBACK")
        let (file, before) = (try rounds.file, try rounds.log)
        let spilled = before.count / LogRounds.frameSize
        try #require(spilled > 4)
        try rounds.begin([7, 8, 2, 3, 4, 5, 6, 1], value: 9)
        try rounds.end("COMMIT")
        var log = try rounds.log
        let first = (32 + (1 + count) * LogRounds.frameSize + 511) / 512 * 512
        let end = (32 + (spilled + missing) * LogRounds.frameSize) / 512 * 512
        try #require(first < end && end < log.count - LogRounds.frameSize)
        for place in first..<end { log[place] = place < before.count ? before[place] : 0 }
        try rounds.put(file, log)
        #expect(try LogDamage.lostTransactions(ofStore: rounds.path) == 0)
        #expect(try rounds.isSound())
        #expect(try rounds.values() == [1, 0, 0, 0, 0, 0, 0, 0])
    }

    /// A sector of the disk ends within the header of a frame, behind its numbers or behind its salts: a power failure leaves what is
    /// before of one transaction, and what is behind of an older one, or the other way round.
    @Test(arguments: [(20, 0), (41, 8), (62, 16)]) func aHeaderOverTwoSectors(frame: Int, end: Int) throws {
        for number in 0..<frame + 10 { try rounds.update(number % 8 + 1...number % 8 + 1, to: number) }
        try rounds.checkpoint()
        for number in 0..<frame - 3 { try rounds.update(number % 8 + 1...number % 8 + 1, to: 1000 + number) }
        let (file, before) = (try rounds.file, try rounds.log)
        try rounds.update(1...7, to: 5000)
        let after = try rounds.log
        let place = 32 + frame * LogRounds.frameSize + end
        try #require(place % 512 == 0)
        let frameBefore = (place - end - LogRounds.frameSize) / 512 * 512
        let unwritten: [[Range<Int>]] = [
            [place - 512..<place], [place..<place + 512], [place..<after.count], [0..<place], [frameBefore..<place],
            [frameBefore..<frameBefore + 512, place - 512..<place],
            [frameBefore..<frameBefore + 512, place..<place + 512],
        ]
        for sectors in unwritten {
            var log = after
            for sector in sectors { log.replaceSubrange(sector, with: before[sector]) }
            try rounds.put(file, log)
            #expect(try rounds.isSound(), "\(sectors)")
        }
    }
}
