import Foundation

/// The pages of a store that are as they were written, decrypted without SQLCipher.
///
/// SQLCipher stops at the first damaged page. Here every page is read for itself: from the log, from the journal of an
/// unfinished transaction, or from the file.
final class SalvagedPages {
    let pageSize: Int
    /// The number of pages that the file and the log have.
    private(set) var count: Int64
    /// The number of pages of the database, as the header or the log states it. It may be that of an earlier state.
    private(set) var declaredCount: Int64
    /// The bytes of a page that SQLite uses.
    private(set) var usableSize: Int
    /// How many pages behind those of the database were written with this key. The first page may be that of an earlier state:
    /// see ``UncountedPages``.
    private(set) var uncounted = 0
    /// The pages that are not as they were written.
    private(set) var damaged: [Int64] = []
    /// The header of the database: the first 100 bytes of page 1; `nil` if that page is damaged.
    private(set) var header: [UInt8]?
    /// What is wrong with the files as a whole, in words.
    private(set) var problems: [String] = []

    private let connection: Connection
    private let cipher: PageCipher
    private let overlay: LogOverlay?
    /// The pages of the log or journal that are used instead of those of the file.
    private let overlaid: Set<Int64>

    /// - Parameter connection: one to the file, opened without a key and only for reading.
    init(_ connection: Connection, _ cipher: PageCipher, overlay: LogOverlay?) throws(DatabaseError) {
        self.connection = connection
        self.cipher = cipher
        pageSize = cipher.parameters.pageSize
        usableSize = pageSize - cipher.parameters.reservedBytes
        let fileCount = try connection.mainFileSize() / Int64(pageSize)
        let part = try SalvagedPages.usablePart(of: overlay, fileCount: fileCount, cipher)
        (self.overlay, overlaid) = (part.pages.isEmpty ? nil : overlay, part.pages)
        if let problem = part.problem { problems.append(problem) }
        count = max(fileCount, overlaid.max() ?? 0)
        declaredCount = self.overlay?.pageCount ?? count
        guard let first = try contents(ofPage: 1) else {
            declaredCount = min(declaredCount, count)
            return
        }
        header = Array(first[..<100])
        // SQLCipher may have reserved more bytes at first than it used later.
        if pageSize - Int(first[20]) >= 480 { usableSize = min(usableSize, pageSize - Int(first[20])) }
        // Old versions of SQLite do not update this count: it is valid only if the two change counters are equal.
        let declared = BigEndian.number(first[28..<32])
        // What a log or journal says is newer, or what is to be put back.
        if self.overlay == nil, first[24..<28] == first[92..<96], declared > 0 { declaredCount = declared }
        if declaredCount > count { problems.append("The file is cut off: it has \(count) of \(declaredCount) pages.") }
        declaredCount = min(declaredCount, count)
    }

    /// The pages of a log or journal that belong to this store. Anybody could lay a log of other pages beside it.
    private static func usablePart(
        of overlay: LogOverlay?,
        fileCount: Int64,
        _ cipher: PageCipher
    ) throws(DatabaseError) -> (pages: Set<Int64>, problem: String?) {
        guard let overlay else { return ([], nil) }
        guard overlay.pageSize == cipher.parameters.pageSize else {
            return (
                [],
                "The log or journal has pages of \(overlay.pageSize) bytes, and is not that of this store. It was left out."
            )
        }
        guard cipher.parameters.usesHMAC else {
            // A page behind the end of the file is in the log, and so is every page between.
            let end = fileCount + Int64(overlay.ownPageCount) + 1
            return (Set(overlay.pageNumbers.filter { $0 <= end }), nil)
        }
        var pages: Set<Int64> = []
        for number in overlay.pageNumbers {
            // A page of the log that cannot be read is missing, as one that was changed is.
            let page = try readable { () throws(DatabaseError) in
                try overlay.bytes(ofPage: number, from: 0, count: overlay.pageSize)
            }
            guard let page, try cipher.isAuthentic(page, number: number)
            else { continue }
            pages.insert(number)
        }
        let missing = overlay.ownPageCount - pages.count
        guard missing > 0 else { return (pages, nil) }
        let what =
            pages.isEmpty
            ? "The log or journal has no page that was written under this key. It was left out."
            : "\(missing) of \(overlay.ownPageCount) pages of the log or journal are damaged. Those of the file were used."
        return (pages, what)
    }

