import Foundation

/// Ships a store to a repository while others use it: first all its pages, and then what is committed, as it stands encrypted
/// in the log.
///
/// It is a reader of the store, beside the processes that write. Between two calls of ``ship(progress:)`` it keeps a read
/// transaction, so that the log cannot begin anew before its frames are shipped. It lets the log begin anew itself, when all
/// is shipped; see ``relieveLog()``.
///
/// Not for several threads at once.
package final class Replicator {
    /// How it ships.
    package struct Options: Sendable {
        /// A snapshot is made so long after the last one; `nil` for none but the one that begins a generation.
        package var snapshotInterval: Duration?
        /// Whether a store at another path than before may go on in this repository.
        package var adopts = false
        /// How long to wait for others that have the store locked.
        package var busyTimeout: Duration = .seconds(2)
        /// Whether key slots are used that are older than those that the store has seen.
        var acceptsOlderSlots = false
        /// Whether it may go on. It is asked before each object; if not, the call ends.
        var mayGoOn: @Sendable () -> Bool = { true }
        /// Runs the body while nobody else in this process writes to the store or makes a checkpoint, which a second one at
        /// the same time could spoil. Returns false if that cannot be had now, and the body was not called.
        var turn: @Sendable (_ body: () -> Void) -> Bool = { body in
            body()
            return true
        }
        /// About so many bytes of the log make a segment.
        var segmentBytes = 4 << 20
        /// So many pages make a chunk of a snapshot.
        var chunkPages: Int64 = 256
        /// The bytes of the log from which on it is to begin anew.
        var relievedAt: Int64 = 4 << 20

        package init() {}
    }

    /// What one call has shipped. All of it is durable in the repository.
    package struct Report: Sendable, Codable, Hashable {
        /// The generation that the store is shipped to.
        package var generation: Int64 = 0
        /// Why it was begun by this call; `nil` if it was there.
        package var begunBecause: String?
        /// Whether a snapshot was made.
        package var madeSnapshot = false
        /// How many pages of it were not in the repository yet, in bytes.
        package var newSnapshotBytes: Int64 = 0
        package var commitCount = 0
        package var frameCount: Int64 = 0
        /// The bytes of segments.
        package var byteCount: Int64 = 0
        /// The objects of the repository that were damaged, and were written again by this call, or by one before that failed.
        package var healed: [String] = []
        /// The bytes of the store's log after the call.
        package var logBytes: Int64 = 0
        /// When the store was as the repository has it now, in milliseconds since 1970.
        package var shippedAt: Int64 = 0
    }

    let storage: any RepositoryStorage
    let path: String
    let key: Key
    let settings: CipherSettings
    var options: Options
    var report = Report()
    var mark: RepositoryMark?
    /// `nil` before the store is open.
    var reading: FollowedStore?
    /// Where the repository ends; `nil` if a new generation has to begin.
    var tail: Tail?
    /// Why it has to.
    var reason = SnapshotManifest.Reason.first
    /// The number of the newest generation; 0 if there is none.
    var newestGeneration: Int64 = 0
    /// The digest of its last object.
    var newestDigest: String?
    /// The snapshot that is the end of the repository, if nothing follows it; and that end.
    var newestSnapshot: (manifest: SnapshotManifest, end: Tail)?
    /// What the last object begins with, as it was when it was written or first seen.
    var lastSeen: (name: ObjectName, start: [UInt8])?
    /// Whether the repository lies in another place than before, so that nothing of it is gone on with.
    var hasMoved = false
    /// The digest of the key slots that are there for certain.
    var slotsSeen: String?
    /// What was not written for certain.
    var unfinished: Writing?
    /// The objects that were damaged and were written again, and that no report has named.
    var healed: [String] = []
    /// When the last snapshot was made, by a clock that does not jump.
    var lastSnapshot: ContinuousClock.Instant?
    /// Where the log has to be beyond before it is tried again to let it begin anew.
    var relieved: Int64 = 0

    /// When the look was begun that the repository has now, by a clock that does not jump: what was committed before is in it.
    /// `nil` before the first one.
    private(set) var shippedLook: ContinuousClock.Instant?

    /// What is open while the store is followed.
    struct FollowedStore {
        /// The connection whose transaction is that of the last look.
        var current: Connection
        var other: Connection
        var log: FollowedLog
        var position: LogPosition
        var time: RepositoryTime
        /// When the look was begun, by a clock that does not jump.
        var began: ContinuousClock.Instant
        /// The store's file at the last look, or since an earlier one.
        var mark: FileMark?
        /// What of the last look is not shipped.
        var pending: FollowedLog.Rest?
        /// The same, if it was read from the log already: then the log need not keep it.
        var blocks: [Block] = []
        let cipher: PageCipher
        let pageSize: Int
        let inode: UInt64
        let lock: ShipperLock
        /// The store's slots, and whose they are; `nil` if it has none.
        var slots: (bytes: [UInt8], owner: SlotOwner)?

        var isShipped: Bool { (pending?.count ?? 0) == 0 && blocks.isEmpty }

        /// - Returns: whether both are closed.
        @discardableResult
        func close() -> Bool {
            // The connections keep its file until here.
            lock.release()
            // Both are closed, whatever becomes of the first.
            let isClosed = current.close()
            return other.close() && isClosed
        }
    }

    /// Frames that were read from the log and authenticated.
    struct Block {
        let start: LogPlace
        let end: LogPlace
        let ends: [(frame: Int64, pageCount: Int64)]
        let frames: [UInt8]
        let time: RepositoryTime
    }

    /// The end of what is in the repository.
    struct Tail {
        let generation: Int64
        var sequence: Int64
        var digest: String
        var place: LogPlace
        var time: RepositoryTime
        var slots: String?
        /// The segment after which the last snapshot was made.
        var snapshot: Int64
        var bound: PageBound
    }

    /// An object that is being written, and what is true when it is there. If it is not known whether it is, that comes first
    /// at the next call: it would not be the same then.
    struct Writing {
        let name: ObjectName
        let bytes: [UInt8]
        let tail: Tail
        /// How many transactions end in it.
        var commitCount = 0
        var frameCount: Int64 = 0
        /// Whether it is the next block.
        var isBlock = false
    }

    /// Nothing is read or written before ``ship(progress:)``.
    /// - Parameters:
    ///   - directory: the directory of the repository, which is made if only its last part is missing; or `s3://bucket/prefix`.
    ///   - access: how an object store is reached.
    ///   - mark: that of the repository, if it is known. Then its directory is not made: where it is missing, its disk may not
    ///     be mounted.
    convenience init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        directory: String,
        access: RepositoryAccess = .init(),
        options: Options = .init(),
        mark: RepositoryMark?
    ) throws(DatabaseError) {
        let storage = try access.open(directory, creates: mark == nil)
        try self.init(path: path, key: key, settings: cipherSettings, storage: storage, options: options)
        self.mark = mark
    }

    /// The same, for a repository of which nothing is known.
    package convenience init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        directory: String,
        access: RepositoryAccess = .init(),
        options: Options = .init()
    ) throws(DatabaseError) {
        try self.init(
            path: path,
            key: key,
            cipherSettings: cipherSettings,
            directory: directory,
            access: access,
            options: options,
            mark: nil
        )
    }

    init(
        path: String,
        key: Key,
        settings: CipherSettings = .init(),
        storage: any RepositoryStorage,
        options: Options = .init()
    ) throws(DatabaseError) {
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        (self.path, self.key, self.settings, self.storage, self.options) = (resolved, key, settings, storage, options)
    }

    deinit {
        close()
    }

    /// Ends the read transaction and gives the repository back.
    package func close() {
        // The connections have only read, so closing them loses nothing. What stays open is closed with the process.
        reading?.close()
        (reading, tail, unfinished, slotsSeen) = (nil, nil, nil, nil)
        storage.release()
    }

    // MARK: Shipping

    /// Ships what was committed up to now. What the report says is in the repository, durably.
    /// - Parameter progress: called while a snapshot is made. If it throws, the call ends.
    /// - Throws: what went wrong. What was reported before stays shipped; call it again, and it goes on there.
    package func ship(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        try shipWithoutRelief(progress)
        do throws(DatabaseError) {
            try relieve()
        } catch {
            closeWithoutGeneration()
            throw error
        }
        report.logBytes = logBytes
        return report
    }

    /// Like ``ship(progress:)``, but leaves the log as it is. Call ``relieve()`` when nobody waits for what is shipped.
    @discardableResult
    func shipWithoutRelief(_ progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        report = Report()
        do throws(DatabaseError) {
            try requireSamePlace()
            try requireSameRepository()
            try requireSameEnd()
            if let unfinished { try put(unfinished) }
            try requireSameFile()
            try requireSameLog()
            if reading == nil { try open() }
            // Before what is committed with them: a store refuses slots that are older than those it has seen. Those that are
            // changed from here on come after it.
            try shipSlots()
            try shipRest()
            if tail != nil { try moveOn() }
            if tail == nil {
                try beginGeneration(progress)
            } else {
                try shipRest()
                try shipSlots()
                if isSnapshotDue { try makeSnapshot(.interval, progress) }
            }
            try requireStillNamed()
            try requireSamePlace()
            report.generation = tail?.generation ?? 0
            report.shippedAt = reading?.time.milliseconds ?? 0
            shippedLook = reading?.began
        } catch {
            let error = explained(error)
            closeWithoutGeneration()
            throw error
        }
        report.logBytes = logBytes
        (report.healed, healed) = (healed, [])
        return report
    }

    /// Without a generation nothing depends on the transaction, which would keep the log.
    private func closeWithoutGeneration() {
        guard tail == nil else { return }
        // As in `close()`.
        reading?.close()
        reading = nil
    }

    /// Lets the log begin anew, if it is long enough; see ``relieveLog()``.
    func relieve() throws(DatabaseError) {
        guard needsRelief else { return }
        var failure: DatabaseError?
        let hadTurn = options.turn {
            do throws(DatabaseError) { try self.relieveLog() } catch { failure = error }
        }
        if let failure { throw failure }
        guard hadTurn else { return }
        // What was read from the log is not there for the next one.
        try shipRest()
        report.logBytes = logBytes
    }

    /// - Throws: ``DatabaseError/Reason/interrupted`` if the caller wants to end.
    func requireTime() throws(DatabaseError) {
        guard !options.mayGoOn() else { return }
        throw DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "Shipping was stopped. What was reported as shipped stays, and the next shipper goes on there."
        )
    }

    /// The bytes of the store's log.
    package var logBytes: Int64 {
        guard let reading else { return 0 }
        return reading.position.frameCount * Int64(reading.pageSize + LogFrameHeader.size)
    }

    /// The bytes of the log that are not in the repository; `nil` if it is not known which these are.
    func unshippedBytes() -> Int64? {
        // It is told for people, so an error counts as not known.
        guard let reading, tail != nil, let end = try? reading.current.logPosition() else { return nil }
        let frameSize = Int64(reading.pageSize + LogFrameHeader.size)
        let read = reading.blocks.reduce(0) { $0 + Int64($1.frames.count) }
        let looked = end.salts == reading.position.salts ? reading.position.frameCount : 0
        return read + ((reading.pending?.count ?? 0) + max(0, end.frameCount - looked)) * frameSize
    }

    /// Whether a failure may be over at the next attempt.
    package static func mayPass(_ error: DatabaseError) -> Bool {
        switch error.reason {
        // Another key, no WAL mode, another shipper, another repository: somebody has to do something.
        case .wrongKey, .keyRequired, .unsupported, .alreadyExists, .unverified, .unusableSettings, .wrongEngine: false
        default: true
        }
    }

    /// Ships what is left of the last look.
    /// - Returns: false if it cannot be read.
    func shipReadable() throws(DatabaseError) -> Bool {
        while tail != nil {
            let block: Block?
            do throws(DatabaseError) {
                block = try nextBlock()
            } catch {
                return false
            }
            guard let block else { break }
            do throws(DatabaseError) {
                try ship(block)
            } catch {
                guard error.reason == .damaged else { throw error }
                return false
            }
        }
        return tail != nil
    }

    // MARK: Following

    /// Goes to a new look. What was to be shipped of the last one must be.
    func moveOn() throws(DatabaseError) {
        guard var open = reading, open.isShipped else { return }
        let began = ContinuousClock.now
        do throws(DatabaseError) {
            let found = try FileMark(path)
            let position = try Replicator.look(open.other, path)
            let pending = try open.log.frames(after: open.position, to: position)
            let isOverwritten = try isOverwritten(open, found, position)
            // What is known of the file holds on, so that nothing goes unnoticed between this look and a new mark.
            let isKnown = open.mark != nil && open.position.hasSameFile(as: position) && !isOverwritten
            let mark = isKnown ? open.mark : try FileMark(path)
            // A transaction that has only read loses nothing.
            try open.current.run("ROLLBACK")
            swap(&open.current, &open.other)
            if position.salts != open.position.salts { relieved = 0 }
            (open.position, open.mark, open.time, open.began, open.pending) = (position, mark, .now, began, pending)
            reading = open
            if isOverwritten || pending == nil { (tail, reason) = (nil, isOverwritten ? .overwritten : .logUnseen) }
        } catch {
            // The last transaction stays. If this one cannot end, neither can the next begin. It is open even if its first
            // read failed.
            if !open.other.isAutocommit { try? open.other.run("ROLLBACK") }
            throw error
        }
    }

    /// Ships what is left of the last look.
    func shipRest() throws(DatabaseError) {
        while tail != nil, let block = try nextBlock() {
            try requireTime()
            try ship(block)
        }
    }

    private func nextBlock() throws(DatabaseError) -> Block? {
        if let block = reading?.blocks.first { return block }
        return try readBlock()
    }

    /// Reads the next frames from the log, and authenticates them.
    func readBlock() throws(DatabaseError) -> Block? {
        guard let open = reading, let pending = open.pending, pending.count > 0 else { return nil }
        let (frames, ends, end): ([UInt8], [(frame: Int64, pageCount: Int64)], LogPlace)
        do throws(DatabaseError) {
            (frames, ends, end) = try open.log.next(pending, bytes: options.segmentBytes)
        } catch {
            // A log that is whole in the file may begin anew at any moment, also before it has been read.
            guard open.position.isWholeInFile, error.reason == .damaged else { throw error }
            reading?.pending = nil
            (tail, reason) = (nil, .logUnseen)
            return nil
        }
        try requireAuthentic(frames, open)
        return Block(start: pending.start, end: end, ends: ends, frames: frames, time: open.time)
    }

    /// What stands in the log and was not written with the store's key is not shipped as if it were sound.
    private func requireAuthentic(_ frames: [UInt8], _ open: FollowedStore) throws(DatabaseError) {
        guard settings.parameters.usesHMAC else { return }
        let frameSize = LogFrameHeader.size + open.pageSize
        for start in stride(from: 0, to: frames.count, by: frameSize) {
            let frame = frames[start..<(start + frameSize)]
            let page = LogFrameHeader(frame).page
            if try open.cipher.isAuthentic(frame.dropFirst(LogFrameHeader.size), number: page) { continue }
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log of \(path) has a page \(page) that was not written with its key. Nothing of it was shipped; what \
                    was shipped before stays. Look at the store with `sealdb verify`.
                    """
            )
        }
    }

    private func ship(_ block: Block) throws(DatabaseError) {
        guard var tail, let pageSize = reading?.pageSize else { return }
        guard tail.bound.read(block.frames[...], pageSize: pageSize) else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    The log of \(path) says that the store has more pages than it can have: somebody has changed it. Nothing \
                    of it was shipped; what was shipped before stays. Look at the store with `sealdb verify`.
                    """
            )
        }
        let time = max(tail.time, block.time)
        let commits = block.ends.map {
            LogSegment.Commit(frame: $0.frame, pageCount: $0.pageCount, time: time)
        }
        try ship(tail, block.start, block.end, commits, tail.slots, block.frames, time, isBlock: true)
    }

    /// - Parameter tail: the end of the repository, with what the frames change of its bound.
    private func ship(
        _ tail: Tail,
        _ start: LogPlace,
        _ end: LogPlace,
        _ commits: [LogSegment.Commit],
        _ slots: String?,
        _ frames: [UInt8],
        _ time: RepositoryTime,
        isBlock: Bool
    ) throws(DatabaseError) {
        guard let pageSize = reading?.pageSize else { return }
        var tail = tail
        guard tail.sequence < ObjectName.lastNumber else {
            throw .notAllowed("\(storage.name) has had too many segments. Nothing was shipped. Ship to another one.")
        }
        let segment = LogSegment(
            generation: tail.generation,
            sequence: tail.sequence + 1,
            previous: tail.digest,
            pageSize: pageSize,
            log: start,
            lastChecksum: end.checksum,
            time: time,
            commits: commits,
            slots: slots,
            frames: frames
        )
        let bytes = try segment.bytes()
        tail.sequence += 1
        tail.digest = try ObjectDigest.of(bytes)
        (tail.place, tail.time, tail.slots) = (end, time, slots)
        try put(
            Writing(
                name: .segment(generation: segment.generation, sequence: segment.sequence),
                bytes: bytes,
                tail: tail,
                commitCount: commits.count,
                frameCount: segment.frameCount,
                isBlock: isBlock
            )
        )
    }

    /// Writes an object at the end of the repository.
    func put(_ object: Writing) throws(DatabaseError) {
        unfinished = object
        try storage.require(object.bytes, as: object.name)
        (unfinished, tail) = (nil, object.tail)
        noteEnd(object.name, object.bytes)
        if object.isBlock {
            if reading?.blocks.isEmpty == false {
                reading?.blocks.removeFirst()
            } else {
                reading?.pending?.start = object.tail.place
            }
        }
        report.commitCount += object.commitCount
        report.frameCount += object.frameCount
        guard case .segment = object.name else { return }
        report.byteCount += Int64(object.bytes.count)
    }

    /// Sees to it that an object holds these bytes, and notes if it was damaged.
    @discardableResult
    func require(_ bytes: [UInt8], as name: ObjectName) throws(DatabaseError) -> ObjectWriting {
        let writing = try storage.require(bytes, as: name)
        if writing == .healed { healed.append(name.text) }
        return writing
    }

    /// Ships the key slots if they have changed.
    private func shipSlots() throws(DatabaseError) {
        guard let tail, let now = try newSlots() else { return }
        let digest = try ObjectDigest.of(now)
        try requireSlots(now, digest)
        guard digest != tail.slots else { return }
        let time = max(tail.time, reading?.time ?? tail.time)
        try ship(tail, tail.place, tail.place, [], digest, [], time, isBlock: false)
    }

    /// Sees to it that these slots are there. Somebody may have removed them, or put a copy of the repository in its place.
    func requireSlots(_ bytes: [UInt8], _ digest: String) throws(DatabaseError) {
        guard slotsSeen != digest else { return }
        try require(bytes, as: .slots(digest))
        slotsSeen = digest
    }

    /// The newest slots of the store; `nil` if it has none.
    func newSlots() throws(DatabaseError) -> [UInt8]? {
        guard let (known, owner) = reading?.slots else { return nil }
        // Older ones that were put back have slots that were removed since.
        let least = options.acceptsOlderSlots ? -1 : try SealedSlots(parsing: known).table.generation
        var newest: SealedSlots?
        for slots in SlotFiles(of: path).read().compactMap(\.slots) where slots.table.generation >= least {
            guard try owner.owns(slots) else { continue }
            if slots.table.generation > newest?.table.generation ?? -1 { newest = slots }
        }
        // Files that are damaged or missing for a moment are no change.
        let bytes = newest?.bytes ?? known
        reading?.slots?.bytes = bytes
        return bytes
    }
}
