internal import CSealedDBSystem
internal import SQLiteEngine

/// Sees each page that SQLCipher finds damaged while it reads.
///
/// SQLCipher hands a page whose authentication code is wrong to SQLite as zeros, and reports it with the next page that
/// it is asked for. Where none follows, such as behind the last page of a long value, the call ends well. So the call
/// looks for itself whether all pages were those that were written, and fails if they were not.
enum PageWatch {
    /// Why it cannot be done; `nil` if it is. For ``Engine``, which begins it with the first key of the process.
    ///
    /// - Parameters:
    ///   - library: the path of the engine.
    ///   - cipherVersion: what `PRAGMA cipher_version` says, while a connection with a key is open that stays so.
    static func begin(library: String, cipherVersion: String) -> String? {
        guard isKnown(cipherVersion) else { return "SQLCipher \(cipherVersion) is not known to have the provider" }
        guard sealeddb_knows_database_names() != 0 else { return "SQLite is older than 3.39" }
        let failure = sealeddb_install_provider(library) { connection, page, pageSize in
            switch sealeddb_stored_as_zeros(connection.map { OpaquePointer($0) }, page, pageSize) {
            case sealeddb_no: 0
            case sealeddb_yes: 1
            default: -1
            }
        }
        if let failure { return String(cString: failure) }
        guard SelfTest.passes() else {
            sealeddb_neutralize_provider()
            return "a page that was damaged on purpose went unnoticed"
        }
        return nil
    }

    /// For each VFS of this module, with the result of each read of a file.
    ///
    /// SQLCipher has what is in the memory decrypted when the read failed, too. And SQLite would call the store damaged for
    /// EIO. <https://www.sqlite.org/rescode.html#ioerr_corruptfs>
    /// - Returns: what SQLite is to be told.
    static func note(read code: Int32) -> Int32 {
        sealeddb_note_read(code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ ? 0 : 1)
        return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code
    }

    /// The versions whose provider has its functions at the places that provider.h knows.
    private static func isKnown(_ version: String) -> Bool {
        let numbers = version.prefix { $0 != " " }.split(separator: ".").map { Int($0) ?? -1 }
        return numbers.count >= 2 && numbers[0] == 4 && (5...19).contains(numbers[1])
    }

    /// What was wrong with a page that was read.
    struct Failure {
        let page: UInt32
        private let cause: sealeddb_page_cause

        /// Whether it is no fault of the page.
        var isOfSystem: Bool { cause != sealeddb_page_is_damaged }

        /// The primary one.
        var code: Int32 {
            switch cause {
            case sealeddb_page_not_decrypted: SQLITE_NOMEM
            case sealeddb_page_not_read: SQLITE_IOERR
            default: SQLITE_CORRUPT
            }
        }

        /// The last one of this thread.
        static var last: Failure {
            Failure(page: sealeddb_last_failed_page(), cause: sealeddb_last_page_cause())
        }

