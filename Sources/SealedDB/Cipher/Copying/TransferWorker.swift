/// Copies the pages of a ``PageTransfer``.
final class TransferWorker: PageWorker {
    /// May go on with the store as it is at another moment.
    var transfer: PageTransfer
    private let file: NewFile
    private let sourceCipher: PageCipher
    private let targetCipher: PageCipher
    /// The pages of the source, and later what was read back of the new file: both encrypted.
    private let read: PageBuffer
    /// The pages of the new file.
    private let written: PageBuffer
    /// What the pages of the source hold.
    private let contents: SecretScratch
    /// What a page of the new file holds.
    private let found: SecretScratch
    private let pageSize: Int
    private let pageCount: Int
    /// The pages of the run that are not authentic, and so must be free.
    private var blanked: Set<Int64> = []

    /// - Parameter pageCount: how many pages it can work on at a time.
    init(_ transfer: PageTransfer, _ file: NewFile, pageCount: Int) throws(DatabaseError) {
        (self.transfer, self.file, self.pageCount) = (transfer, file, pageCount)
        pageSize = transfer.source.totals.size
        sourceCipher = try transfer.sourceCipher.copy()
        targetCipher = try transfer.targetCipher.copy()
        read = PageBuffer(pageSize: pageSize, pageCount: pageCount)
        written = PageBuffer(pageSize: pageSize, pageCount: pageCount)
        contents = try SecretScratch(count: pageCount * pageSize)
        found = try SecretScratch(count: pageSize)
    }

    /// Whether it can work on these at once.
    func hasRoom(for numbers: ClosedRange<Int64>) -> Bool { numbers.count <= pageCount }

    /// Writes these pages to their places.
    func copy(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        // Those of a copy that failed are copied again, perhaps as they are later.
        transfer.blank.forget()
        try read(numbers)
        guard try outcome(of: numbers) == numbers.count else { throw PageTransfer.different(numbers.lowerBound) }
        try transfer.requireFree(file)
    }

    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        blanked = []
        try transfer.blank.requireFirst(in: transfer.source, sourceCipher)
        try transfer.source.read(numbers, into: read.pages(numbers.count))
    }

    /// - Returns: how many pages were written and compared.
    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> Int {
        for (index, number) in numbers.enumerated() { try convert(number, index) }
        let offset = (numbers.lowerBound - 1) * Int64(pageSize)
        try file.write(UnsafeRawBufferPointer(written.pages(numbers.count)), at: offset)
        guard try file.read(into: read.pages(numbers.count), at: offset) else {
            throw PageTransfer.different(numbers.lowerBound)
        }
        var count = 0
        for (index, number) in numbers.enumerated() {
            try compare(number, index)
            count += 1
        }
        return count
    }

    /// Where the contents of a page of the source are.
    private func contents(_ index: Int) -> UnsafeMutableRawBufferPointer {
        .init(rebasing: contents.bytes[(index * pageSize)..<((index + 1) * pageSize)])
    }

    private func convert(_ number: Int64, _ index: Int) throws(DatabaseError) {
        let page = UnsafeRawBufferPointer(read.page(index))
        let target = written.page(index)
        guard number != transfer.lockPage else {
            target.initializeMemory(as: UInt8.self, repeating: 0)
            return
        }
        if sourceCipher.parameters.usesHMAC {
            guard try sourceCipher.isAuthentic(page, number: number) else {
                return try blank(number, index)
            }
        }
        guard !transfer.keepsCiphertext(ofPage: number) else {
            return try targetCipher.reseal(page, number: number, into: target)
        }
        let contents = contents(index)
        try sourceCipher.open(page, number: number, into: contents)
        transfer.amend(contents, number: number)
        try targetCipher.seal(UnsafeRawBufferPointer(contents), number: number, into: target)
    }

    /// Writes a page without contents for one that is not authentic. Whether that one is free is found out later.
    private func blank(_ number: Int64, _ index: Int) throws(DatabaseError) {
        blanked.insert(number)
        transfer.blank.note(number)
        let contents = contents(index)
        contents.initializeMemory(as: UInt8.self, repeating: 0)
        try targetCipher.seal(UnsafeRawBufferPointer(contents), number: number, into: written.page(index))
    }

    /// Compares a page that was read back with the one that was written, and what it holds with the source. A page that was
    /// copied as it is encrypted holds the same with the same bytes.
    private func compare(_ number: Int64, _ index: Int) throws(DatabaseError) {
        let page = UnsafeRawBufferPointer(read.page(index))
        guard page.hasSameBytes(as: UnsafeRawBufferPointer(written.page(index)), count: pageSize) else {
            throw PageTransfer.different(number)
        }
        let isKept = transfer.keepsCiphertext(ofPage: number) && !blanked.contains(number)
        guard number != transfer.lockPage, !isKept else { return }
        try targetCipher.open(page, number: number, into: found.bytes)
        let wanted = UnsafeRawBufferPointer(contents(index))
        guard wanted.hasSameBytes(as: UnsafeRawBufferPointer(found.bytes), count: targetCipher.contentSize) else {
            throw PageTransfer.different(number)
        }
    }
}
