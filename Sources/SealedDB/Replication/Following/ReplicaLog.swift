/// Adds whole transactions to the log of a replica.
struct ReplicaLog {
    /// Pages of the next transaction, in an order that is the same each time.
    typealias Pages = (_ add: (_ page: Int64, _ bytes: ArraySlice<UInt8>) throws(DatabaseError) -> Void)
        throws(DatabaseError) -> Void

    let keyless: KeylessLog
    private let pageSize: Int

    private static let bytesAtOnce = 1 << 20

    init(_ keyless: KeylessLog) {
        self.keyless = keyless
        pageSize = keyless.pageSize
    }

    private var frameSize: Int { LogFrameHeader.size + pageSize }

    /// The beginning of a log that no other one has.
    static func newHeader(pageSize: Int) throws(DatabaseError) -> [UInt8] {
        let name = try FileSystem.randomName()
        guard let salts = ObjectText.bytes(hex: name), salts.count == LogPlace.checksumSize else {
            throw .notAllowed("\(name) is no number.")
        }
        return LogHeader.bytes(pageSize: pageSize, salts: salts)
    }

    /// Goes through frames, each of which gets the checksum of all before it.
    private struct Frames {
        private let salts: [UInt8]
        private var sum: LogChecksum
        private(set) var pages: [UInt32] = []
        /// The last frame is known when the next one comes, or none.
        private var held: (page: Int64, bytes: ArraySlice<UInt8>)?
        private let take: (_ head: [UInt8], _ bytes: ArraySlice<UInt8>) throws(DatabaseError) -> Void

        init(
            salts: [UInt8],
            after checksum: [UInt8],
            _ take: @escaping (_ head: [UInt8], _ bytes: ArraySlice<UInt8>) throws(DatabaseError) -> Void
        ) {
            (self.salts, self.take) = (salts, take)
            sum = LogChecksum(isBigEndian: false, after: checksum[...])
        }

        var checksum: [UInt8] { sum.bytes }

        mutating func add(_ page: Int64, _ bytes: ArraySlice<UInt8>) throws(DatabaseError) {
            try release(pageCount: 0)
            held = (page, bytes)
        }

        mutating func release(pageCount: Int64) throws(DatabaseError) {
            guard let (page, bytes) = held else { return }
            held = nil
            let start = [page, pageCount].flatMap { BigEndian.bytes(UInt32($0)) }
            sum.add(start[...])
            sum.add(bytes)
            pages.append(UInt32(page))
            try take(start + salts + sum.bytes, bytes)
        }
    }

    /// What a transaction makes of the log.
    struct Plan {
        let moment: FollowerState.ReplicaMoment
        let pages: [UInt32]
        /// Whether the log begins with it; then its header.
        let header: [UInt8]?
    }

    /// Computes what the log is after a transaction. Nothing is written.
    /// - Returns: `nil` if it has no pages.
    func plan(
        _ place: RepositoryPlace,
        after done: FollowerState.ReplicaMoment,
        _ pages: Pages
    ) throws(DatabaseError) -> Plan? {
        let header = done.frameCount == 0 ? try ReplicaLog.newHeader(pageSize: pageSize) : nil
        let salts = header.map { Array($0[16..<24]) } ?? done.salts
        var frames = Frames(salts: salts, after: header.map { Array($0[24..<32]) } ?? done.checksum) { _, _ in }
        try pages { page, bytes throws(DatabaseError) in try frames.add(page, bytes) }
        try frames.release(pageCount: place.pageCount)
        guard !frames.pages.isEmpty else { return nil }
        let count = done.frameCount + Int64(frames.pages.count)
        guard count <= Int64(UInt32.max) >> 1 else {
            throw .notAllowed("The log of \(keyless.path) has too many frames.")
        }
        let moment = FollowerState.ReplicaMoment(
            place: place,
            frameCount: count,
            salts: salts,
            checksum: frames.checksum
        )
        return Plan(moment: moment, pages: frames.pages, header: header)
    }

    /// Writes a transaction, syncs it and has all connections see it, while nobody else can write.
    /// - Parameters:
    ///   - isEnd: whether the log still ends as it was left. If not, nothing is written.
    ///   - synced: is called before they see it.
    /// - Returns: where the log ends then; `nil` if nothing was written.
    func add(
        _ plan: Plan,
        after done: FollowerState.ReplicaMoment,
        requiring isEnd: (LogPosition) throws(DatabaseError) -> Bool,
        synced: () throws(DatabaseError) -> Void,
        _ pages: Pages
    ) throws(DatabaseError) -> LogPosition? {
        try keyless.whileNobodyWrites { position throws(DatabaseError) in
            guard try isEnd(position) else { return nil }
            if let header = plan.header { try keyless.write(header, at: 0) }
            var buffer: [UInt8] = []
            var offset = Int64(LogHeader.size) + done.frameCount * Int64(frameSize)
            func flush() throws(DatabaseError) {
                try keyless.write(buffer, at: offset)
                offset += Int64(buffer.count)
                buffer.removeAll(keepingCapacity: true)
            }
            // The last frame makes all of them count, so it is written when they are known to be right.
            var mayFlush = true
            let start = plan.header.map { Array($0[24..<32]) } ?? done.checksum
            var frames = Frames(salts: plan.moment.salts, after: start) { head, bytes throws(DatabaseError) in
                buffer += head
                buffer += bytes
                if buffer.count >= ReplicaLog.bytesAtOnce, mayFlush { try flush() }
            }
            try pages { page, bytes throws(DatabaseError) in try frames.add(page, bytes) }
            mayFlush = false
            guard frames.pages.count == plan.pages.count - 1, frames.pages[...] == plan.pages.dropLast() else {
                throw ReplicaLog.changed(keyless.path)
            }
            try frames.release(pageCount: plan.moment.place.pageCount)
            guard frames.checksum == plan.moment.checksum else { throw ReplicaLog.changed(keyless.path) }
            try flush()
            try keyless.synchronize()
            try synced()
            let addition = KeylessLog.Addition(
                pages: plan.pages,
                pageCount: plan.moment.place.pageCount,
                salts: plan.moment.salts,
                checksum: plan.moment.checksum
            )
            return try keyless.publish(addition, after: done.frameCount)
        }
    }

    /// Sees to it that nobody finds frames behind the end of the log, as those of a transaction that was not told, or of the log
    /// before: whoever opens the log first would take them for a part of it. For ``KeylessLog/whileNobodyWrites(_:)``.
    func discardRest(after frameCount: Int64) throws(DatabaseError) {
        let end = Int64(LogHeader.size) + frameCount * Int64(frameSize)
        guard try keyless.size() > end else { return }
        if frameCount == 0 {
            try keyless.write(ReplicaLog.newHeader(pageSize: pageSize), at: 0)
        } else {
            try keyless.write([UInt8](repeating: 0, count: LogFrameHeader.size), at: end)
        }
        try keyless.synchronize()
    }

    /// Gives back the room of frames behind the end of the log. For ``KeylessLog/whileNobodyWrites(_:)``.
    func cutOff(after frameCount: Int64) throws(DatabaseError) {
        let end = Int64(LogHeader.size) + frameCount * Int64(frameSize)
        if try keyless.size() > end { try keyless.truncate(to: end) }
    }

    private static func changed(_ path: String) -> DatabaseError {
        .damagedObject(path, "what was to be added to it was not the same when it was read again; nothing was added")
    }
}
