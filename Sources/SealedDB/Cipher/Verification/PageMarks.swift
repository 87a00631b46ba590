import Foundation

/// Tells a page that was authenticated once when it is read again, in an eighth of the time of its code.
///
/// A mark covers every byte of the page, and its number. Whoever has a page without a mark, or with another one,
/// computes its code.
// @unchecked: each mark is written by the one worker that has the page, and read when all workers have ended.
final class PageMarks: @unchecked Sendable {
    /// More pages have no marks, so that memory stays bounded: at 4 KiB, those after the first 16 GiB.
    static let mostPages: Int64 = 4 << 20

    private let marker: PageMarker
    private let marks: UnsafeMutablePointer<UInt64>
    private let count: Int64

    /// - Returns: `nil` without memory for the marks.
    init?(pageCount: Int64) throws(DatabaseError) {
        marker = try PageMarker()
        count = min(pageCount, PageMarks.mostPages)
        // The system gives out the memory when it is touched.
        guard let memory = calloc(Int(max(count, 1)), MemoryLayout<UInt64>.size) else { return nil }
        marks = memory.bindMemory(to: UInt64.self, capacity: Int(max(count, 1)))
    }

    deinit {
        free(marks)
    }

    /// For one thread. Ask for it on the thread that made the marks.
    func newMarker() throws(DatabaseError) -> PageMarker { try PageMarker(like: marker) }

    /// Marks a page that is authentic.
    func insert(_ page: UnsafeRawBufferPointer, number: Int64, by marker: PageMarker) throws(DatabaseError) {
        guard number <= count else { return }
        marks[Int(number - 1)] = try marker.mark(page, number: number)
    }

    /// Whether this is the page that was marked.
    func hold(_ page: UnsafeRawBufferPointer, number: Int64, by marker: PageMarker) throws(DatabaseError) -> Bool {
        // A page without a mark has 0 here.
        guard number <= count, marks[Int(number - 1)] != 0 else { return false }
        return try marker.mark(page, number: number) == marks[Int(number - 1)]
    }
}
