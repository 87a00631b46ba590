import Foundation

/// What is another one when something has written to a file, but not when it gets another mode or one more name.
struct FileMark: Equatable {
    private let size: off_t
    private let seconds: Int
    private let nanoseconds: Int

    /// - Returns: `nil` if there is none.
    init?(_ path: String) throws(DatabaseError) {
        guard let status = try FileSystem.statusIfPresent(path) else { return nil }
        (size, seconds, nanoseconds) = (status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}

/// Reads the frames of a store's log that were committed since the last look, so that none is missed.
///
/// As with ``LogFollower``, whose argument holds here too: the position of each look comes from a connection in a read
/// transaction, and the transaction of one look does not end before that of the next has begun. Besides, the frames of a look
/// stay in the log until its transaction ends:
///
/// - If the log has frames behind the last look, their transaction needs them, or keeps everybody from moving them into the
///   file, so the log does not begin anew.
/// - If it has none, there is nothing to read.
///
/// So the transaction of a look must not end before its frames are read.
struct FollowedLog {
    private let path: String
    private let pageSize: Int
    private var contents: FileReader?
    /// The log's index, as its name led to it when the log was opened.
    private var index: stat?

    private static let bytesAtOnce = 1 << 20

    /// Frames of one log that are still to be read.
    struct Rest {
        var start: LogPlace
        let end: Int64

        var count: Int64 { end - start.frame }
    }

    /// - Parameter path: that of the store.
    init(path: String, pageSize: Int) {
        (self.path, self.pageSize) = (path + "-wal", pageSize)
    }

    /// Opens the file, unless there is none yet. What takes its name later is another log.
    mutating func open() throws(DatabaseError) {
        if index == nil { index = try FileSystem.statusIfPresent(indexPath) }
        if contents == nil { contents = try FileReader(path) }
    }

    private var indexPath: String { path.withoutLast(bytes: 3) + "shm" }

    /// Whether the log had an index when it was opened.
    var hasIndex: Bool { index != nil }

    /// Whether those who open the store now have another log, or another index of it.
    func isUnseenByOthers() throws(DatabaseError) -> Bool {
        if try hasLostName() { return true }
        guard let index else { return false }
        return try FileSystem.statusIfPresent(indexPath)?.isSameFile(as: index) != true
    }

    /// Whether nobody can find the log under its name any more: what is added to it comes from those who have the store open
    /// that it belongs to.
    func hasLostName() throws(DatabaseError) -> Bool {
        guard let contents else { return false }
        guard let named = try FileSystem.statusIfPresent(path) else { return true }
        return try !contents.isSameFile(as: named)
    }

    private var frameSize: Int { LogFrameHeader.size + pageSize }

    /// The beginning of the log that a position lies in; `nil` if there is none, or if it has begun anew since.
    mutating func header(of position: LogPosition) throws(DatabaseError) -> [UInt8]? {
        try open()
        guard let header = try contents?.bytes(at: 0, count: LogHeader.size),
            LogPlace.isHeader(header, pageSize: pageSize), header[16..<24] == position.salts[...]
        else { return nil }
        return header
    }

    /// The place of a position.
    mutating func place(of position: LogPosition) throws(DatabaseError) -> LogPlace {
        guard position.frameCount > 0, let header = try header(of: position) else { return .none }
        return LogPlace(header: header, frame: position.frameCount, checksum: position.checksum)
    }

    /// The frames between two looks.
    /// - Returns: `nil` if it is not known which these are: the log has begun anew unseen.
    mutating func frames(after old: LogPosition, to new: LogPosition) throws(DatabaseError) -> Rest? {
        let isSameLog = old.salts == new.salts
        guard isSameLog || old.isWholeInFile else { return nil }
        let first = isSameLog ? old.frameCount : 0
        guard new.frameCount > first else {
            guard new.frameCount == first, new.changeCount == old.changeCount else { return nil }
            return Rest(start: LogPlace(header: nil, frame: first, checksum: new.checksum), end: first)
        }
        guard let header = try header(of: new) else { return nil }
        let start =
            first > 0
            ? LogPlace(header: header, frame: first, checksum: old.checksum) : LogPlace(beginningOf: header)
        let range = Rest(start: start, end: new.frameCount)
        guard let commitCount = try commitCount(range, new.checksum), new.changeCount &- old.changeCount <= commitCount
        else { return nil }
        return range
    }

    /// The frames behind a place at which an earlier shipper stopped.
    /// - Returns: `nil` if the log is not the one that it read, or does not have these frames.
    mutating func frames(behind place: LogPlace, to new: LogPosition) throws(DatabaseError) -> Rest? {
        guard let header = place.header, try self.header(of: new) == header, new.frameCount >= place.frame else {
            return nil
        }
        if place.frame > 0 {
            let offset = self.offset(ofFrame: place.frame - 1)
            guard let last = try contents?.bytes(at: offset, count: LogFrameHeader.size),
                last[8..<16] == header[16..<24], last[16..<24] == place.checksum[...]
            else { return nil }
        } else if place.checksum[...] != header[24..<32] {
            return nil
        }
        let range = Rest(start: place, end: new.frameCount)
        guard try commitCount(range, new.checksum) != nil else { return nil }
        return range
    }

    private func offset(ofFrame index: Int64) -> Int64 { Int64(LogHeader.size) + index * Int64(frameSize) }

    /// How many transactions end in these frames; `nil` if they are not whole, or not those that the index has.
    private func commitCount(_ range: Rest, _ checksum: [UInt8]) throws(DatabaseError) -> Int? {
        guard let header = range.start.header else { return nil }
        var scan = FrameScan(header, after: range.start.checksum, pageSize: pageSize)
        var next = range.start.frame
        var count = 0
        while next < range.end {
            guard let frames = try read(next, limit: range.end, bytes: FollowedLog.bytesAtOnce),
                let ends = scan.read(frames[...], first: next)
            else { return nil }
            count += ends.count
            next += Int64(frames.count / frameSize)
        }
        return scan.checksum == checksum ? count : nil
    }

    /// The bytes of frames from this one on.
    private func read(_ first: Int64, limit: Int64, bytes: Int) throws(DatabaseError) -> [UInt8]? {
        let count = min(Int64(max(1, bytes / frameSize)), limit - first)
        return try contents?.bytes(at: offset(ofFrame: first), count: Int(count) * frameSize)
    }

    /// Reads the next frames of a range.
    /// - Parameter bytes: about so many.
    /// - Returns: the frames, where transactions end in them, and the place behind them.
    func next(
        _ range: Rest,
        bytes: Int
    ) throws(DatabaseError) -> (frames: [UInt8], ends: [(frame: Int64, pageCount: Int64)], end: LogPlace) {
        guard let header = range.start.header,
            let frames = try read(range.start.frame, limit: range.end, bytes: bytes)
        else { throw FollowedLog.damaged }
        var scan = FrameScan(header, after: range.start.checksum, pageSize: pageSize)
        guard let ends = scan.read(frames[...], first: range.start.frame) else { throw FollowedLog.damaged }
        let last = range.start.frame + Int64(frames.count / frameSize)
        return (frames, ends, LogPlace(header: header, frame: last, checksum: scan.checksum))
    }

    /// The pages that replace those of the file, for a look whose transaction is open.
    /// - Parameter pageCount: that of the store.
    mutating func overlay(_ position: LogPosition, pageCount: Int64) throws(DatabaseError) -> LogOverlay? {
        guard !position.isWholeInFile else { return nil }
        guard try header(of: position) != nil, let contents else { throw FollowedLog.damaged }
        var offsets: [Int64: Int64] = [:]
        for index in 0..<position.frameCount {
            let offset = offset(ofFrame: index)
            guard let header = try contents.bytes(at: offset, count: LogFrameHeader.size),
                header[8..<16] == position.salts[...]
            else { throw FollowedLog.damaged }
            offsets[LogFrameHeader(header[...]).page] = offset + Int64(LogFrameHeader.size)
        }
        return LogOverlay(pageSize: pageSize, pageCount: pageCount, offsets: offsets, contents: contents)
    }

    private static let damaged = DatabaseError(
        extendedCode: SQLITE_CORRUPT,
        reason: .damaged,
        message: """
            The write-ahead log of the store does not hold what its index says. Nothing of it was shipped. Look at the store \
            with `sealdb verify`.
            """
    )
}
