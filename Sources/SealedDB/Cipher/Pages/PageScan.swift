/// Checks every page of a store without SQLCipher.
///
/// SQLCipher's `cipher_integrity_check` reports no progress, cannot be stopped, reports every page beyond 4 GiB as
/// damaged before version 4.17, and never ends if the size of the file cannot be read.
/// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_integrity_check>
struct PageScan {
    let connection: Connection
    let key: Key
    let settings: CipherSettings

    /// The numbers of the pages that were not written as they are with this key, or that cannot be read.
    ///
    /// Checks only the main file, so the log must already be written into it. Bytes after the last whole page are
    /// ignored.
    /// - Parameter count: the number of pages of the database. Pages after these may remain from a committed
    ///   transaction that was interrupted before it shortened the file. Some of them may never have been written.
    func damagedPages(
        ofFirst count: Int64,
        progress: ((KeyRotation.Progress) throws -> Void)? = nil
    ) throws(DatabaseError) -> [Int64] {
        let cipher = try pageCipher()
        let size = cipher.parameters.pageSize
        let count = min(count, try connection.mainFileSize() / Int64(size))
        var result: [Int64] = []
        for first in stride(from: 1 as Int64, through: count, by: 64) {
            let numbers = first...min(first + 63, count)
            result += try damagedPages(among: numbers, cipher)
            do {
                try progress?(.init(phase: .verify, completedPages: numbers.last!, totalPages: count, pageSize: size))
            } catch {
                throw DatabaseError(
                    extendedCode: SQLITE_INTERRUPT,
                    reason: .interrupted,
                    message: "The caller stopped the check. Nothing was changed."
                )
            }
        }
        return result
    }

    private func damagedPages(
        among numbers: ClosedRange<Int64>,
        _ cipher: PageCipher
    ) throws(DatabaseError) -> [Int64] {
        let size = cipher.parameters.pageSize
        let lockPage = PageScan.lockPage(pageSize: size)
        guard let bytes = try bytes(of: numbers, size: size) else {
            guard numbers.count > 1 else { return numbers.first == lockPage ? [] : [numbers.lowerBound] }
            // Read the pages one by one, to find out which of them cannot be read.
            var result: [Int64] = []
            for number in numbers { result += try damagedPages(among: number...number, cipher) }
            return result
        }
        return numbers.filter { number in
            let start = Int(number - numbers.lowerBound) * size
            return number != lockPage && !cipher.authenticates(bytes[start..<start + size], number: number)
        }
    }

    /// - Returns: `nil` if the disk cannot read these pages, or not all of them.
    func bytes(of numbers: ClosedRange<Int64>, size: Int) throws(DatabaseError) -> [UInt8]? {
        do throws(DatabaseError) {
            let bytes = try read(numbers, size: size)
            return bytes.count == numbers.count * size ? bytes : nil
        } catch {
            guard error.code == SQLITE_IOERR, error.extendedCode != SQLITE_IOERR_FSTAT else { throw error }
            return nil
        }
    }

    /// - Returns: the bytes of these pages; fewer if the file ends before.
    func read(_ numbers: ClosedRange<Int64>, size: Int) throws(DatabaseError) -> [UInt8] {
        try connection.fileBytes(at: (numbers.lowerBound - 1) * Int64(size), count: numbers.count * size)
    }

    /// The page that holds SQLite's lock bytes. SQLite never writes it.
    /// https://www.sqlite.org/fileformat.html#the_lock_byte_page
    static func lockPage(pageSize: Int) -> Int64 { 0x4000_0000 / Int64(pageSize) + 1 }

    func pageCipher() throws(DatabaseError) -> PageCipher {
        let salt: [UInt8]
        if let embedded = try key.embeddedSalt() {
            salt = embedded
        } else if let external = settings.salt {
            salt = external
        } else {
            salt = try connection.mainFileHeader()
        }
        let secret = try key.encryptionKey(salt: salt, by: settings.parameters.keyDerivation)
        return try PageCipher(key: secret, salt: salt, parameters: settings.parameters)
    }
}
