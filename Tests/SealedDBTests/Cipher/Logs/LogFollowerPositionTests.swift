import Foundation
import Testing

@testable import SealedDB

/// What a follower makes of a log between two looks: it names the pages that were changed, or none of them for certain.
@Suite(.hangLimit)
struct LogFollowerPositionTests {
    private let directory: TemporaryDirectory
    private static let size = 512

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("db", [UInt8](repeating: 0, count: Self.size))
        try directory.write("db-wal", [])
    }

    /// A log of which each frame is a transaction, but for some, and its checksum after each of them.
    private struct Log {
        var bytes: [UInt8]
        let salts: [UInt8]
        var sums: [[UInt8]] = []
        private var sum = LogChecksum(isBigEndian: false)

        /// - Parameter open: those of the frames behind which their transaction goes on.
        init(salt: UInt8, pages: [UInt8], open: Set<Int> = []) {
            salts = [UInt8](repeating: salt, count: 8)
            bytes = [0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18, 0, 0, 2, 0, 0, 0, 0, 0] + salts
            sum.add(bytes[...])
            bytes += sum.bytes
            sums = [sum.bytes]
            for (number, page) in pages.enumerated() {
                let header: [UInt8] = [0, 0, 0, page, 0, 0, 0, open.contains(number) ? 0 : 9]
                let contents = [UInt8](repeating: page, count: LogFollowerPositionTests.size)
                sum.add(header[...])
                sum.add(contents[...])
                bytes += header + salts + sum.bytes + contents
                sums.append(sum.bytes)
            }
        }

        func position(_ frames: Int, change: UInt32, isInFile: Bool = false) -> LogPosition {
            LogPosition(
                changeCount: change,
                frameCount: Int64(frames),
                pageCount: 9,
                salts: salts,
                checksum: sums[frames],
                isBigEndian: false,
                movedCount: Int64(isInFile ? frames : frames - 1),
                attemptedCount: Int64(isInFile ? frames : frames - 1)
            )
        }
    }

    /// The file stays the same one, as SQLite leaves it.
    private func write(_ log: Log) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("db-wal")))
        try file.write(contentsOf: Data(log.bytes))
        try file.close()
    }

    private func follower() -> LogFollower { LogFollower(path: directory.file("db"), pageSize: Self.size) }

    @Test func whatWasCommittedMeanwhile() throws {
        let log = Log(salt: 1, pages: [2, 3, 3, 5])
        try write(log)
        var follower = follower()
        #expect(try follower.move(to: log.position(2, change: 7)) == nil)
        #expect(follower.overlay(pageCount: 9)?.pageNumbers == [2, 3])
        #expect(try follower.move(to: log.position(4, change: 9)) == [3, 5])
        #expect(follower.overlay(pageCount: 9)?.pageNumbers == [2, 3, 5])
        #expect(try follower.move(to: log.position(4, change: 9)) == [])
        // More transactions than the log has frames of.
        #expect(try follower.move(to: log.position(4, change: 10)) == nil)
        // Fewer frames than before.
        #expect(try follower.move(to: log.position(3, change: 10)) == nil)
    }

    /// Two transactions of which the log has one: the last frame of the other was written anew.
    @Test func fewerTransactionsThanChanges() throws {
        let log = Log(salt: 1, pages: [2, 3, 3, 5], open: [2])
        try write(log)
        var follower = follower()
        #expect(try follower.move(to: log.position(2, change: 7)) == nil)
        #expect(try follower.move(to: log.position(4, change: 9)) == nil)
        var other = self.follower()
        #expect(try other.move(to: log.position(2, change: 7)) == nil)
        #expect(try other.move(to: log.position(4, change: 8)) == [3, 5])
    }

    /// When a log begins anew, the former one is in the file. How far is known only if it was at the last look.
    @Test(arguments: [false, true]) func aLogThatBeginsAnew(wasInFile: Bool) throws {
        let log = Log(salt: 1, pages: [2, 3])
        try write(log)
        var follower = follower()
        #expect(try follower.move(to: log.position(2, change: 7, isInFile: wasInFile)) == nil)
        let next = Log(salt: 2, pages: [5])
        try write(next)
        #expect(try follower.move(to: next.position(1, change: 8)) == (wasInFile ? [5] : nil))
        #expect(follower.overlay(pageCount: 9)?.pageNumbers == [5])
    }

    enum Damage: CaseIterable { case none, page, salts, header, end, contents }

    /// A log that does not hold what its index says is not copied.
    @Test(arguments: Damage.allCases) func aDamagedLog(damage: Damage) throws {
        var log = Log(salt: 1, pages: damage == .page ? [2, 0, 3] : [2, 4, 3])
        let second = 32 + 24 + Self.size
        var position = log.position(3, change: 7)
        switch damage {
        case .none, .page: break
        case .salts: log.bytes[second + 9] ^= 1
        case .header: log.bytes[17] ^= 1
        case .contents: log.bytes[second + 24 + 100] ^= 1
        case .end:
            log.sums[3][2] ^= 1
            position = log.position(3, change: 7)
        }
        try write(log)
        var follower = follower()
        guard damage != .none else { return #expect(try follower.move(to: position) == nil) }
        let error = #expect(throws: DatabaseError.self) { try follower.move(to: position) }
        #expect(error?.reason == .damaged, "\(String(describing: error))")
    }
}
