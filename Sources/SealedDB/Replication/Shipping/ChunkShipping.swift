/// Some pages of a store that follow one another, as they are shipped.
struct Chunk: Sendable {
    let bytes: [UInt8]
    let digest: String
}

/// Memory of chunks that were shipped, for the next ones. Taking it anew from the system costs as much as to copy it.
///
/// Any thread may use it.
final class ChunkMemory: Sendable {
    private let spare = Guarded<[[UInt8]]>([])

    /// - Returns: so many bytes, of any value.
    func take(_ count: Int) -> [UInt8] {
        var bytes = spare.withLock { $0.popLast() } ?? []
        if bytes.count > count { bytes.removeLast(bytes.count - count) }
        bytes += repeatElement(0, count: count - bytes.count)
        return bytes
    }

    func giveBack(_ bytes: [[UInt8]]) { spare.withLock { $0 += bytes } }
}

/// Ships the chunks of a snapshot, some of them at a time, on a thread of its own, while its caller prepares the next ones.
///
/// Not for several threads at once. ``end()`` must follow, and nobody else uses the repository before.
final class ChunkShipping {
    private let storage: any RepositoryStorage
    private let memory: ChunkMemory
    private let requireTime: () throws(DatabaseError) -> Void
    /// The digests of the chunks that the repository has.
    private var known: Set<String>
    private var batch: [Chunk] = []
    private var bytesInBatch = 0
    private var digests: [String] = []
    private var shipment: Shipment?

    /// The bytes that were not in the repository before.
    private(set) var newBytes: Int64 = 0
    /// The objects that were damaged there, and were written again.
    private(set) var healed: [String] = []

    /// About so many bytes are shipped together, and as many are prepared meanwhile.
    private static let bytesOfBatch = 8 << 20

    /// - Parameters:
    ///   - known: the digests of the chunks that the repository is said to have.
    ///   - memory: gets that of the chunks that were shipped.
    ///   - requireTime: called before each chunk. If it throws, nothing more is shipped.
    init(
        storage: any RepositoryStorage,
        known: Set<String>,
        memory: ChunkMemory,
        requireTime: @escaping () throws(DatabaseError) -> Void
    ) {
        (self.storage, self.known, self.memory, self.requireTime) = (storage, known, memory, requireTime)
    }

    /// Adds the next chunk of the store.
    func add(_ chunk: Chunk) throws(DatabaseError) {
        batch.append(chunk)
        bytesInBatch += chunk.bytes.count
        if bytesInBatch >= ChunkShipping.bytesOfBatch { try shipBatch() }
    }

    /// Ships what is left.
    /// - Returns: the digests of all chunks.
    func finish() throws(DatabaseError) -> [String] {
        try shipBatch()
        try takeOutcome()
        return digests
    }

    /// Waits for what is being shipped. Nothing happens after ``finish()``.
    func end() {
        // Whoever has not come to `finish()` has a failure already.
        try? takeOutcome()
    }

    private func shipBatch() throws(DatabaseError) {
        try takeOutcome()
        shipment = Shipment(batch, storage: storage, known: known, requireTime: requireTime)
        (batch, bytesInBatch) = ([], 0)
    }

    private func takeOutcome() throws(DatabaseError) {
        guard let shipment else { return }
        self.shipment = nil
        let (outcome, failure) = shipment.wait()
        memory.giveBack(shipment.chunks.map(\.bytes))
        digests += outcome.digests
        known.formUnion(outcome.digests)
        newBytes += outcome.newBytes
        healed += outcome.healed
        if let failure { throw failure }
    }
}

/// Chunks that are being shipped.
private final class Shipment {
    struct Outcome {
        var digests: [String] = []
        var newBytes: Int64 = 0
        var healed: [String] = []
    }

    private let result = Guarded<(outcome: Outcome, failure: DatabaseError?)>((Outcome(), nil))
    private let thread: WorkerThread?
    let chunks: [Chunk]

    init(
        _ chunks: [Chunk],
        storage: any RepositoryStorage,
        known: Set<String>,
        requireTime: @escaping () throws(DatabaseError) -> Void
    ) {
        self.chunks = chunks
        // Only that thread uses them until it has ended.
        nonisolated(unsafe) let (storage, requireTime) = (storage, requireTime)
        let result = result
        let work: @Sendable () -> Void = {
            var outcome = Outcome()
            var failure: DatabaseError?
            do throws(DatabaseError) {
                try Shipment.ship(chunks, storage, known, requireTime, &outcome)
            } catch {
                failure = error
            }
            let ended = (outcome, failure)
            result.withLock { $0 = ended }
        }
        thread = WorkerThread(work)
        // The system has no thread to give.
        if thread == nil { work() }
    }

    /// Waits until nothing is shipped any more.
    func wait() -> (outcome: Outcome, failure: DatabaseError?) {
        thread?.join()
        return result.withLock { $0 }
    }

    private static func ship(
        _ chunks: [Chunk],
        _ storage: any RepositoryStorage,
        _ known: Set<String>,
        _ requireTime: () throws(DatabaseError) -> Void,
        _ outcome: inout Outcome
    ) throws(DatabaseError) {
        var new: [Chunk] = []
        var there: [String] = []
        for chunk in chunks {
            try requireTime()
            outcome.digests.append(chunk.digest)
            // It rots where it lies. Earlier snapshots get it back, too.
            let name = ObjectName.chunk(chunk.digest).text
            if known.contains(chunk.digest), try storage.read(name, limit: chunk.bytes.count + 1) == chunk.bytes {
                there.append(name)
                continue
            }
            new.append(chunk)
        }
        try storage.makeDurable(there)
        let isNew = try storage.write(
            new.map { NewObject(name: ObjectName.chunk($0.digest).text, bytes: $0.bytes) }
        )
        for (chunk, isNew) in zip(new, isNew) {
            let name = ObjectName.chunk(chunk.digest)
            if isNew {
                outcome.newBytes += Int64(chunk.bytes.count)
            } else if try storage.requireWritten(chunk.bytes, as: name) == .healed {
                outcome.healed.append(name.text)
            }
        }
    }
}
