/// Puts the chunks of a snapshot into a file. They are read from the repository one after the other, and checked, written and
/// marked beside each other.
final class ChunkWorker: PageWorker {
    private let manifest: SnapshotManifest
    private let reader: RepositoryReader
    private let file: RestoredFile.Access
    private let unread: Guarded<Int64?>
    private var chunk: [UInt8] = []
    /// Whether the chunk is known to have its digest.
    private var isChecked = false

    /// - Parameters:
    ///   - reader: only one worker uses it at a time.
    ///   - unread: gets the number of the chunk that the repository does not give.
    init(
        _ manifest: SnapshotManifest,
        _ reader: RepositoryReader,
        into file: RestoredFile.Access,
        unread: Guarded<Int64?>
    ) {
        (self.manifest, self.reader, self.file, self.unread) = (manifest, reader, file, unread)
    }

    /// - Parameter numbers: that of one chunk, from 1 on.
    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        let number = numbers.lowerBound
        let digest = digest(number)
        if let present = try file.present(at: firstPage(number), count: byteCount(number)),
            try ObjectDigest.of(present) == digest
        {
            (chunk, isChecked) = (present, true)
            return
        }
        do throws(DatabaseError) {
            chunk = try reader.uncheckedContents(.chunk(digest), limit: byteCount(number) + 1)
            isChecked = false
        } catch {
            unread.withLock { $0 = number }
            throw error
        }
    }

    /// - Returns: the marks of the chunk's pages.
    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> [UInt64] {
        let number = numbers.lowerBound
        let name = ObjectName.chunk(digest(number))
        guard chunk.count == byteCount(number) else {
            throw .damagedObject(name.text, "it has another size than its snapshot says")
        }
        if !isChecked { try reader.requireDigest(digest(number), of: chunk, name) }
        // Also what is there: whether the disk has it is not known.
        return try file.write(chunk, at: firstPage(number))
    }

    private func digest(_ number: Int64) -> String { manifest.chunks[Int(number) - 1] }

    private func byteCount(_ number: Int64) -> Int { manifest.byteCount(ofChunk: Int(number) - 1) }

    private func firstPage(_ number: Int64) -> Int64 { (number - 1) * manifest.chunkPages + 1 }
}
