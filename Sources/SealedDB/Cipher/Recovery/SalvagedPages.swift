import Foundation

/// The pages of a store that are as they were written, decrypted without SQLCipher.
///
/// SQLCipher stops at the first damaged page. Here every page is read for itself: from the log, from the journal of an
/// unfinished transaction, or from the file.
final class SalvagedPages {
    let pageSize: Int
    /// Number of pages that there are, without what the file may still have behind the end of the database.
    private(set) var count: Int64
    /// The bytes of a page that SQLite uses.
    private(set) var usableSize: Int
    /// The pages that are not as they were written.
    private(set) var damaged: [Int64] = []
    /// Pages that were never written. Nothing refers to them.
    private(set) var empty: Set<Int64> = []
    /// The header of the database: the first 100 bytes of page 1; `nil` if that page is damaged.
    private(set) var header: [UInt8]?

    private let connection: Connection
    private let cipher: PageCipher
    private let overlay: LogOverlay?

    /// - Parameter connection: one to the file, opened without a key and only for reading.
    init(_ connection: Connection, _ cipher: PageCipher, overlay: LogOverlay?) throws(DatabaseError) {
        self.connection = connection
        self.overlay = overlay
        self.cipher = cipher
        pageSize = cipher.parameters.pageSize
        usableSize = pageSize - cipher.parameters.reservedBytes
        let ofFile = try connection.mainFileSize() / Int64(pageSize)
        count = max(ofFile, overlay?.pageNumbers.max() ?? 0)
        if let overlay, overlay.pageSize == pageSize { count = min(count, overlay.pageCount) }
        guard let first = contents(ofPage: 1) else { return }
        header = Array(first[..<100])
        // SQLCipher may have reserved more bytes at first than it used later.
        if pageSize - Int(first[20]) >= 480 { usableSize = min(usableSize, pageSize - Int(first[20])) }
        // Old versions of SQLite do not update this count: it is valid only if the two change counters are equal.
        let declared = LogOverlay.number(first[28..<32])
        if first[24..<28] == first[92..<96], declared > 0 { count = min(count, declared) }
    }

    /// Reads every page once.
    /// - Returns: whether any page was written with this key.
    func survey(_ progress: (Int64) throws(DatabaseError) -> Void) throws(DatabaseError) -> Bool {
        var hasOwn = false
        for number in stride(from: 1 as Int64, through: count, by: 1) {
            if contents(ofPage: number) != nil {
                hasOwn = true
            } else if number != PageScan.lockPage(pageSize: pageSize) {
                let bytes = bytes(ofPage: number)
                if let bytes, bytes.allSatisfy({ $0 == 0 }) { empty.insert(number) } else { damaged.append(number) }
            }
            if number.isMultiple(of: 256) { try progress(number) }
        }
        return hasOwn
    }

    /// The page as SQLite sees it; `nil` if it does not exist, cannot be read, or is not as it was written.
    func contents(ofPage number: Int64) -> [UInt8]? {
        guard number >= 1, number <= count, let page = bytes(ofPage: number) else { return nil }
        guard !cipher.parameters.usesHMAC || cipher.authenticates(page, number: number),
            let contents = cipher.contents(page[...], number: number)
        else { return nil }
        let clear = cipher.clearBytes(ofPage: number)
        // In place of the salt, the header begins with SQLite's magic.
        let start = clear == Key.saltByteCount ? StoreHeader.plaintextMagic : Array(page[..<clear])
        let whole = (clear == 0 ? [] : start) + contents
        return whole.count >= 480 ? whole : nil
    }

    /// The page as it is stored. What the disk cannot read counts as damaged.
    private func bytes(ofPage number: Int64) -> [UInt8]? {
        // An error of the log or of the file means the same: this page is not there.
        if let page = try? overlay?.bytes(ofPage: number, from: 0, count: pageSize) { return page }
        let page = try? connection.fileBytes(at: (number - 1) * Int64(pageSize), count: pageSize)  // As above.
        return page?.count == pageSize ? page : nil
    }
}
