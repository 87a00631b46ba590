/// A look at every page of a store, without SQLCipher.
struct PageScan {
    let connection: Connection
    let key: Key
    let settings: CipherSettings

    /// The numbers of the pages that this key did not write as they are.
    ///
    /// Of the file alone: the log must be in it.
    func damagedPages(progress: ((KeyRotation.Progress) throws -> Void)? = nil) throws(DatabaseError) -> [Int64] {
        let cipher = try pageCipher()
        let size = cipher.parameters.pageSize
        let count = try connection.mainFileSize() / Int64(size)
        var result: [Int64] = []
        let lockPage = PageScan.lockPage(pageSize: size)
        for number in stride(from: 1 as Int64, through: count, by: 1) where number != lockPage {
            let page = try connection.fileBytes(at: (number - 1) * Int64(size), count: size)
            if !cipher.authenticates(page, number: number) { result.append(number) }
            guard let progress, number.isMultiple(of: 256) || number == count else { continue }
            do {
                try progress(.init(phase: .verify, completedPages: number, totalPages: count, pageSize: size))
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

    /// The page that SQLite's locks lie on, which it never writes.
    /// https://www.sqlite.org/fileformat.html#the_lock_byte_page
    static func lockPage(pageSize: Int) -> Int64 { 0x4000_0000 / Int64(pageSize) + 1 }

    private func pageCipher() throws(DatabaseError) -> PageCipher {
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
