/// Ships the chunks of a snapshot, some of them at a time, on a thread of its own, while its caller reads the next ones.
///
/// Not for several threads at once. ``end()`` must follow, and nobody else uses the repository before.
final class ChunkShipping {
    private let storage: any RepositoryStorage
    private let chunkBytes: Int
    private let requireTime: () throws(DatabaseError) -> Void
    /// The digests of the chunks that the repository has.
    private var known: Set<String>
    private var batch: [[UInt8]] = []
    private var chunk: [UInt8] = []
    /// Memory of chunks that are shipped. Taking it anew from the system costs as much as to copy it.
    private var spare: [[UInt8]] = []
    private var digests: [String] = []
    private var shipment: Shipment?

    /// The bytes that were not in the repository before.
    private(set) var newBytes: Int64 = 0
    /// The objects that were damaged there, and were written again.
    private(set) var healed: [String] = []

    /// About so many bytes are shipped together, and as many are read meanwhile.
    private static let bytesOfBatch = 4 << 20

    /// - Parameters:
    ///   - known: the digests of the chunks that the repository is said to have.
    ///   - requireTime: called before each chunk. If it throws, nothing more is shipped.
    init(
        storage: any RepositoryStorage,
        known: Set<String>,
        chunkBytes: Int,
        requireTime: @escaping () throws(DatabaseError) -> Void
    ) {
        (self.storage, self.known, self.chunkBytes, self.requireTime) = (storage, known, chunkBytes, requireTime)
    }

    /// Adds the next bytes of the store.
    func add(_ bytes: [UInt8]) throws(DatabaseError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if chunk.isEmpty {
                chunk = spare.popLast() ?? []
                chunk.removeAll(keepingCapacity: true)
                chunk.reserveCapacity(chunkBytes)
            }
            let part = rest.prefix(chunkBytes - chunk.count)
            chunk += part
            rest = rest.dropFirst(part.count)
            if chunk.count == chunkBytes { try endChunk() }
        }
    }

    /// Ships what is left.
    /// - Returns: the digests of all chunks.
    func finish() throws(DatabaseError) -> [String] {
        if !chunk.isEmpty { try endChunk() }
        try shipBatch()
        try takeOutcome()
        return digests
    }

    /// Waits for what is being shipped. Nothing happens after ``finish()``.
    func end() {
        // Whoever has not come to `finish()` has a failure already.
        try? takeOutcome()
    }

    private func endChunk() throws(DatabaseError) {
        batch.append(chunk)
        chunk = []
        if batch.count * chunkBytes >= ChunkShipping.bytesOfBatch { try shipBatch() }
    }

    private func shipBatch() throws(DatabaseError) {
        try takeOutcome()
        shipment = Shipment(batch, storage: storage, known: known, requireTime: requireTime)
        batch = []
    }

    private func takeOutcome() throws(DatabaseError) {
        guard let shipment else { return }
        self.shipment = nil
        let (outcome, failure) = shipment.wait()
        spare = shipment.chunks
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
    let chunks: [[UInt8]]

    init(
        _ chunks: [[UInt8]],
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
        _ chunks: [[UInt8]],
        _ storage: any RepositoryStorage,
        _ known: Set<String>,
        _ requireTime: () throws(DatabaseError) -> Void,
        _ outcome: inout Outcome
    ) throws(DatabaseError) {
        var new: [(name: ObjectName, bytes: [UInt8])] = []
        for chunk in chunks {
            try requireTime()
            let digest = try ObjectDigest.of(chunk)
            let name = ObjectName.chunk(digest)
            outcome.digests.append(digest)
            // It rots where it lies. Earlier snapshots get it back, too.
            if known.contains(digest), try storage.read(name.text, limit: chunk.count + 1) == chunk { continue }
            new.append((name, chunk))
        }
        let isNew = try storage.write(new.map { NewObject(name: $0.name.text, bytes: $0.bytes) })
        for (object, isNew) in zip(new, isNew) {
            if isNew {
                outcome.newBytes += Int64(object.bytes.count)
            } else if try storage.requireWritten(object.bytes, as: object.name) == .healed {
                outcome.healed.append(object.name.text)
            }
        }
    }
}
