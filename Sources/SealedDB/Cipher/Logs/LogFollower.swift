/// Follows the write-ahead log of a store: tells which pages transactions have changed since the last look, and where they
/// stand in the log.
///
/// The position of each look must come from a connection in a read transaction, and the transaction of one look must not end
/// before that of the next has begun. Then no frame is missed:
///
/// - A log begins anew only when all of it is in the database file, and when no reader needs it. So while a transaction
///   uses frames of the log, this stays the same log, to whose end frames are added.
/// - A transaction that began when the whole log was in the file does not keep the log from beginning anew. But it keeps
///   everybody from moving later frames into the file, so the new log is whole at the next look, and does not begin anew a
///   second time.
///
/// Each frame's checksum covers all frames before it, and that of the last one stands in the index: so the frames that are
/// read are those of the index, and there is none between them. As many transactions must be among them as the index has
/// counted; if there are fewer, each page may have been changed.
/// <https://www.sqlite.org/walformat.html>
struct LogFollower {
    private let path: String
    private let pageSize: Int
    private var contents: FileReader?
    /// That of the last look; `nil` if it failed.
    private var position: LogPosition?
    /// Where the bytes of the pages stand that are not in the file, by page number.
    private var offsets: [Int64: Int64] = [:]

    /// - Parameter path: that of the store.
    init(path: String, pageSize: Int) {
        (self.path, self.pageSize) = (path + "-wal", pageSize)
    }

    /// - Returns: the pages that were changed since the last look; `nil` if that is not known, so that each page may have
    ///   been, as at the first look.
    mutating func move(to new: LogPosition) throws(DatabaseError) -> Set<Int64>? {
        let old = position
        let changeCount = old?.changeCount
        position = nil
        var changed: Set<Int64>?
        if let old, old.salts == new.salts {
            changed = try readFrames(after: old, to: new, changeCount)
        } else if let old, old.isWholeInFile {
            offsets = [:]
            changed = try readFrames(after: nil, to: new, changeCount)
        }
        if changed == nil {
            offsets = [:]
            if !new.isWholeInFile, try readFrames(after: nil, to: new, nil) == nil { throw LogFollower.damagedLog }
        }
        // From now on the pages are read from the file: this log may begin anew at any moment.
        if new.isWholeInFile { offsets = [:] }
        position = new
        return changed
    }

    /// The pages that replace those of the file, as of the last look; `nil` if the file alone is complete.
    /// - Parameter pageCount: that of the store.
    func overlay(pageCount: Int64) -> LogOverlay? {
        guard let contents, !offsets.isEmpty else { return nil }
        return LogOverlay(pageSize: pageSize, pageCount: pageCount, offsets: offsets, contents: contents)
    }

    /// Reads the frames from one position to another of the same log.
    /// - Parameters:
    ///   - old: `nil` for the beginning of the log.
    ///   - changeCount: that of the last look; `nil` if there was none.
    /// - Returns: the numbers of their pages; `nil` if the log does not hold these frames.
    private mutating func readFrames(
        after old: LogPosition?,
        to new: LogPosition,
        _ changeCount: UInt32?
    ) throws(DatabaseError) -> Set<Int64>? {
        let first = old?.frameCount ?? 0
        guard new.frameCount > first else {
            let isUnchanged = changeCount.map { $0 == new.changeCount } ?? true
            return new.frameCount == first && isUnchanged ? [] : nil
        }
        if contents == nil { contents = try FileReader(path) }
        guard let contents, var sum = try checksum(after: old, new, contents) else { return nil }
        let frameSize = LogFrameHeader.size + pageSize
        var pages: Set<Int64> = []
        var commitCount = 0
        for number in first..<new.frameCount {
            let offset = Int64(LogHeader.size) + number * Int64(frameSize)
            guard let bytes = try contents.bytes(at: offset, count: frameSize) else { return nil }
            let frame = LogFrameHeader(bytes[...])
            sum = sum.adding(frame, bytes[LogFrameHeader.size...])
            guard frame.page > 0, frame.salts == new.salts[...], frame.checksum == sum.bytes[...] else { return nil }
            if frame.pageCount > 0 { commitCount += 1 }
            pages.insert(frame.page)
            offsets[frame.page] = offset + Int64(LogFrameHeader.size)
        }
        guard sum.bytes == new.checksum else { return nil }
        // Unknown before the first look. The last frame of a transaction may be repeated.
        guard let changeCount, new.changeCount &- changeCount > commitCount else { return pages }
        return nil
    }

    private func checksum(
        after old: LogPosition?,
        _ new: LogPosition,
        _ contents: FileReader
    ) throws(DatabaseError) -> LogChecksum? {
        if let old, old.frameCount > 0 { return LogChecksum(isBigEndian: new.isBigEndian, after: old.checksum[...]) }
        guard let header = try LogHeader(of: contents), header.salts == new.salts[...] else { return nil }
        return LogChecksum(isBigEndian: new.isBigEndian, after: header.checksum)
    }

    private static let damagedLog = DatabaseError(
        extendedCode: SQLITE_CORRUPT,
        reason: .damaged,
        message: """
            The write-ahead log of the store does not hold what its index says. Nothing was changed. Look at the store with \
            `sealdb verify`.
            """
    )
}
