/// Checks every page of a store without SQLCipher.
///
/// SQLCipher's `cipher_integrity_check` reports no progress, cannot be stopped, reports every page beyond 4 GiB as
/// damaged before version 4.17, and never ends if the size of the file cannot be read.
/// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_integrity_check>
struct PageScan {
    let connection: Connection
    let key: Key
    let settings: CipherSettings

    /// The numbers of the pages that were not written as they are with this key, or that cannot be read. Free pages are
    /// none of them; see ``FreePages``.
    ///
    /// Checks only the main file, so the log must already be written into it. Bytes after the last whole page are
    /// ignored.
    /// - Parameters:
    ///   - count: the number of pages of the database. Pages after these may remain from a committed transaction that
    ///     was interrupted before it shortened the file. Some of them may never have been written.
    ///   - progress: called with the number of pages that have been checked. If it throws, the check stops.
    func damagedPages(
        ofFirst count: Int64,
        progress: (_ completedPages: Int64) throws(DatabaseError) -> Void = { _ in }
    ) throws(DatabaseError) -> [Int64] {
        try damagedPages(ofFirst: count, pageCipher(), marks: nil, progress: progress)
    }

    /// The same with the cipher of the store.
    /// - Parameters:
    ///   - marks: where the pages that are authentic are marked; `nil` for nowhere.
    ///   - free: called with each free page that is not authentic.
    func damagedPages(
        ofFirst count: Int64,
        _ cipher: PageCipher,
        marks: PageMarks?,
        free: (_ number: Int64, _ isBlank: Bool) -> Void = { _, _ in },
        progress: (_ completedPages: Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> [Int64] {
        let size = cipher.parameters.pageSize
        let count = min(count, try connection.mainFileSize() / Int64(size))
        let pipeline = PagePipeline(pageSize: size, pageCount: count)
        var result: [Int64] = []
        var stop: DatabaseError?
        try pipeline.forEachRun { () throws(DatabaseError) in
            try CodeWorker(scan: self, cipher: cipher.copy(), pageCount: pipeline.pagesInRun, marks: marks)
        } deliver: { numbers, damaged in
            result += damaged
            do throws(DatabaseError) { try progress(numbers.upperBound) } catch { stop = error }
            return stop == nil
        }
        if let stop { throw stop }
        return try withoutFree(result, cipher, free: free) { () throws(DatabaseError) in
            try progress(count)
        }
    }

    /// - Returns: these pages, which are not authentic, without those that are free.
    /// - Parameters:
    ///   - free: called with each of those, and whether it has only zeros.
    ///   - goOn: called now and then.
    private func withoutFree(
        _ pages: [Int64],
        _ cipher: PageCipher,
        free: (_ number: Int64, _ isBlank: Bool) -> Void,
        goOn: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> [Int64] {
        guard !pages.isEmpty else { return [] }
        let size = cipher.parameters.pageSize
        let buffer = PageBuffer(pageSize: size, pageCount: 1)
        let list = FreePages(pageCount: try connection.mainFileSize() / Int64(size), cipher: cipher) {
            (number, page) throws(DatabaseError) in try fill(page, with: number...number)
        }
        var result: [Int64] = []
        for (index, number) in pages.enumerated() {
            if index % 1024 == 1023 { try goOn() }
            if try fill(buffer.page(0), with: number...number), try list.contains(number) {
                free(number, buffer.page(0).isZero)
                continue
            }
            result.append(number)
        }
        return result
    }

    /// Fills the buffer with these pages.
    /// - Returns: false if the disk cannot read these pages, or not all of them.
    func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        with numbers: ClosedRange<Int64>
    ) throws(DatabaseError) -> Bool {
        do throws(DatabaseError) {
            return try read(numbers, into: buffer) == buffer.count
        } catch {
            guard error.code == SQLITE_IOERR, error.extendedCode != SQLITE_IOERR_FSTAT else { throw error }
            return false
        }
    }

    /// The same as ``Connection/readPages(_:into:of:)``.
    func read(
        _ numbers: ClosedRange<Int64>,
        into buffer: UnsafeMutableRawBufferPointer,
        of name: String = "the store"
    ) throws(DatabaseError) -> Int {
        try connection.readPages(numbers, into: buffer, of: name)
    }

    /// The page that holds SQLite's lock bytes. SQLite never writes it.
    /// https://www.sqlite.org/fileformat.html#the_lock_byte_page
    static func lockPage(pageSize: Int) -> Int64 { 0x4000_0000 / Int64(pageSize) + 1 }

    func pageCipher() throws(DatabaseError) -> PageCipher {
        let (secret, salt) = try pageKey()
        return try PageCipher(key: secret, salt: salt, parameters: settings.parameters)
    }

    /// The key that the pages are encrypted with, and the salt of the store.
    func pageKey() throws(DatabaseError) -> (secret: SecretBytes, salt: [UInt8]) {
        let salt: [UInt8]
        if let embedded = try key.embeddedSalt() {
            salt = embedded
        } else if let external = settings.salt {
            salt = external
        } else {
            salt = try connection.mainFileHeader()
        }
        return (try key.encryptionKey(salt: salt, by: settings.parameters.keyDerivation), salt)
    }
}

extension Connection {
    /// Fills the buffer, which is only used during the call, with these pages as they stand in the main file.
    /// - Parameter name: what an error calls the file.
    /// - Returns: how many bytes were read; fewer if the file ends before.
    func readPages(
        _ numbers: ClosedRange<Int64>,
        into buffer: UnsafeMutableRawBufferPointer,
        of name: String
    ) throws(DatabaseError) -> Int {
        let (first, last) = (numbers.lowerBound, numbers.upperBound)
        do throws(DatabaseError) {
            return try readFile(at: (first - 1) * Int64(buffer.count / numbers.count), into: buffer)
        } catch {
            let pages = first == last ? "Page \(first)" : "Pages \(first) to \(last)"
            throw error.adding(context: "\(pages) of \(name) cannot be read")
        }
    }
}
