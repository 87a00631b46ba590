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

    private static let pagesAtOnce: Int64 = 64

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
    mutating func write(_ pages: ArraySlice<UInt8>, at first: Int64) throws(DatabaseError) {
        let count = Int64(pages.count / pageSize)
        let last = first + count - 1
        // A page that the store never has, as when a transaction grows and shrinks it.
        guard first >= 1, last <= mostPages else { return }
        if last > Int64(marks.count) { marks += repeatElement(0, count: Int(last) - marks.count) }
        let result = pages.withUnsafeBytes { bytes in
            Result { () throws(DatabaseError) in
                try file.write(bytes, at: (first - 1) * Int64(pageSize))
                for index in 0..<Int(count) {
                    let page = UnsafeRawBufferPointer(rebasing: bytes[(index * pageSize)..<((index + 1) * pageSize)])
                    marks[Int(first) - 1 + index] = try marker.mark(page, number: first + Int64(index))
                }
            }
        }
        try result.get()
        pageCount = max(pageCount, last)
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
        let buffer = PageBuffer(pageSize: pageSize, pageCount: Int(RestoredFile.pagesAtOnce))
        var next: Int64 = 1
        while next <= pageCount {
            let count = Int(min(RestoredFile.pagesAtOnce, pageCount - next + 1))
            guard try file.read(into: buffer.pages(count), at: (next - 1) * Int64(pageSize)) else {
                throw PageTransfer.different(next)
            }
            if next == 1 {
                guard buffer.page(0).prefix(salt.count).elementsEqual(salt) else { throw PageTransfer.different(1) }
            }
            for index in 0..<count {
                let number = next + Int64(index)
                let page = UnsafeRawBufferPointer(buffer.page(index))
                let mark = number <= Int64(marks.count) ? marks[Int(number) - 1] : 0
                guard mark == 0 ? page.isZero : try marker.mark(page, number: number) == mark else {
                    throw PageTransfer.different(number)
                }
            }
            next += Int64(count)
            try progress(next - 1)
        }
    }
}
