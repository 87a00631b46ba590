import Foundation
internal import SQLiteEngine
import Synchronization

/// Sole owner of a `sqlite3 *` and of the statements prepared on it.
///
/// Statements may be dropped by anybody on any thread. Each `sqlite3_stmt` is therefore claimed exactly once, under
/// the lock of `registry`, by whoever finalises it: its last user or the closing connection.
final class Connection {
    enum Threading {
        /// SQLite serialises the calls; any thread may finalise.
        case serialized
        /// The owner lets one thread in at a time, between ``enter()`` and ``leave()``.
        case gated
    }

    private(set) var handle: OpaquePointer?
    let threading: Threading
    private let registry = Mutex(Registry())
    /// Frames in the log at the last commit, once they are counted.
    var walFrameCount: Int32 = 0
    /// The thread inside the gate, 0 for none.
    private let visitor = Atomic<UInt>(0)

    // The pointers are only handed from one owner to the next, under the lock.
    private struct Registry: @unchecked Sendable {
        var open: [ObjectIdentifier: Statement] = [:]
        var orphans: [OpaquePointer] = []
        var cache = StatementCache()
        var isClosed = false

        /// Takes the pointer out of the statement; `nil` if somebody else did.
        mutating func claim(_ statement: Statement) -> OpaquePointer? {
            open[ObjectIdentifier(statement)] = nil
            return statement.takePointer()
        }
    }

