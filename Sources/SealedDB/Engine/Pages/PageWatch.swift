internal import CSealedDBSystem
internal import SQLiteEngine

/// Detects each page that SQLCipher finds damaged when it reads it.
///
/// If the authentication code of a page is wrong, SQLCipher passes the page to SQLite as zeros, and reports the error
/// when the next page is read. If no page follows, as after the last page of a long value, the call succeeds. So each
/// call checks for itself whether all pages were read as they were written, and fails if not.
///
/// SQLCipher 4.19, and not 4.6, passes zeros for each later page, too, and authenticates none. Where an engine is seen to do
/// so, a connection that has read a damaged page fails until it is closed, and begins no transaction.
enum PageWatch {
    /// Begins watching. ``Engine`` calls this with the first key of the process.
    ///
    /// - Parameters:
    ///   - library: the path of the SQLCipher library.
    ///   - cipherVersion: the result of `PRAGMA cipher_version` on a connection with a key, which must stay open.
    ///   - reasonAgainstContexts: see ``PageContexts/reasonAgainst(hasMemorySecurity:)``.
    /// - Returns: why watching is not possible; `nil` if it has begun.
    static func begin(
        library: String,
        cipherVersion: String,
        reasonAgainstContexts: UnsafePointer<CChar>?
    ) -> String? {
        guard isKnown(cipherVersion) else { return "SQLCipher \(cipherVersion) is not known to have the provider" }
        guard sealeddb_knows_database_names() != 0 else { return "SQLite is older than 3.39" }
        let areZerosStored: sealeddb_zeros_are_stored = { connection, page, pageSize in
            switch sealeddb_stored_as_zeros(connection.map { OpaquePointer($0) }, page, pageSize, ServedFile.methods) {
            case sealeddb_no: 0
            case sealeddb_yes: 1
            default: -1
            }
        }
        let failure = sealeddb_install_provider(library, areZerosStored, reasonAgainstContexts)
        if let failure { return String(cString: failure) }
        guard SelfTest.passes() else {
            sealeddb_neutralize_provider()
            return "a page that was damaged on purpose went unnoticed"
        }
        return nil
    }

    /// Records the result of a read. Each VFS of this module calls this after each read of a file.
    ///
    /// SQLCipher decrypts what is in the memory even if the read failed. And SQLite would report the store as damaged
    /// for EIO. <https://www.sqlite.org/rescode.html#ioerr_corruptfs>
    /// - Returns: the code to return to SQLite.
    static func note(read code: Int32) -> Int32 {
        sealeddb_note_read(code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ ? 0 : 1)
        return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code
    }

    /// Whether SQLCipher passes zeros for every page after one that could not be read.
    static var failuresStick: Bool { sealeddb_failures_stick() != 0 }

    /// Whether the provider of this version has its functions in the order that provider.c declares.
    private static func isKnown(_ version: String) -> Bool {
        let numbers = version.prefix { $0 != " " }.split(separator: ".").map { Int($0) ?? -1 }
        return numbers.count >= 2 && numbers[0] == 4 && (5...19).contains(numbers[1])
    }

    /// A page that could not be read as it was written.
    struct Failure {
        let page: UInt32
        private let cause: sealeddb_page_cause

        /// Whether the cause is the system or OpenSSL, and not the page.
        var isOfSystem: Bool { cause != sealeddb_page_is_damaged }

        /// Whether the key may be wrong, with which the first page looks damaged. SQLite's code then leads to the
        /// diagnosis.
        var mayBeOfWrongKey: Bool { page == 1 && !isOfSystem }

        /// The primary result code.
        var code: Int32 {
            switch cause {
            case sealeddb_page_not_decrypted: SQLITE_NOMEM
            case sealeddb_page_not_read: SQLITE_IOERR
            default: SQLITE_CORRUPT
            }
        }

        /// The last failure on this thread.
        static var last: Failure {
            Failure(page: sealeddb_last_failed_page(), cause: sealeddb_last_page_cause())
        }

        private var remark: String {
            PageWatch.failuresStick ? " This connection reads nothing any more until it is opened again." : ""
        }

