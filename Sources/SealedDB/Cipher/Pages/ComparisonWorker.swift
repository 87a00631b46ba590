import Foundation

/// Compares the pages of the two files of a ``PageComparison``.
final class ComparisonWorker: PageWorker {
    /// One of the two files.
    struct Side {
        let scan: PageScan
        let cipher: PageCipher
        let name: String
        let buffer: PageBuffer
        /// Room for the plaintext of a page.
        let scratch: SecretScratch

        init(scan: PageScan, cipher: PageCipher, name: String, pageCount: Int) throws(DatabaseError) {
            (self.scan, self.cipher, self.name) = (scan, cipher, name)
            buffer = PageBuffer(pageSize: cipher.parameters.pageSize, pageCount: pageCount)
            scratch = try SecretScratch(count: cipher.parameters.pageSize)
        }

        /// - Returns: whether the file has all these pages.
        func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) -> Bool {
            let pages = buffer.pages(numbers.count)
            // A read that fails says nothing about the pages, so it is thrown.
            return try scan.read(numbers, into: pages, of: name) == pages.count
        }
    }

    struct Findings: Sendable {
        let problems: [String]
        let isWhole: Bool
    }

    private let source: Side
    private let copy: Side
    private var isWhole = false

    init(source: Side, copy: Side) {
        (self.source, self.copy) = (source, copy)
    }

    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        let (hasTheirs, hasOurs) = (try source.read(numbers), try copy.read(numbers))
        isWhole = hasTheirs && hasOurs
    }

    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> Findings {
        guard isWhole else {
            let problem = "pages \(numbers.lowerBound) to \(numbers.upperBound) are not whole"
            return Findings(problems: [problem], isWhole: false)
        }
        let lockPage = PageScan.lockPage(pageSize: copy.cipher.parameters.pageSize)
        var problems: [String] = []
        for (index, number) in numbers.enumerated() where number != lockPage {
            if let problem = try problem(number, index) { problems.append(problem) }
        }
        return Findings(problems: problems, isWhole: true)
    }

    private func problem(_ number: Int64, _ index: Int) throws(DatabaseError) -> String? {
        for side in [source, copy] where side.cipher.parameters.usesHMAC {
            let page = UnsafeRawBufferPointer(side.buffer.page(index))
            guard try side.cipher.isAuthentic(page, number: number) else {
                return "page \(number) of \(side.name) is damaged"
            }
        }
        for side in [source, copy] {
            let page = UnsafeRawBufferPointer(side.buffer.page(index))
            try side.cipher.decrypt(page, number: number, into: side.scratch.bytes)
            guard number == 1 else { continue }
            for range in PageComparison.differingBytes {
                UnsafeMutableRawBufferPointer(rebasing: side.scratch.bytes[range])
                    .initializeMemory(as: UInt8.self, repeating: 0)
            }
        }
        let counts = [source, copy].map { $0.cipher.parameters.pageSize - $0.cipher.parameters.reservedBytes }
        let isEqual =
            counts[0] == counts[1] && memcmp(source.scratch.start, copy.scratch.start, counts[0]) == 0
        return isEqual ? nil : "page \(number) differs from that of the store"
    }
}