    /// Reads every page once.
    /// - Returns: whether any page was written with this key.
    func survey(_ progress: (Int64) throws(DatabaseError) -> Void) throws(DatabaseError) -> Bool {
        var hasOwn = false
        for number in stride(from: 1 as Int64, through: count, by: 1) {
            if let contents = try contents(ofPage: number) {
                let isOwn = isOwn(contents, number)
                hasOwn = hasOwn || isOwn
                // What a log or journal leaves behind the end is cut off with it.
                if overlay == nil, isOwn, number > declaredCount { uncounted += 1 }
            } else if number <= declaredCount, number != PageScan.lockPage(pageSize: pageSize) {
                // A page that was never written has only zeros, and nothing refers to it.
                if try bytes(ofPage: number)?.allSatisfy({ $0 == 0 }) != true { damaged.append(number) }
            }
            if number.isMultiple(of: 256) { try progress(number) }
        }
        let free = FreePages(pageCount: count, cipher: cipher) { [unowned self] number, page throws(DatabaseError) in
            guard let bytes = try bytes(ofPage: number) else { return false }
            page.copyBytes(from: bytes)
            return true
        }
        var inUse: [Int64] = []
        // What the disk cannot read may be anything.
        for number in damaged {
            let isRead = try bytes(ofPage: number) != nil
            if isRead, try free.contains(number) { continue }
            inUse.append(number)
        }
        damaged = inUse
        if uncounted > 0 {
            problems.append(
                """
                The first page counts \(declaredCount.counted("page")), and \(uncounted) of those behind were written, too: it is \
                an older one, or a commit that makes the store smaller was cut off. What was found there is in lost_and_found.
                """
            )
        }
        return hasOwn
    }

    /// Whether a page was written with this key. Without authentication codes every page can be decrypted, but only one
    /// of a tree makes sense.
    private func isOwn(_ contents: [UInt8], _ number: Int64) -> Bool {
        guard !cipher.parameters.usesHMAC else { return true }
        guard let page = TreePage(contents, number: number, usableSize: usableSize), page.isWhole else { return false }
        if number == 1, contents[21..<24] == [64, 32, 32] { return true }
        let records = page.cells.compactMap(\.payload).filter { $0.overflow == nil }
        return !records.isEmpty && records.allSatisfy { SalvagedRecord($0.local) != nil }
    }

    /// The page as SQLite sees it; `nil` if it does not exist, cannot be read, or is not as it was written.
    func contents(ofPage number: Int64) throws(DatabaseError) -> [UInt8]? {
        guard number >= 1, number <= count, let page = try bytes(ofPage: number) else { return nil }
        if cipher.parameters.usesHMAC { guard try cipher.isAuthentic(page, number: number) else { return nil } }
        guard let contents = try cipher.contents(page[...], number: number) else { return nil }
        let clear = cipher.clearBytes(ofPage: number)
        // In place of the salt, the header begins with SQLite's magic.
        let start = clear == Key.saltByteCount ? StoreHeader.plaintextMagic : Array(page[..<clear])
        let whole = (clear == 0 ? [] : start) + contents
        return whole.count >= 480 ? whole : nil
    }

    /// The page as it is stored. What the disk cannot read counts as damaged.
    private func bytes(ofPage number: Int64) throws(DatabaseError) -> [UInt8]? {
        if overlaid.contains(number), let overlay {
            let page = try readable { () throws(DatabaseError) in
                try overlay.bytes(ofPage: number, from: 0, count: pageSize)
            }
            if let page { return page }
        }
        let page = try readable { () throws(DatabaseError) in
            try connection.fileBytes(at: (number - 1) * Int64(pageSize), count: pageSize)
        }
        return page?.count == pageSize ? page : nil
    }
}
