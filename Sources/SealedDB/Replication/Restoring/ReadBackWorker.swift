/// Reads what was restored again, and tells the first page of a run that is not as it was written.
final class ReadBackWorker: PageWorker {
    private let file: NewFile
    private let marks: [UInt64]
    private let salt: [UInt8]
    private let marker: PageMarker
    private let buffer: PageBuffer
    private var isRead = false

    /// - Parameters:
    ///   - marks: that of each page; 0, or none, for one of zeros that nobody has written.
    ///   - salt: what page 1 begins with.
    init(file: NewFile, marks: [UInt64], salt: [UInt8], marker: PageMarker, buffer: PageBuffer) {
        (self.file, self.marks, self.salt, self.marker, self.buffer) = (file, marks, salt, marker, buffer)
    }

    func read(_ numbers: ClosedRange<Int64>) throws(DatabaseError) {
        let start = (numbers.lowerBound - 1) * Int64(buffer.page(0).count)
        isRead = try file.read(into: buffer.pages(numbers.count), at: start)
    }

    func outcome(of numbers: ClosedRange<Int64>) throws(DatabaseError) -> Int64? {
        guard isRead else { return numbers.lowerBound }
        for (index, number) in numbers.enumerated() {
            let page = UnsafeRawBufferPointer(buffer.page(index))
            if number == 1, !page.prefix(salt.count).elementsEqual(salt) { return 1 }
            let mark = number <= Int64(marks.count) ? marks[Int(number) - 1] : 0
            guard mark == 0 ? page.isZero : try marker.mark(page, number: number) == mark else { return number }
        }
        return nil
    }
}
