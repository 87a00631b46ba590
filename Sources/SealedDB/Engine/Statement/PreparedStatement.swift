internal import SQLiteEngine

/// A statement that SQLite has compiled, and what is known about it. Between uses, it waits in the cache; each use is a
/// ``Statement``.
///
/// It belongs to the thread that uses its connection. Whoever claims it finalizes it before releasing it.
final class PreparedStatement {
    /// The statement; `nil` if the text contains none.
    let pointer: OpaquePointer?
    let kind: StatementKind
    /// Whether errors must not show the text, because it contains a key or may be meant to.
    let isSecret: Bool
    /// Whether the statement begins or ends a transaction.
    let controlsTransaction: Bool
    /// Whether the statement begins, releases or rolls back to a savepoint.
    let controlsSavepoint: Bool
    /// Whether the statement attaches or detaches a file.
    let changesAttachments: Bool
    /// Whether the end of an execution needs no further work.
    let endsPlainly: Bool
    /// Whether the statement, and what it runs itself, leaves the database file unchanged.
    /// https://www.sqlite.org/c3ref/stmt_readonly.html
    let isReadOnly: Bool
    let parameterCount: Int32
    /// The key under which the statement is cached; `nil` if it must not be cached.
    var cacheKey: StatementCache.Key?
    /// How many uses of the statement have begun.
    var useCount = 0
    /// Whether the statement was released after it ran, without a failed step. SQLite may only commit its changes when
    /// it is reset, and a failure of that has not been reported yet.
    var isUnderway = false
    /// The tables that the statement may write, if changes are observed.
    var targets = ChangeCollector.Targets()
    /// The column names, once they are needed, and how often SQLite had prepared the statement again by then.
    @exclusivity(unchecked) private var columnNames: (names: ColumnNames, reprepareCount: Int32)?
    /// The names of the parameters, as dictionary keys, once they are needed.
    private var parameterKeys: [ParameterKey?]?
    private var parameterNames: (all: [String?], count: Int)?
    // Unchecked, because its calls are never nested.
    @exclusivity(unchecked) private var boundBytes: BoundBytes

    /// The next statement in the same chain of the cache, and when this one was put there.
    var next: PreparedStatement?
    var tick: UInt64 = 0

    init(_ pointer: OpaquePointer?, text: SQLStatementText, facts: StatementFacts) {
        self.pointer = pointer
        kind = StatementKind(text, facts)
        isSecret = text.isSecret
        controlsTransaction = facts.contains(.transaction) && !text.isExplained
        controlsSavepoint = facts.contains(.savepoint) && !text.isExplained
        changesAttachments = facts.contains(.attach) && !text.isExplained
        endsPlainly = kind == .reusable && !controlsTransaction
        let runsStatements = facts.contains(.statements) && !text.isExplained
        isReadOnly = !runsStatements && pointer.map { sqlite3_stmt_readonly($0) != 0 } ?? true
        parameterCount = pointer.map { sqlite3_bind_parameter_count($0) } ?? 0
        // A value bound to a statement that is used only once may be a key. SQLite's own copy of it ends with the
        // statement.
        boundBytes = BoundBytes(capacity: kind == .reusable ? BoundBytes.usualCapacity : 0)
    }

    /// Finalizes the statement. Only whoever has claimed it may call this. https://www.sqlite.org/c3ref/finalize.html
    /// - Parameter failed: called if the execution could not be completed.
    func end(_ failed: (_ code: Int32, _ statement: PreparedStatement) -> Void) {
        if isUnderway, let pointer {
            let code = reset(pointer)
            if code != SQLITE_OK { failed(code, self) }
        }
        // The result repeats that of the last step or reset, which was already reported.
        _ = PageWatch.during(sqlite3_db_handle(pointer)) { sqlite3_finalize(pointer) }
    }

    /// Ends the execution. https://www.sqlite.org/c3ref/reset.html
    /// - Returns: a failure of the end itself, not one that the last step has reported.
    func reset(_ pointer: OpaquePointer) -> Int32 {
        let code = PageWatch.during(sqlite3_db_handle(pointer)) { sqlite3_reset(pointer) }
        defer { isUnderway = false }
        return isUnderway ? code : SQLITE_OK
    }

    /// Removes all values, so that the statement is ready for its next use. Call this after the execution has ended.
    func clear(_ pointer: OpaquePointer) {
        guard parameterCount > 0 else { return }
        // This always succeeds.
        sqlite3_clear_bindings(pointer)
        boundBytes.wipe()
    }

    /// The text, for errors; `nil` if the statement is secret.
    var sql: String? { isSecret ? nil : pointer.flatMap { sqlite3_sql($0) }.map { String(cString: $0) } }

    // MARK: Columns

    /// Returns the index of a column; -1 if there is none.
    func columnIndex(of name: String, _ pointer: OpaquePointer) -> Int32 {
        learnColumnNames(pointer)
        return columnNames?.names.index(of: name) ?? -1
    }

    /// Returns what makes dictionaries of rows, with the objects of FMDB.
    func objectsByName(_ pointer: OpaquePointer) -> RowDictionary<AnyHashable, Any>? {
        learnColumnNames(pointer)
        return columnNames?.names.objects
    }

