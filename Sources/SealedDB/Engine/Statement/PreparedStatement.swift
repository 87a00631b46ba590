internal import SQLiteEngine

/// A statement that SQLite has compiled, with what has been learned of it. Between its uses it waits in the cache; each
/// use is a ``Statement``.
///
/// Belongs to the thread that uses its connection. It is finalised by whoever claims it, and only then let go.
final class PreparedStatement {
    /// `nil` for text without a statement.
    let pointer: OpaquePointer?
    let kind: StatementKind
    /// Whether errors leave the text out, because it holds a key.
    let isSecret: Bool
    /// Whether it begins or ends a transaction.
    let controlsTransaction: Bool
    /// Whether it opens or ends a savepoint, or undoes what was done since.
    let controlsSavepoint: Bool
    /// Whether it attaches or detaches a file.
    let changesAttachments: Bool
    /// Whether nothing is to be done when it is done.
    let endsPlainly: Bool
    /// Whether it leaves the database file as it is. https://www.sqlite.org/c3ref/stmt_readonly.html
    let isReadOnly: Bool
    let parameterCount: Int32
    /// The text, if it may be kept for another use.
    var cacheKey: StatementCache.Key?
    /// How many uses it has begun.
    var useCount = 0
    /// Whether it was let go of with no step that failed: what goes wrong with its reset, with which SQLite commits what it
    /// was not stepped to the end of, is nobody's knowledge yet.
    var isUnderway = false
    /// What it may write, where changes are observed.
    var targets = ChangeCollector.Targets()
    /// Where its columns are, once that was asked, and how often SQLite had prepared it anew by then.
    @exclusivity(unchecked) private var columnNames: (names: ColumnNames, reprepareCount: Int32)?
    /// Names of the parameters, as keys of dictionaries, once they were asked for.
    private var parameterKeys: [AnyHashable?]?
    // Used by calls that do not nest.
    @exclusivity(unchecked) private var boundBytes: BoundBytes

    /// For the cache: the next one with the same hash, and when this one came.
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
        isReadOnly = pointer.map { sqlite3_stmt_readonly($0) != 0 } ?? true
        parameterCount = pointer.map { sqlite3_bind_parameter_count($0) } ?? 0
        // What is bound to a statement that is used once may be a key: SQLite's own copy goes with the statement.
        boundBytes = BoundBytes(capacity: kind == .reusable ? BoundBytes.usualCapacity : 0)
    }

    /// For whoever has claimed it. https://www.sqlite.org/c3ref/finalize.html
    /// - Parameter failed: called if its execution could not be completed.
    func end(_ failed: (_ code: Int32, _ statement: PreparedStatement) -> Void) {
        if isUnderway, let pointer {
            let code = reset(pointer)
            if code != SQLITE_OK { failed(code, self) }
        }
        // The result repeats that of the last step or reset, which was reported then.
        _ = PageWatch.during(sqlite3_db_handle(pointer)) { sqlite3_finalize(pointer) }
    }

    /// Ends the execution. https://www.sqlite.org/c3ref/reset.html
    /// - Returns: what went wrong with that, not what the last step has reported.
    func reset(_ pointer: OpaquePointer) -> Int32 {
        let code = PageWatch.during(sqlite3_db_handle(pointer)) { sqlite3_reset(pointer) }
        defer { isUnderway = false }
        return isUnderway ? code : SQLITE_OK
    }

    /// Makes it ready for its next use, with no values, after its execution has ended.
    func clear(_ pointer: OpaquePointer) {
        guard parameterCount > 0 else { return }
        // It always succeeds.
        sqlite3_clear_bindings(pointer)
        boundBytes.wipe()
    }

    /// The text, for errors; `nil` if it holds a key.
    var sql: String? { isSecret ? nil : pointer.flatMap { sqlite3_sql($0) }.map { String(cString: $0) } }

    // MARK: Columns

    /// -1 if there is none.
    func columnIndex(of name: String, _ pointer: OpaquePointer) -> Int32 {
        learnColumnNames(pointer)
        return columnNames?.names.index(of: name) ?? -1
    }

    /// The names, as keys of dictionaries.
    func columnKeys(_ pointer: OpaquePointer) -> [AnyHashable] {
        learnColumnNames(pointer)
        return columnNames?.names.keys ?? []
    }

    private func learnColumnNames(_ pointer: OpaquePointer) {
        guard columnNames == nil else { return }
        let names = (0..<sqlite3_column_count(pointer)).map { sqlite3_column_name(pointer, $0) }
        columnNames = (ColumnNames(names.map { $0.map { String(cString: $0) } ?? "" }), reprepareCount(pointer))
    }

    /// At the first row: in the step to it, SQLite may have found another schema.
    func checkColumnNames(_ pointer: OpaquePointer) {
        if let known = columnNames?.reprepareCount, known != reprepareCount(pointer) { columnNames = nil }
    }

    /// How often SQLite has prepared it anew because of a changed schema. https://www.sqlite.org/c3ref/stmt_status.html
    private func reprepareCount(_ pointer: OpaquePointer) -> Int32 {
        sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_REPREPARE, 0)
    }

    // MARK: Values

    /// The names without their colon; `nil` where one has not the form `:name`.
    func parameterKeys(_ pointer: OpaquePointer) -> [AnyHashable?] {
        if let parameterKeys { return parameterKeys }
        let keys = (0..<parameterCount).map { index -> AnyHashable? in
            guard let name = sqlite3_bind_parameter_name(pointer, index + 1), name[0] == CChar(UInt8(ascii: ":")) else {
                return nil
            }
            return AnyHashable(String(cString: name + 1))
        }
        parameterKeys = keys
        return keys
    }

    /// All values are about to be bound again, and none is in use.
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

/// Small texts and blobs that are bound to a statement, in one piece of memory that is used again for the next values.
/// SQLite reads them there, where it would otherwise allocate memory for a copy of each.
///
/// The memory is SQLite's, so that it is locked and wiped where SQLCipher is told to do so with all of it.
/// https://www.zetetic.net/sqlcipher/sqlcipher-api/#cipher_memory_security
struct BoundBytes: ~Copyable {
    static let usualCapacity = 4096
    /// A longer value costs more to copy than to allocate.
    private static let longest = 1024

    private let capacity: Int
    private var start: UnsafeMutableRawPointer?
    private var count = 0

    init(capacity: Int) { self.capacity = capacity }

    deinit {
        sqlite3_free(start)
    }

    /// `nil` if there is no place for it. Valid until ``rewind()``.
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

    /// Leaves nothing for whoever looks at the memory while the statement waits in the cache.
    mutating func wipe() {
        if count > 0 { start?.initializeMemory(as: UInt8.self, repeating: 0, count: count) }
        count = 0
    }
}
