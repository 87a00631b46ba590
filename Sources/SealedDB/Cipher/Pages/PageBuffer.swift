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
