/// Reads the chunks of a snapshot, authenticates their pages, and digests them.
final class SnapshotWorker: PageWorker {
    struct CheckedChunk: Sendable {
        let chunk: Chunk
        /// The pages that were never written, if they are free.
        let zeros: [Int64]
    }

    private let source: PageSource
    private let cipher: PageCipher?
    private let chunkPages: Int64
    private let memory: ChunkMemory
    private var bytes: [UInt8] = []

    /// - Parameter cipher: `nil` if pages have no codes.
    init(_ source: PageSource, _ cipher: PageCipher?, _ chunkPages: Int64, _ memory: ChunkMemory) {
        (self.source, self.cipher, self.chunkPages, self.memory) = (source, cipher, chunkPages, memory)
    }

    /// - Parameter numbers: that of one chunk, from 1 on.
    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        let pages = pages(numbers.lowerBound)
        bytes = memory.take(pages.count * source.totals.size)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(DatabaseError) in try source.read(pages, into: buffer) }
        }
        try result.get()
    }

    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> CheckedChunk {
        let pages = pages(numbers.lowerBound)
        let zeros = bytes.withUnsafeBytes { buffer in
            Result { () throws(DatabaseError) in try authenticate(pages, in: buffer) }
        }
        let chunk = Chunk(bytes: bytes, digest: try ObjectDigest.of(bytes))
        let checked = CheckedChunk(chunk: chunk, zeros: try zeros.get())
        // The next one is not read into it.
        bytes = []
        return checked
    }

    private func authenticate(
        _ pages: ClosedRange<Int64>,
        in buffer: UnsafeRawBufferPointer
    ) throws(DatabaseError) -> [Int64] {
        guard let cipher else { return [] }
        let size = source.totals.size
        let lockPage = PageScan.lockPage(pageSize: size)
        var zeros: [Int64] = []
        for (index, number) in pages.enumerated() where number != lockPage {
            let page = UnsafeRawBufferPointer(rebasing: buffer[(index * size)..<((index + 1) * size)])
            if try cipher.isAuthentic(page, number: number) { continue }
            guard page.isZero else { throw PageTransfer.damaged(number) }
            zeros.append(number)
        }
        return zeros
    }

    private func pages(_ chunk: Int64) -> ClosedRange<Int64> {
        let first = (chunk - 1) * chunkPages + 1
        return first...min(first + chunkPages - 1, source.totals.count)
    }
}