    /// Returns what makes dictionaries of rows.
    func valuesByName(_ pointer: OpaquePointer) -> RowDictionary<String, SQLValue>? {
        learnColumnNames(pointer)
        return columnNames?.names.values
    }

    private func learnColumnNames(_ pointer: OpaquePointer) {
        guard columnNames == nil else { return }
        let names = (0..<sqlite3_column_count(pointer)).map { sqlite3_column_name(pointer, $0) }
        columnNames = (ColumnNames(names.map { $0.map { String(cString: $0) } ?? "" }), reprepareCount(pointer))
    }

    /// Call this at the first row: the step to it may have found a changed schema.
    func checkColumnNames(_ pointer: OpaquePointer) {
        if let known = columnNames?.reprepareCount, known != reprepareCount(pointer) { columnNames = nil }
    }

    /// Returns how often SQLite has prepared the statement again because of a changed schema.
    /// https://www.sqlite.org/c3ref/stmt_status.html
    private func reprepareCount(_ pointer: OpaquePointer) -> Int32 {
        sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_REPREPARE, 0)
    }

    // MARK: Values

    /// Returns the parameter names without the sign that begins them, `nil` for one without a name, and how many different
    /// names there are.
    func parameterNames(_ pointer: OpaquePointer) -> (all: [String?], count: Int) {
        if let parameterNames { return parameterNames }
        let names = (0..<parameterCount).map { index in
            sqlite3_bind_parameter_name(pointer, index + 1).map { String(cString: $0 + 1) }
        }
        let result = (all: names, count: Set(names.compactMap { $0 }).count)
        parameterNames = result
        return result
    }

    /// Returns the parameter names without their colon; `nil` for a parameter that is not of the form `:name`.
    func parameterKeys(_ pointer: OpaquePointer) -> [ParameterKey?] {
        if let parameterKeys { return parameterKeys }
        let keys = (0..<parameterCount).map { index -> ParameterKey? in
            guard let name = sqlite3_bind_parameter_name(pointer, index + 1), name[0] == CChar(UInt8(ascii: ":")) else {
                return nil
            }
            return ParameterKey(String(cString: name + 1))
        }
        parameterKeys = keys
        return keys
    }

    /// Call this before all values are bound again, while none of them is in use.
    func rewindBoundBytes() { boundBytes.rewind() }

    func bindText(_ bytes: UnsafeRawBufferPointer, to pointer: OpaquePointer, at index: Int32) -> Int32 {
        if let kept = boundBytes.keep(bytes) {
            return sealeddb_bind_static_text(pointer, index, kept, UInt64(bytes.count))
        }
        return sealeddb_bind_text(pointer, index, bytes.baseAddress, UInt64(bytes.count))
    }

    func bindBlob(_ bytes: UnsafeRawBufferPointer, to pointer: OpaquePointer, at index: Int32) -> Int32 {
        if let kept = boundBytes.keep(bytes) {
            return sealeddb_bind_static_blob(pointer, index, kept, UInt64(bytes.count))
        }
        return sealeddb_bind_blob(pointer, index, bytes.baseAddress, UInt64(bytes.count))
    }
}

/// Stores small texts and blobs that are bound to a statement in one block of memory, and reuses the block for the next
/// values. SQLite reads them there. Otherwise it would allocate memory to copy each of them.
///
/// The block is allocated by SQLite, so it is locked and wiped if SQLCipher does that with all of its memory.
/// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_memory_security
struct BoundBytes: ~Copyable {
    static let usualCapacity = 4096
    /// Copying a longer value costs more than allocating memory for it.
    private static let longest = 1024

    private let capacity: Int
    private var start: UnsafeMutableRawPointer?
    private var count = 0

    init(capacity: Int) { self.capacity = capacity }

    deinit {
        sqlite3_free(start)
    }

    /// Copies the bytes; returns `nil` if there is no room. The copy is valid until ``rewind()``.
    @inline(__always)
    mutating func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
        guard let source = bytes.baseAddress, bytes.count <= min(BoundBytes.longest, capacity &- count) else {
            return nil
        }
        guard let start = start ?? allocate() else { return nil }
        let place = start + count
        place.copyMemory(from: source, byteCount: bytes.count)
        count &+= bytes.count
        return UnsafeRawPointer(place)
    }

    @inline(never)
    private mutating func allocate() -> UnsafeMutableRawPointer? {
        start = sqlite3_malloc64(UInt64(capacity))
        return start
    }

    mutating func rewind() { count = 0 }

    /// Overwrites the values, so that nobody can read them in memory while the statement waits in the cache.
    mutating func wipe() {
        if count > 0 { start?.initializeMemory(as: UInt8.self, repeating: 0, count: count) }
        count = 0
    }
}

/// The name of a parameter, as a key of dictionaries.
struct ParameterKey {
    let key: AnyHashable
    /// `nil` if it is ASCII: then no other name is equal to it. A dictionary takes others for equal that SQLite does not.
    private let text: String?

    init(_ text: String) {
        key = AnyHashable(text)
        self.text = text.utf8.allSatisfy { $0 < 0x80 } ? nil : text
    }

    func value(in values: [AnyHashable: Any]) -> Any? {
        guard let text else { return values[key] }
        guard let found = values.index(forKey: key), (values[found].key.base as? String)?.isSame(as: text) == true
        else {
            return nil
        }
        return values[found].value
    }
}