    /// https://www.sqlite.org/c3ref/open.html
    init(
        path: String,
        flags: Int32,
        vfs: String? = nil,
        threading: Threading = .serialized,
        allowsURI: Bool = false
    ) throws(DatabaseError) {
        Engine.start()
        if flags & SQLITE_OPEN_URI != 0 {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "URI filenames are off, because they can hold a key. Pass a path without SQLITE_OPEN_URI."
            )
        }
        if path.utf8.contains(0) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .misuse,
                message: "The path holds a NUL byte, at which the system would cut it off. Nothing was opened."
            )
        }
        self.threading = threading
        let mutex = threading == .serialized ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX
        let cleared = flags & ~(SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOMUTEX) | (allowsURI ? SQLITE_OPEN_URI : 0)
        // Libraries built with SQLITE_USE_URI take "file:" for a URI whatever the flags say.
        let literal = path.hasPrefix("file:") ? "./" + path : path
        let code = sqlite3_open_v2(literal, &handle, cleared | mutex, vfs)
        guard code == SQLITE_OK else {
            let error = Connection.openError(handle, code: code, path: path)
            sqlite3_close_v2(handle)
            handle = nil
            throw error
        }
        sqlite3_extended_result_codes(handle, 1)
    }

    deinit {
        close()
    }

    private static func openError(_ handle: OpaquePointer?, code: Int32, path: String) -> DatabaseError {
        let systemError = handle.map { sqlite3_system_errno($0) } ?? 0
        var text = handle.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        if systemError != 0 { text += " (\(String(cString: strerror(systemError))))" }
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        let reason: DatabaseError.Reason
        if isDirectory.boolValue {
            reason = .notRegularFile
            text += "; it is a directory"
        } else if systemError == ENOENT || (code & 0xff == SQLITE_CANTOPEN && !exists) {
            reason = .noSuchFile
        } else if systemError == EACCES || systemError == EPERM {
            reason = .noSuchFile
        } else {
            reason = .sqlite
        }
        return DatabaseError(extendedCode: code, reason: reason, message: "Cannot open \(path): \(text)")
    }

    // MARK: Gate

    private static var currentThread: UInt { UInt(pthread_self()) }

    /// Admits the calling thread; statements dropped elsewhere meanwhile are finalised here.
    func enter() {
        visitor.store(Connection.currentThread, ordering: .sequentiallyConsistent)
        finalizeOrphans()
    }

    func leave() {
        finalizeOrphans()
        visitor.store(0, ordering: .sequentiallyConsistent)
    }

    private func finalizeOrphans() {
        let orphans = registry.withLock { registry in
            defer { registry.orphans = [] }
            return PointerList(registry.orphans)
        }
        for pointer in orphans.pointers { sqlite3_finalize(pointer) }
    }

    private struct PointerList: @unchecked Sendable {
        let pointers: [OpaquePointer]
        init(_ pointers: [OpaquePointer]) { self.pointers = pointers }
    }

    // MARK: Statements

    /// Prepares the first statement of `sql`, or takes it from the cache. The statement's pointer is `nil` for empty or
    /// comment-only text. https://www.sqlite.org/c3ref/prepare.html
    func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        if let statement = takeFromCache(sql) { return statement }
        let text = Array(sql.utf8)
        let (statement, consumed) = try text.withUnsafeBufferPointer { bytes throws(DatabaseError) in
            try prepare(bytes)
        }
        statement.hasTail = text.dropFirst(consumed).contains { !$0.isSQLBlank }
        if statement.kind == .reusable, !statement.hasTail { statement.cacheKey = sql }
        return statement
    }

    private func takeFromCache(_ sql: String) -> Statement? {
        guard let entry = registry.withLock({ $0.cache.take(sql) }) else { return nil }
        let statement = Statement(pointer: entry.pointer, connection: self, kind: .reusable)
        statement.cacheKey = sql
        statement.useCount = entry.useCount + 1
        registry.withLock { $0.open[ObjectIdentifier(statement)] = statement }
        return statement
    }

    /// Prepares the first statement of `sql` and tells how many bytes it takes.
    func prepare(
        _ sql: UnsafeBufferPointer<UInt8>
    ) throws(DatabaseError) -> (Statement, consumed: Int) {
        guard let handle else { throw .notOpen }
        guard sql.count <= Int32.max else {
            throw DatabaseError(extendedCode: SQLITE_TOOBIG, message: "The statement is longer than 2 GiB.")
        }
        let holdsKey = KeyStatement.occurs(in: sql)
        if holdsKey { try Engine.requireCodec() }
        var pointer: OpaquePointer?
        var tail: UnsafePointer<CChar>?
        let start = sql.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
        let kind = StatementKind(sql)
        let flags = kind == .reusable ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
        let code = start.map { sqlite3_prepare_v3(handle, $0, Int32(sql.count), flags, &pointer, &tail) } ?? SQLITE_OK
        guard code == SQLITE_OK else {
            // Text and message could show the key.
            if holdsKey { throw DatabaseError.statementWithKeyFailed(code: sqlite3_extended_errcode(handle)) }
            throw error(sql: String(decoding: sql, as: UTF8.self))
        }
        let consumed = tail.flatMap { tail in start.map { tail - $0 } } ?? sql.count
        let statement = Statement(pointer: pointer, connection: self, kind: kind, holdsKey: holdsKey)
        if pointer != nil { registry.withLock { $0.open[ObjectIdentifier(statement)] = statement } }
        return (statement, consumed)
    }

    /// Ends a use of the statement: it goes back to the cache, or is finalised, now if this thread may, else when the
    /// owner of the gate comes by.
    func release(_ statement: Statement) {
        let mayTouch =
            threading == .serialized || visitor.load(ordering: .sequentiallyConsistent) == Connection.currentThread
        let claimed = registry.withLock { registry -> PointerList in
            guard let pointer = registry.claim(statement) else { return PointerList([]) }
            if mayTouch { return PointerList([pointer]) }
            registry.orphans.append(pointer)
            return PointerList([])
        }
        // Outside the lock: a function called by SQLite may drop a statement while it holds SQLite's own mutex.
        for pointer in claimed.pointers {
            if let sql = statement.cacheKey, !statement.hasFailed {
                sqlite3_reset(pointer)
                sqlite3_clear_bindings(pointer)
                keep(PointerList([pointer]), sql, useCount: statement.useCount)
            } else {
                sqlite3_finalize(pointer)
            }
        }
    }

    private func keep(_ statement: PointerList, _ sql: String, useCount: Int) {
        let surplus = registry.withLock { registry in
            // Closed by another thread meanwhile, which could not know of this statement.
            if registry.isClosed { return statement }
            let entry = StatementCache.Entry(pointer: statement.pointers[0], useCount: useCount)
            return PointerList(registry.cache.put(entry, for: sql))
        }
        for pointer in surplus.pointers { sqlite3_finalize(pointer) }
    }

    /// Finalises the statements that are kept for later; those in use are not touched.
    func clearCache() {
        let kept = registry.withLock { PointerList($0.cache.removeAll()) }
        for pointer in kept.pointers { sqlite3_finalize(pointer) }
    }

    /// How many statements are kept for later uses; 0 for none.
    func setCacheCapacity(_ capacity: Int) {
        let surplus = registry.withLock { PointerList($0.cache.setCapacity(capacity)) }
        for pointer in surplus.pointers { sqlite3_finalize(pointer) }
    }

    /// Finalises every statement and closes. Idempotent.
    /// - Returns: false if SQLite still had something of this connection in use; it is then closed when that ends.
    @discardableResult
    func close() -> Bool {
        guard let handle else { return true }
        let claimed = registry.withLock { registry -> PointerList in
            let statements = Array(registry.open.values)
            let pointers =
                statements.compactMap { registry.claim($0) } + registry.orphans + registry.cache.removeAll()
            registry.orphans = []
            registry.isClosed = true
            return PointerList(pointers)
        }
        for pointer in claimed.pointers { sqlite3_finalize(pointer) }
        self.handle = nil
        if sqlite3_close(handle) == SQLITE_OK { return true }
        sqlite3_close_v2(handle)
        return false
    }

    // MARK: Errors

    /// The error that SQLite last reported on this connection.
    func error(sql: String? = nil) -> DatabaseError {
        guard let handle else { return .notOpen }
        let offset = sealeddb_error_offset(handle)
        return DatabaseError(
            extendedCode: sqlite3_extended_errcode(handle),
            message: String(cString: sqlite3_errmsg(handle)),
            sql: sql,
            offset: sql != nil && offset >= 0 ? Int(offset) : nil
        )
    }

    func check(_ code: Int32, sql: String? = nil) throws(DatabaseError) {
        guard code != SQLITE_OK else { return }
        guard let handle, sqlite3_extended_errcode(handle) == code else {
            throw DatabaseError(extendedCode: code, message: String(cString: sqlite3_errstr(code)), sql: sql)
        }
        throw error(sql: sql)
    }
}

extension DatabaseError {
    static func statementWithKeyFailed(code: Int32) -> DatabaseError {
        DatabaseError(
            extendedCode: code,
            message: """
                A statement that holds a key failed (\(String(cString: sqlite3_errstr(code)))). It is not shown, so that \
                the key does not get out.
                """
        )
    }

    static var notOpen: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The database is not open. Call open() first, and look at lastError() if that fails."
        )
    }
}

extension UInt8 {
    /// White space and semicolons, which may follow a statement without being another one.
    fileprivate var isSQLBlank: Bool {
        switch self {
        case UInt8(ascii: " "), UInt8(ascii: ";"), 0x09...0x0d: true
        default: false
        }
    }
}
