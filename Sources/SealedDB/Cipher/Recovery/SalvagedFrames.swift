/// Reads the frames of a damaged log one by one.
struct SalvagedFrames {
    let contents: FileReader
    let size: Int64
    let cipher: PageCipher
    /// More pages than the database has, or will have when the log is in the file.
    let limit: Int64

    /// Where each frame begins.
    var offsets: StrideThrough<Int64> {
        stride(from: Int64(LogHeader.size), through: size - frameSize, by: Int64.Stride(frameSize))
    }
    var frameSize: Int64 { Int64(LogFrameHeader.size + cipher.parameters.pageSize) }

    struct Frame {
        let header: LogFrameHeader
        /// `nil` if it cannot be read.
        let page: [UInt8]?
        let isAuthentic: Bool
    }

    private func bytes(_ offset: Int64, _ count: Int) throws(DatabaseError) -> [UInt8]? {
        try readable { () throws(DatabaseError) in try contents.bytes(at: offset, count: count) }
    }

    /// - Returns: `nil` if its header cannot be read.
    func frame(at offset: Int64) throws(DatabaseError) -> Frame? {
        guard let header = try bytes(offset, LogFrameHeader.size).map({ LogFrameHeader($0[...]) }) else { return nil }
        let page = try bytes(offset + Int64(LogFrameHeader.size), cipher.parameters.pageSize)
        var isAuthentic = false
        if let page { isAuthentic = try cipher.isAuthentic(page, number: header.page) }
        return Frame(header: header, page: page, isAuthentic: isAuthentic)
    }

    /// What the header of the log says: the salts that tell its frames from those of an older one, and the checksum that the first
    /// frame continues. Without a header these are the salts of the first frame that is whole.
    func start() throws(DatabaseError) -> LogStart? {
        let header = try bytes(0, LogHeader.size).map(LogHeader.init)
        if let header, header.isWhole {
            if let salts = try saltsOfNewerLog(than: header) {
                return LogStart(salts: salts, sum: nil, isBigEndian: header.isBigEndian)
            }
            let sum = LogChecksum(isBigEndian: header.isBigEndian, after: header.checksum)
            return LogStart(salts: header.salts, sum: sum, isBigEndian: sum.isBigEndian)
        }
        var salts: ArraySlice<UInt8>?
        // The frame before, and the one before that if it does not continue that.
        var (previous, beforeGap): (LogFrameHeader?, LogFrameHeader?)
        for offset in offsets {
            guard let frame = try frame(at: offset), let page = frame.page, frame.isAuthentic else {
                (previous, beforeGap) = (nil, nil)
                continue
            }
            let claim = frame.header
            salts = salts ?? claim.salts
            var continues = false
            for isBigEndian in [false, true] {
                if offset == LogHeader.size,
                    header?.isLostHeader(of: claim, page[...], isBigEndian: isBigEndian) == true
                {
                    return LogStart(salts: claim.salts, sum: nil, isBigEndian: isBigEndian)
                }
                guard let previous else { continue }
                let sum = LogChecksum(isBigEndian: isBigEndian, after: previous.checksum).adding(claim, page[...])
                guard sum.bytes[...] == claim.checksum else { continue }
                continues = true
                // Those of one of them may be damaged.
                guard claim.salts == previous.salts else { continue }
                // Two frames of an older log stand behind one of the newer log that took its place.
                let isOlder = beforeGap.map { $0.page > 0 && claim.mayBeOlder(thanLogOf: $0.salts) } == true
                return LogStart(
                    salts: (isOlder ? beforeGap : nil)?.salts ?? claim.salts,
                    sum: nil,
                    isBigEndian: isBigEndian
                )
            }
            (previous, beforeGap) = (claim, continues ? nil : previous)
        }
        // No two neighbours are whole, so that no checksum is needed.
        return salts.map { LogStart(salts: $0, sum: nil, isBigEndian: false) }
    }

