import Foundation

/// A file that is put together from the objects of a repository, and read back.
struct RestoredFile {
    private let file: NewFile
    private let pageSize: Int
    /// A mark of each page that was written, up to the last of them; 0 for one that was not.
    private var marks: [UInt64] = []
    private let mostPages: Int64
    private let marker: PageMarker
    private var pageCount: Int64 = 0

    /// How many bytes the file had that another restore may have written.
    private let presentBytes: Int64

    /// - Parameters:
    ///   - file: empty, or what a restore has left that was cut off. Nothing in it is believed.
    ///   - pageCount: how many pages are written first.
    ///   - mostPages: it never has more.
    init(_ file: NewFile, pageSize: Int, pageCount: Int64, mostPages: Int64) throws(DatabaseError) {
        (self.file, self.pageSize, self.mostPages) = (file, pageSize, mostPages)
        marker = try PageMarker()
        presentBytes = min(try file.size(), pageCount * Int64(pageSize))
        try file.truncate(to: presentBytes)
    }

    /// Writes and reads for one thread.
    struct Access {
        fileprivate let file: NewFile
        fileprivate let pageSize: Int
        fileprivate let presentBytes: Int64
        fileprivate let marker: PageMarker

        /// The bytes that the file had, from a page on; `nil` if it had not so many.
        func present(at first: Int64, count: Int) throws(DatabaseError) -> [UInt8]? {
            let start = (first - 1) * Int64(pageSize)
            guard start + Int64(count) <= presentBytes else { return nil }
            var bytes = [UInt8](repeating: 0, count: count)
            let isRead = bytes.withUnsafeMutableBytes { bytes in
                Result { () throws(DatabaseError) in try file.read(into: bytes, at: start) }
            }
            return try isRead.get() ? bytes : nil
        }

        /// Writes pages that follow one another.
        /// - Parameter first: the number of the first of them.
        /// - Returns: their marks.
        func write(_ pages: [UInt8], at first: Int64) throws(DatabaseError) -> [UInt64] {
            let result = pages.withUnsafeBytes { bytes in
                Result { () throws(DatabaseError) in
                    let start = (first - 1) * Int64(pageSize)
                    try file.write(bytes, at: start)
                    try file.beginWriting(start..<start + Int64(bytes.count))
                    return try marks(of: bytes, at: first)
                }
            }
            return try result.get()
        }

        private func marks(of bytes: UnsafeRawBufferPointer, at first: Int64) throws(DatabaseError) -> [UInt64] {
            var marks: [UInt64] = []
            marks.reserveCapacity(bytes.count / pageSize)
            for (index, start) in stride(from: 0, to: bytes.count, by: pageSize).enumerated() {
                let page = UnsafeRawBufferPointer(rebasing: bytes[start..<(start + pageSize)])
                marks.append(try marker.mark(page, number: first + Int64(index)))
            }
            return marks
        }
    }

    /// For another thread. Ask for it on the thread that uses the file.
    func newAccess() throws(DatabaseError) -> Access {
        Access(file: file, pageSize: pageSize, presentBytes: presentBytes, marker: try PageMarker(like: marker))
    }

    /// Takes note of pages that another thread has written, behind all that were written before.
    mutating func append(_ marks: [UInt64]) {
        self.marks += marks
        pageCount = Int64(self.marks.count)
    }

    /// Writes a page.
    mutating func write(_ page: ArraySlice<UInt8>, at number: Int64) throws(DatabaseError) {
        // A page that the store never has, as when a transaction grows and shrinks it.
        guard number >= 1, number <= mostPages else { return }
        if number > Int64(marks.count) { marks += repeatElement(0, count: Int(number) - marks.count) }
        let mark = page.withUnsafeBytes { bytes in
            Result { () throws(DatabaseError) in
                try file.write(bytes, at: (number - 1) * Int64(pageSize))
                return try marker.mark(bytes, number: number)
            }
        }
        marks[Int(number) - 1] = try mark.get()
        pageCount = max(pageCount, number)
    }

    /// The end of a transaction: the store has so many pages. What it had behind them is gone for good.
    mutating func end(pageCount count: Int64) throws(DatabaseError) {
        if count < pageCount {
            try file.truncate(to: count * Int64(pageSize))
            marks.removeLast(max(0, marks.count - Int(count)))
        }
        pageCount = count
    }

    /// Gives the file its size, and reads all of it again.
    /// - Throws: ``DatabaseError/Reason/unverified`` if it does not hold what was written.
    func finish(salt: [UInt8], _ progress: (Int64) throws(DatabaseError) -> Void) throws(DatabaseError) {
        try file.truncate(to: pageCount * Int64(pageSize))
        let pipeline = PagePipeline(pageSize: pageSize, pageCount: pageCount)
        var different: Int64?
        var stop: DatabaseError?
        try pipeline.forEachRun { () throws(DatabaseError) in
            ReadBackWorker(
                file: file,
                marks: marks,
                salt: salt,
                marker: try PageMarker(like: marker),
                buffer: PageBuffer(pageSize: pageSize, pageCount: pipeline.pagesInRun)
            )
        } deliver: { numbers, first in
            different = first
            guard different == nil else { return false }
            do throws(DatabaseError) { try progress(numbers.upperBound) } catch { stop = error }
            return stop == nil
        }
        if let stop { throw stop }
        if let different { throw PageTransfer.different(different) }
    }
}
