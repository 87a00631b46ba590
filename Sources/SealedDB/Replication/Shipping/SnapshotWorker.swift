/// Reads the chunks of a snapshot, authenticates their pages, and digests them. A page that is not authentic becomes one of
/// zeros; whether it is free is found out later.
final class SnapshotWorker: PageWorker {
    private let source: PageSource
    private let cipher: PageCipher?
    private let blank: BlankPages
    private let chunkPages: Int64
    private let memory: ChunkMemory
    private var bytes: [UInt8] = []

    /// - Parameter cipher: `nil` if pages have no codes.
    init(
        _ source: PageSource,
        _ cipher: PageCipher?,
        _ blank: BlankPages,
        _ chunkPages: Int64,
        _ memory: ChunkMemory
    ) {
        (self.source, self.cipher, self.blank) = (source, cipher, blank)
        (self.chunkPages, self.memory) = (chunkPages, memory)
    }

    /// - Parameter numbers: that of one chunk, from 1 on.
    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        let pages = pages(numbers.lowerBound)
        if let cipher { try blank.requireFirst(in: source, cipher) }
        bytes = memory.take(pages.count * source.totals.size)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(DatabaseError) in try source.read(pages, into: buffer) }
        }
        try result.get()
    }

    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> Chunk {
        let pages = pages(numbers.lowerBound)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(DatabaseError) in try authenticate(pages, in: buffer) }
        }
        try result.get()
        let chunk = Chunk(bytes: bytes, digest: try ObjectDigest.of(bytes))
        // The next one is not read into it.
        bytes = []
        return chunk
    }

    private func authenticate(
        _ pages: ClosedRange<Int64>,
        in buffer: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        guard let cipher else { return }
        let size = source.totals.size
        let lockPage = PageScan.lockPage(pageSize: size)
        for (index, number) in pages.enumerated() where number != lockPage {
            let page = UnsafeMutableRawBufferPointer(rebasing: buffer[(index * size)..<((index + 1) * size)])
            if try cipher.isAuthentic(UnsafeRawBufferPointer(page), number: number) { continue }
            blank.note(number)
            page.initializeMemory(as: UInt8.self, repeating: 0)
        }
    }

    private func pages(_ chunk: Int64) -> ClosedRange<Int64> {
        let first = (chunk - 1) * chunkPages + 1
        return first...min(first + chunkPages - 1, source.totals.count)
    }
}
