import Foundation

/// Memory of a worker for the pages of a run, as they stand in the file. It is used again for each run.
final class PageBuffer {
    private let pageSize: Int
    // Lives as long as this object. Only the thread that has the object touches it.
    private let bytes: UnsafeMutableRawBufferPointer

    init(pageSize: Int, pageCount: Int) {
        self.pageSize = pageSize
        bytes = .allocate(byteCount: pageCount * pageSize, alignment: 64)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        bytes.deallocate()
    }

    /// The first pages of the run. Valid as long as this object is.
    func pages(_ count: Int) -> UnsafeMutableRawBufferPointer { .init(rebasing: bytes[..<(count * pageSize)]) }

    /// One page of the run. Valid as long as this object is.
    func page(_ index: Int) -> UnsafeMutableRawBufferPointer {
        .init(rebasing: bytes[(index * pageSize)..<((index + 1) * pageSize)])
    }
}

/// The page that was wanted last, as it stands in the file, and the next ones, as long as pages are wanted in their order.
struct ReadAhead {
    private let buffer: PageBuffer
    private let mostPages: Int64
    private var numbers: ClosedRange<Int64> = 0...0

    private static let mostBytes = 1 << 16

    init(pageSize: Int) {
        let count = max(1, ReadAhead.mostBytes / pageSize)
        (buffer, mostPages) = (PageBuffer(pageSize: pageSize, pageCount: count), Int64(count))
    }

    /// - Parameters:
    ///   - last: the number of the last page that there is.
    ///   - fill: fills the buffer with these pages.
    /// - Returns: a page that is valid until the next one is wanted.
    mutating func page(
        _ number: Int64,
        upTo last: Int64,
        fill: (ClosedRange<Int64>, UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> UnsafeMutableRawBufferPointer {
        if !numbers.contains(number) {
            let isNext = number == numbers.upperBound + 1
            let end = isNext ? min(number + mostPages - 1, last) : number
            numbers = 0...0
            do throws(DatabaseError) {
                try load(number...end, fill)
            } catch {
                // One of the others may be what cannot be read.
                guard end > number else { throw error }
                try load(number...number, fill)
            }
        }
        return buffer.page(Int(number - numbers.lowerBound))
    }

    private mutating func load(
        _ wanted: ClosedRange<Int64>,
        _ fill: (ClosedRange<Int64>, UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        try fill(wanted, buffer.pages(wanted.count))
        numbers = wanted
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Whether all bytes are zeros.
    var isZero: Bool { UnsafeRawBufferPointer(self).isZero }
}

extension UnsafeRawBufferPointer {
    /// Whether both begin with the same bytes, these many.
    func hasSameBytes(as other: UnsafeRawBufferPointer, count: Int) -> Bool {
        precondition(self.count >= count && other.count >= count, "Only bytes that are there are compared.")
        guard let start = baseAddress, let others = other.baseAddress else { return count == 0 }
        return memcmp(start, others, count) == 0
    }

    /// Whether all bytes are zeros.
    var isZero: Bool {
        guard let start = baseAddress else { return true }
        return self[0] == 0 && memcmp(start, start + 1, count - 1) == 0
    }
}