        var error: DatabaseError {
            if code == SQLITE_IOERR {
                return DatabaseError(
                    extendedCode: SQLITE_IOERR_READ,
                    message: """
                        The system could not read page \(page). What was read is not given out; what would have been written \
                        is not kept. Look at the disk, and try again.\(remark)
                        """
                )
            }
            if isOfSystem {
                return DatabaseError(
                    extendedCode: SQLITE_NOMEM,
                    message: """
                        OpenSSL did not decrypt a page, as when memory has run out. What was read is not given out; what \
                        would have been written is not kept. Try again.\(remark)
                        """
                )
            }
            return DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .damaged,
                message: """
                    Page \(page) is not as it was written: its authentication code is wrong. What was read is not given \
                    out. Look at the store with `sealdb verify`, and restore a backup.\(remark)
                    """
            )
        }
    }

    /// Reads an encrypted database in memory, first as it was written, and then with one byte changed in its last page,
    /// which is the last page of a long value.
    private enum SelfTest {
        static func passes() -> Bool {
            guard var image = encryptedImage(), image.count >= 3 * 4096 else { return false }
            guard readsAll(of: image) == [true, true] else { return false }
            image[image.count - 2000] ^= 1
            let damaged = readsAll(of: image)
            if damaged == [false, true] { sealeddb_let_failures_stick() }
            return damaged.first == false
        }

        /// Not a secret: it only encrypts zeros.
        private static let key = [UInt8]("x'\(String(repeating: "5a", count: 32))'".utf8)

        private static func withConnection<T>(
            _ image: [UInt8],
            _ body: (OpaquePointer) -> T?
        ) -> T? {
            var handle: OpaquePointer?
            // The database is in memory, so closing it loses nothing.
            defer {
                sealeddb_forget_failures(handle.map { UnsafeMutableRawPointer($0) })
                sqlite3_close(handle)
            }
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

        /// Whether all pages were read as they were written, the first time and the second; empty if something else went
        /// wrong.
        private static func readsAll(of image: [UInt8]) -> [Bool] {
            withConnection(image) { handle -> [Bool]? in
                guard sqlite3_exec(handle, "PRAGMA cipher_compatibility = 4", nil, nil, nil) == SQLITE_OK else {
                    return nil
                }
                var answers: [Bool] = []
                for turn in 0..<2 {
                    // What a failed read has left of the schema and of pages is not to be read again.
                    if turn > 0 { sqlite3_exec(handle, "PRAGMA shrink_memory", nil, nil, nil) }
                    let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
                    var statement: OpaquePointer?
                    var code = sqlite3_prepare_v3(handle, "SELECT a FROM t", -1, 0, &statement, nil)
                    if code == SQLITE_OK { code = sqlite3_step(statement) }
                    let isWhole = sealeddb_end_page_watch(watch) != 0
                    // The result repeats that of the step.
                    sqlite3_finalize(statement)
                    // If the code is another, SQLite has noticed the damage by itself.
                    guard code == SQLITE_ROW || !isWhole || turn > 0 else { return nil }
                    answers.append(isWhole)
                }
                return answers
            } ?? []
        }
    }
}

extension PageWatch {
    /// Runs a call that ends something. Such a call may read pages, as a commit does. If a page is damaged, SQLite
    /// rolls back, and the result says so.
    @inline(__always)
    static func during(_ handle: OpaquePointer?, _ call: () -> Int32) -> Int32 {
        guard sealeddb_watches_pages() != 0 else { return call() }
        let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
        let code = call()
        return sealeddb_end_page_watch(watch) != 0 ? code : whereDamaged(code)
    }

    /// Returns the code for a damaged page. For such a page, SQLCipher makes SQLite return an unspecific code, or no
    /// error at all.
    @inline(never)
    private static func whereDamaged(_ code: Int32) -> Int32 {
        switch code & 0xff {
        case SQLITE_OK, SQLITE_ERROR, SQLITE_ABORT, SQLITE_NOMEM: Failure.last.code
        default: code
        }
    }
}

extension Connection {
    /// Runs a call that may read pages. If a page was damaged, the result is not OK, whatever SQLite returned, and
    /// ``error(sql:)`` describes the failure.
    @inline(__always)
    func watchingPages(_ call: () -> Int32) -> Int32 {
        // Calls by which SQLite reads or writes a file come here; those that end a handle are not made in a child. The code
        // becomes the error of a fork.
        guard !isForked else { return SQLITE_MISUSE }
        guard sealeddb_watches_pages() != 0 else { return call() }
        let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
        let code = call()
        return sealeddb_end_page_watch(watch) != 0 ? code : readFailed(code)
    }

    /// Records the failure that this connection has had before, if it makes all fail that follows.
    /// - Returns: the code that a call returns, which then is not made.
    @inline(never)
    func formerFailure() -> Int32? {
        let watch = sealeddb_begin_page_watch(UnsafeMutableRawPointer(handle))
        guard sealeddb_end_page_watch(watch) == 0 else { return nil }
        let failure = PageWatch.Failure.last
        guard !failure.mayBeOfWrongKey else { return nil }
        readFailure = failure
        return failure.code
    }

    /// Records a failed page.
    /// - Returns: the code that the call returns.
    @inline(never)
    private func readFailed(_ code: Int32) -> Int32 {
        let failure = PageWatch.Failure.last
        if failure.mayBeOfWrongKey { hasRefusedFirstPage = true }
        if PageWatch.failuresStick, !failure.mayBeOfWrongKey {
            // What SQLite says of zeros does not count.
            readFailure = failure
            return failure.code
        }
        if failure.isOfSystem, code & 0xff != SQLITE_IOERR {
            // SQLite's code is not used, because it comes from the contents of memory that was not read.
            readFailure = failure
            return failure.code
        }
        switch code & 0xff {
        case SQLITE_OK, SQLITE_ROW, SQLITE_DONE: break
        case SQLITE_ERROR, SQLITE_CORRUPT, SQLITE_ABORT, SQLITE_NOMEM:
            if failure.mayBeOfWrongKey { return code }
        // The call failed for another reason, or reported that the file is not a database.
        default: return code
        }
        readFailure = failure
        return failure.code
    }

    /// Takes the error of a call that failed in ``watchingPages(_:)``.
    func takeReadFailure() -> DatabaseError? {
        guard let failure = readFailure else { return nil }
        readFailure = nil
        let error = failure.error
        noteUnfitness(error.extendedCode)
        return error
    }

    /// Makes SQLite read the schema again, because it may have been read from zeros.
    func forgetSchema() {
        guard let handle else { return }
        // https://www.sqlite.org/pragma.html#pragma_writable_schema - if this fails, the statements that follow fail
        // too.
        sqlite3_exec(handle, "PRAGMA writable_schema = RESET", nil, nil, nil)
    }
}