        var error: DatabaseError {
            if code == SQLITE_IOERR {
                return DatabaseError(
                    extendedCode: SQLITE_IOERR_READ,
                    message: """
                        The system could not read page \(page). What was read is not given out; what would have been written \
                        is not kept. Look at the disk, and try again.
                        """
                )
            }
            if isOfSystem {
                return DatabaseError(
                    extendedCode: SQLITE_NOMEM,
                    message: """
                        OpenSSL did not decrypt a page, as when memory has run out. What was read is not given out; what \
                        would have been written is not kept. Try again.
                        """
                )
            }
            return DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    Page \(page) is not as it was written: its authentication code is wrong. What was read is not given \
                    out. Look at the store with `sealdb verify`, and restore a backup.
                    """
            )
        }
    }

    /// An encrypted database in memory, once as it was written and once with a byte of its last page changed, which is
    /// the last page of a long value.
    private enum SelfTest {
        static func passes() -> Bool {
            guard var image = encryptedImage(), image.count >= 3 * 4096 else { return false }
            guard readsAll(of: image) == true else { return false }
            image[image.count - 2000] ^= 1
            return readsAll(of: image) == false
        }

        /// Not a secret: nothing but zeros is encrypted with it.
        private static let key = [UInt8]("x'\(String(repeating: "5a", count: 32))'".utf8)

        private static func withConnection<T>(
            _ image: [UInt8],
            _ body: (OpaquePointer) -> T?
        ) -> T? {
            var handle: OpaquePointer?
            // Nothing is lost with it.
            defer { sqlite3_close(handle) }
            let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
            guard sqlite3_open_v2(":memory:", &handle, flags, nil) == SQLITE_OK, let handle else { return nil }
            guard let copy = sqlite3_malloc64(UInt64(max(image.count, 1))) else { return nil }
            copy.copyMemory(from: image, byteCount: image.count)
            let count = sqlite3_int64(image.count)
            let ownership = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
            let bytes = copy.assumingMemoryBound(to: UInt8.self)
            guard sqlite3_deserialize(handle, "main", bytes, count, count, ownership) == SQLITE_OK,
                sealeddb_key(handle, key, Int32(key.count)) == SQLITE_OK
            else { return nil }
            return body(handle)
        }

        private static func encryptedImage() -> [UInt8]? {
            withConnection([]) { handle in
                let sql = "PRAGMA cipher_compatibility = 4; CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(6000))"
                guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { return nil }
                var count: sqlite3_int64 = 0
                guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else { return nil }
                defer { sqlite3_free(bytes) }
                return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
            }
        }

        /// Whether all pages are found as they were written; `nil` if something else goes wrong.
        private static func readsAll(of image: [UInt8]) -> Bool? {
            withConnection(image) { handle in
                var statement: OpaquePointer?
                // Its result is that of the step.
                defer { sqlite3_finalize(statement) }
                guard sqlite3_exec(handle, "PRAGMA cipher_compatibility = 4", nil, nil, nil) == SQLITE_OK else {
                    return nil
                }
                let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
                var code = sqlite3_prepare_v3(handle, "SELECT a FROM t", -1, 0, &statement, nil)
                if code == SQLITE_OK { code = sqlite3_step(statement) }
                let isWhole = sealeddb_end_page_watch(watch) != 0
                // Otherwise SQLite knows by itself.
                guard code == SQLITE_ROW || !isWhole else { return nil }
                return isWhole
            }
        }
    }
}

extension PageWatch {
    /// Runs a call that ends something, and may read pages to do so: a commit can. A page that is damaged makes SQLite
    /// roll back, which its result says.
    @inline(__always)
    static func during(_ handle: OpaquePointer?, _ call: () -> Int32) -> Int32 {
        guard sealeddb_watches_pages() != 0 else { return call() }
        let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
        let code = call()
        return sealeddb_end_page_watch(watch) != 0 ? code : whereDamaged(code)
    }

    /// SQLCipher makes SQLite fail with a code that says nothing, or not at all.
    @inline(never)
    private static func whereDamaged(_ code: Int32) -> Int32 {
        switch code & 0xff {
        case SQLITE_OK, SQLITE_ERROR, SQLITE_ABORT, SQLITE_NOMEM: Failure.last.code
        default: code
        }
    }
}

extension Connection {
    /// Runs a call that may read pages. If one was damaged the result is not OK, whatever SQLite says, and ``error(sql:)``
    /// tells.
    @inline(__always)
    func watchingPages(_ call: () -> Int32) -> Int32 {
        guard sealeddb_watches_pages() != 0 else { return call() }
        let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
        let code = call()
        return sealeddb_end_page_watch(watch) != 0 ? code : readFailed(code)
    }

    /// - Returns: the code that the call ends with.
    @inline(never)
    private func readFailed(_ code: Int32) -> Int32 {
        let failure = PageWatch.Failure.last
        if failure.code == SQLITE_IOERR, code & 0xff != SQLITE_IOERR {
            // Whatever SQLite made of what was in the memory.
            readFailure = failure
            return SQLITE_IOERR
        }
        switch code & 0xff {
        case SQLITE_OK, SQLITE_ROW, SQLITE_DONE: break
        // With a wrong key the first page looks damaged, and SQLite's answer leads to the diagnosis.
        case SQLITE_ERROR, SQLITE_CORRUPT, SQLITE_ABORT, SQLITE_NOMEM:
            if failure.page == 1, !failure.isOfSystem { return code }
        // The call has failed for another reason, or says that it is no database.
        default: return code
        }
        readFailure = failure
        return failure.code
    }

    /// The error of a call that ``watchingPages(_:)`` ended.
    func takeReadFailure() -> DatabaseError? {
        guard let failure = readFailure else { return nil }
        readFailure = nil
        let error = failure.error
        noteUnfitness(error.extendedCode)
        return error
    }

    /// Has SQLite read the schema again, which it may have made of zeros.
    func forgetSchema() {
        guard let handle else { return }
        // https://www.sqlite.org/pragma.html#pragma_writable_schema - if it fails, so do the statements that follow.
        sqlite3_exec(handle, "PRAGMA writable_schema = RESET", nil, nil, nil)
    }
}
