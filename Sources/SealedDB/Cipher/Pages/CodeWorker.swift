/// Authenticates the pages of a ``PageScan``.
final class CodeWorker: PageWorker {
    private let scan: PageScan
    private let cipher: PageCipher
    private let buffer: PageBuffer
    /// Where pages that are authentic are marked.
    private let marks: PageMarks?
    private let marker: PageMarker?
    /// The pages of the run that cannot be read.
    private var unreadable: Set<Int64> = []

    init(
        scan: PageScan,
        cipher: PageCipher,
        pageCount: Int,
        marks: PageMarks? = nil
    ) throws(DatabaseError) {
        (self.scan, self.cipher, self.marks) = (scan, cipher, marks)
        marker = try marks?.newMarker()
        buffer = PageBuffer(pageSize: cipher.parameters.pageSize, pageCount: pageCount)
    }

    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        unreadable = []
        guard try !scan.fill(buffer.pages(numbers.count), with: numbers) else { return }
        // Read the pages one by one, to find out which of them cannot be read.
        for (index, number) in numbers.enumerated() where try !scan.fill(buffer.page(index), with: number...number) {
            unreadable.insert(number)
        }
    }

    /// - Returns: the damaged pages.
    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> [Int64] {
        let lockPage = PageScan.lockPage(pageSize: cipher.parameters.pageSize)
        var damaged: [Int64] = []
        for (index, number) in numbers.enumerated() where number != lockPage {
            let page = UnsafeRawBufferPointer(buffer.page(index))
            guard !unreadable.contains(number), try cipher.isAuthentic(page, number: number) else {
                damaged.append(number)
                continue
            }
            if let marks, let marker { try marks.insert(page, number: number, by: marker) }
        }
        return damaged
    }
}
