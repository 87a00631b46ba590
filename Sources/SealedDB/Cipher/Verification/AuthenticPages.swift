import Foundation

/// The pages of a store, decrypted, for SQLite's check of the structure. SQLite gets none that is not authentic: each
/// one is authenticated when SQLite reads it, by its mark or else by its code.
///
/// They are read through a connection of SQLCipher that has the store open, with its locks and its log. What SQLite and
/// this object hold of them stays in memory, as with SQLCipher.
final class AuthenticPages: FileContents {
    let size: Int64
    /// Why a page could not be read or decrypted. This says nothing about the page, whatever SQLite makes of it.
    private(set) var failure: DatabaseError?
    /// Whether SQLite has asked for a page that is not authentic, or that never is. What it says then does not count.
    private(set) var isRefused = false
    /// The page that is not authentic, although it was, or was free.
    private(set) var damagedPage: Int64?
    private let scan: PageScan
    private let cipher: PageCipher
    private let marks: PageMarks?
    private let marker: PageMarker?
    private let pageCount: Int64
    private var ahead: ReadAhead
    /// A page decrypted, if only a part of it is wanted.
    private let contents: SecretScratch

    private var pageSize: Int { cipher.parameters.pageSize }

    /// - Parameters:
    ///   - cipher: that of the store. It must authenticate pages, and belongs to this object alone.
    ///   - marks: of the pages that were found authentic.
    init(_ scan: PageScan, _ cipher: PageCipher, marks: PageMarks?, pageCount: Int64) throws(DatabaseError) {
        precondition(cipher.parameters.usesHMAC, "Pages without codes cannot be authenticated.")
        (self.scan, self.cipher, self.marks, self.pageCount) = (scan, cipher, marks, pageCount)
        let pageSize = cipher.parameters.pageSize
        size = pageCount * Int64(pageSize)
        marker = try marks?.newMarker()
        ahead = ReadAhead(pageSize: pageSize)
        contents = try SecretScratch(count: pageSize)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
        // What SQLite says after a failure does not count, so it is to end soon.
        guard failure == nil, !isRefused else { return SQLITE_IOERR_READ }
        do throws(DatabaseError) {
            var done = 0
            while done < buffer.count {
                let place = offset + Int64(done)
                let (number, start) = (place / Int64(pageSize) + 1, Int(place % Int64(pageSize)))
                let count = min(pageSize - start, buffer.count - done)
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count])
                guard try fill(part, number, from: start) else {
                    isRefused = true
                    return SQLITE_IOERR_READ
                }
                done += count
            }
            return SQLITE_OK
        } catch {
            failure = error
            return SQLITE_IOERR_READ
        }
    }

    /// - Returns: false if SQLite does not get the page.
    private func fill(
        _ target: UnsafeMutableRawBufferPointer,
        _ number: Int64,
        from start: Int
    ) throws(DatabaseError) -> Bool {
        guard number != PageScan.lockPage(pageSize: pageSize) else { return false }
        let page = UnsafeRawBufferPointer(try load(number))
        guard try isAuthentic(page, number) else {
            damagedPage = number
            return false
        }
        let isWhole = target.count == pageSize
        let opened = isWhole ? target : contents.bytes
        try cipher.open(page, number: number, into: opened)
        // SQLCipher leaves IV and code there. In a damaged structure SQLite may look at them.
        UnsafeMutableRawBufferPointer(rebasing: opened[cipher.contentSize..<pageSize])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: page[cipher.contentSize...]))
        if !isWhole {
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: opened[start..<start + target.count]))
        }
        return true
    }

    private func isAuthentic(_ page: UnsafeRawBufferPointer, _ number: Int64) throws(DatabaseError) -> Bool {
        if let marks, let marker, try marks.hold(page, number: number, by: marker) { return true }
        return try cipher.isAuthentic(page, number: number)
    }

    /// The page as it is encrypted.
    private func load(_ number: Int64) throws(DatabaseError) -> UnsafeMutableRawBufferPointer {
        try ahead.page(number, upTo: pageCount) { [scan] numbers, buffer throws(DatabaseError) in
            guard try scan.read(numbers, into: buffer) == buffer.count else {
                throw DatabaseError(
                    extendedCode: SQLITE_IOERR_SHORT_READ,
                    message: "The store was cut off while it was read. Nothing was changed. Try again."
                )
            }
        }
    }
}