    /// The salts of the newest log whose frames stand behind the header of an older one; `nil` if there is none.
    private func saltsOfNewerLog(than header: LogHeader) throws(DatabaseError) -> ArraySlice<UInt8>? {
        var newest: ArraySlice<UInt8>?
        var previous: LogFrameHeader?
        for offset in offsets {
            guard let claim = try bytes(offset, LogFrameHeader.size).map({ LogFrameHeader($0[...]) }),
                claim.mayBeNewer(thanLogOf: newest ?? header.salts) || claim.salts == newest,
                let frame = try frame(at: offset), let page = frame.page, frame.isAuthentic
            else {
                previous = nil
                continue
            }
            // The salts of one frame alone may be damaged: it counts with the one before, or as the first of its log.
            if let previous {
                let sum = LogChecksum(isBigEndian: header.isBigEndian, after: previous.checksum)
                let follows = sum.adding(claim, page[...]).bytes[...] == claim.checksum
                if follows, previous.salts == claim.salts { newest = claim.salts }
            } else if offset == LogHeader.size,
                header.isLostHeader(of: claim, page[...], isBigEndian: header.isBigEndian)
            {
                newest = claim.salts
            }
            previous = claim
        }
        return newest
    }

    struct LogStart {
        let salts: ArraySlice<UInt8>
        let sum: LogChecksum?
        let isBigEndian: Bool
    }

    /// What the header of a frame must have been, by the frame behind it or by its own checksum; `nil` if the page is not authentic
    /// with that. Frames of a transaction that was cut off, which stand behind the end of the log, do not continue its checksum and
    /// give other numbers.
    ///
    /// The frame behind is asked first: by its own checksum, of which a bit was changed, a frame may have the right page, and a number of
    /// pages that no database has. Only the last frame has none behind it, and its database is no larger than the limit.
    func proven(
        _ frame: Frame,
        behind sum: LogChecksum,
        _ own: LogChecksum,
        next offset: Int64,
        _ salts: ArraySlice<UInt8>
    ) throws(DatabaseError) -> ProvenFrame? {
        guard let page = frame.page else { return nil }
        if let next = try self.frame(at: offset), next.header.salts == salts, let nextPage = next.page {
            let found = ProvenFrame(between: sum, page[...], next: next.header, nextPage[...])
            if found.isPossible(upTo: .max), try cipher.isAuthentic(page, number: found.page) { return found }
        }
        let proven = ProvenFrame(between: sum, page[...], own)
        guard proven.isPossible(upTo: limit) else { return nil }
        if frame.isAuthentic, proven.page == frame.header.page { return proven }
        return try cipher.isAuthentic(page, number: proven.page) ? proven : nil
    }

    /// Whether an authentic page is as it was written but for bytes that its code does not cover: the salt of the first page, which is
    /// known, or one byte of a header in clear, or of those that are reserved and not used.
    func isRestored(_ frame: Frame, behind sum: LogChecksum, _ stored: LogChecksum) throws(DatabaseError) -> Bool {
        guard var page = frame.page else { return false }
        let (clearCount, salt) = (cipher.clearBytes(ofPage: frame.header.page), cipher.salt)
        if clearCount == salt.count {
            page.replaceSubrange(..<clearCount, with: salt)
            if sum.adding(frame.header, page[...]).bytes == stored.bytes { return true }
        }
        let places = stride(from: 0, to: page.count, by: 8).filter { $0 < clearCount || $0 + 8 > cipher.endOfCode }
        return places.contains { place in
            var (before, behind) = (sum, stored)
            before.add(frame.header.numbers)
            before.add(page[..<place])
            behind.remove(page[(place + 8)...])
            let word = before.step(to: behind)
            return zip(word, page[place..<place + 8]).filter { $0 != $1 }.count == 1
        }
    }

    /// Whether the frame at an offset, or the first one behind it whose own checksum is whole, continues a checksum.
    /// - Returns: `nil` if that cannot be told, because the page of a frame with these salts is damaged.
    func continues(
        _ sum: LogChecksum,
        at offset: Int64,
        _ salts: ArraySlice<UInt8>
    ) throws(DatabaseError) -> Bool? {
        var sum = sum
        for next in 0..<8 as Range<Int64> {
            guard let frame = try frame(at: offset + next * frameSize) else { return false }
            guard let page = frame.page, frame.isAuthentic else { return frame.header.salts == salts ? nil : false }
            sum = sum.adding(frame.header, page[...])
            if sum.bytes[...] == frame.header.checksum { return true }
        }
        return false
    }
}
