import Foundation
internal import SQLiteEngine

/// The fundamental types of SQLite values. The raw values are SQLite's. https://www.sqlite.org/c3ref/c_blob.html
public enum SqliteValueType: Int32, Sendable {
    /// An integer.
    case integer = 1
    /// A floating-point number.
    case float = 2
    /// Text.
    case text = 3
    /// Bytes.
    case blob = 4
    /// NULL.
    case null = 5
}

/// One use of a prepared statement: FMDB's `FMStatement`. https://www.sqlite.org/c3ref/stmt.html
///
/// It belongs to the thread that uses its ``Database``, but any thread may release it.
public final class Statement {
    /// The statement; `nil` if the text contains none, and after the use has ended.
    private(set) var pointer: OpaquePointer?
    /// The number of columns of the present row. It is 0 unless the last step returned a row.
    private var rowWidth: Int32 = 0
    /// How many rows the execution has returned.
    private(set) var rowNumber = 0
    /// Whether a step is running. A function that the step calls must not use the statement.
    private(set) var isRunning = false
    private var isClosing = false
    /// Whether SQLite must reset the statement before it can run again.
    private(set) var hasRun = false
    /// Whether values are missing, because binding has failed or is not complete. The statement must not run then: it
    /// would have NULL in place of values.
    private(set) var lacksValues = false
    /// Counts the rounds of binding all parameters, including unfinished ones.
    private(set) var bindingRound: Int32 = 0
    /// How many parameters have been bound in this round, counted from the first one without a gap.
    private var boundCount: Int32 = 0
    /// Whether a step or an end has failed.
    private(set) var hasFailed = false
    /// Whether the last step of the present execution failed.
    private var hasStepFailed = false
    private var endFailure: DatabaseError?
    /// When the time limit ends, in nanoseconds of the monotonic clock; `nil` for no limit.
    var deadline: UInt64?
    /// Whether anything but blanks, comments and semicolons follows the statement in its text.
    var hasTail = false

    let connection: Connection
    let prepared: PreparedStatement
    /// Whether no other thread may use the connection at the same time. Then SQLite's `sqlite3_value` may be used like
    /// a column. https://www.sqlite.org/c3ref/value.html
    var isAlone: Bool { gate != nil }
    private let gate: ThreadGate?
    /// The object that the statement keeps alive while it is in use: the database of a result set.
    var user: AnyObject?
    /// How many queries and updates this prepared statement has served, including the present one. It is 1 if the
    /// statement was prepared for this use, and more if it came from the cache.
    public let useCount: Int

    // The neighbours in the connection's list, guarded by the connection's lock.
    var nextInUse: Unmanaged<Statement>?
    var previousInUse: Unmanaged<Statement>?

    init(_ prepared: PreparedStatement, connection: Connection) {
        self.prepared = prepared
        self.pointer = prepared.pointer
        self.connection = connection
        gate = connection.gate
        prepared.useCount += 1
        useCount = prepared.useCount
    }

    /// What a use returns when it ends.
    struct Taken {
        let prepared: PreparedStatement
        let user: AnyObject?
    }

    /// Ends the use. Only the connection calls this, under its lock. Returns `nil` if the use has already ended.
    func take() -> Taken? {
        guard pointer != nil else { return nil }
        prepared.isUnderway = hasRun && !hasStepFailed
        defer {
            pointer = nil
            rowWidth = 0
            user = nil
        }
        return Taken(prepared: prepared, user: user)
    }

    /// Whether the use has not ended.
    public var inUse: Bool { pointer != nil }

    /// The text of the statement; empty once the use has ended, and if the statement contains a key.
    public var query: String {
        if pointer != nil { requireTurn("Statement.query") }
        return sql ?? ""
    }

    var kind: StatementKind { prepared.kind }
    /// Whether the statement leaves the database file unchanged.
    var isReadOnly: Bool { prepared.isReadOnly }
    var isRunningWriter: Bool { isRunning && !isReadOnly }
    var hasRow: Bool { rowWidth > 0 }
    var dateFormat: DateFormatter? { connection.dateFormat }

    var targets: ChangeCollector.Targets {
        get { prepared.targets }
        set { prepared.targets = newValue }
    }

    /// The same as ``user``; `nil` if the use ends with the running step.
    var activeUser: AnyObject? {
        guard pointer != nil, !isClosing else { return nil }
        requireTurn("ResultSet")
        return user
    }

    /// Ends the process if another thread may be using the connection now. A statement that has ended may be used on
    /// any thread, because it no longer uses the connection.
    @inline(__always)
    func requireTurn(_ call: StaticString) { gate?.require(call) }

    /// Ends this use, as closing the result set does. Calling it again has no effect. Within a function that the
    /// statement calls, the use ends when the function has returned.
    ///
    /// Outside a transaction, SQLite commits the changes of the statement at this point at the latest. If that fails,
    /// ``Database/lastError()`` returns the error. https://www.sqlite.org/c3ref/reset.html
    public func close() {
        if let failure = end() { connection.noteUnnoticed(failure) }
    }

    /// Ends the use like ``close()``, and returns why the execution could not be completed.
    func end() -> DatabaseError? {
        guard isRunning else { return connection.release(self) }
        isClosing = true
        return nil
    }

    /// Advances to the next row; returns false at the end. https://www.sqlite.org/c3ref/step.html
    func step() throws(DatabaseError) -> Bool { try advance() }

    /// The same as ``step()``, for the calls made for each row. Rare cases are in separate functions.
    @inline(__always)
    func advance() throws(DatabaseError) -> Bool {
        guard let pointer else { throw refusal }
        requireTurn("ResultSet.next")
        guard !isRunning, !lacksValues else { throw refusal }
        try connection.requireNoHook()
        if rowWidth == 0, !connection.startsFreely(isReadOnly) { try connection.willStart(self) }
        hasRun = true
        isRunning = true
        let code = connection.step(self, pointer)
        isRunning = false
        if code == SQLITE_ROW, !isClosing {
            if rowWidth > 0 { rowNumber &+= 1 } else { stepped(pointer) }
            return true
        }
        if code == SQLITE_DONE, !isClosing, prepared.endsPlainly {
            rowWidth = 0
            if !isReadOnly { try connection.hasWritten() }
            return false
        }
        return try ended(code)
    }

    /// Call this when the statement has reached the first row.
    @inline(never)
    private func stepped(_ pointer: OpaquePointer) {
        rowNumber = 1
        hasStepFailed = false
        rowWidth = sqlite3_data_count(pointer)
        prepared.checkColumnNames(pointer)
        // Possibly no further step follows, and the statement may end on any thread.
        if !isReadOnly {
            connection.willHaveWritten()
            connection.mayHaveOpenWriter = connection.isAutocommit
        }
    }

    @inline(never)
    private func ended(_ code: Int32) throws(DatabaseError) -> Bool {
        rowWidth = code == SQLITE_ROW ? sqlite3_data_count(pointer) : 0
        var error = code == SQLITE_ROW || code == SQLITE_DONE ? nil : connection.error(sql: sql, of: prepared)
        // The failure may come from the statement's own commit, or from one that it requests.
        if let failure = error, mayHaveCommitted, let state = connection.stateAfterMoment(failure.extendedCode) {
            error = failure.adding(commitState: state)
        }
        hasStepFailed = error != nil
        hasFailed = hasFailed || hasStepFailed
        if isClosing, let failure = connection.release(self) { throw failure }
        if let error { throw connection.supervision?.explain(error) ?? error }
        guard code == SQLITE_DONE else { throw .statementClosed }
        if kind == .schemaChange { connection.clearCache() }
        if prepared.controlsTransaction || prepared.controlsSavepoint {
            connection.noteBoundary(isSavepoint: prepared.controlsSavepoint)
        }
        // If a schema is unsafe, the guard itself is detaching a file.
        if prepared.changesAttachments, connection.statementGuard.unsafeSchema == nil {
            try connection.forgetDetachedFiles()
            try connection.holdChangesOfAttachedFiles()
            try connection.requireSealedAttachments()
        }
        if !isReadOnly { try connection.writeHeldChanges() }
        return false
    }

    /// Whether a failure of the statement may be one of a commit.
    private var mayHaveCommitted: Bool {
        let controls = prepared.controlsTransaction || prepared.controlsSavepoint
        let verb = controls ? sql.flatMap { SQLStatementText.verb(of: $0) } : nil
        // If the commit of an outermost savepoint fails, SQLite says that the transaction is open again.
        if verb == "release" { return true }
        return connection.isAutocommit && (controls ? verb == "commit" || verb == "end" : !isReadOnly)
    }

    private var refusal: DatabaseError {
        @inline(never) get {
            pointer == nil ? .statementClosed : isRunning ? .statementRunning : .valuesMissing(sql)
        }
    }

    /// Makes the statement ready to run again, and keeps its bound values. https://www.sqlite.org/c3ref/reset.html
    ///
    /// Within a function that the statement calls, this does nothing. If the execution could not be completed,
    /// ``Database/lastError()`` returns the error.
    public func reset() {
        if !isReset(), let failure = takeEndFailure() { connection.noteUnnoticed(failure) }
    }

    /// Resets like ``reset()``. Returns false if the execution could not be completed; ``takeEndFailure()`` then
    /// returns the error.
    @inline(__always)
    func isReset() -> Bool {
        guard let pointer, hasRun, !isRunning else { return true }
        requireTurn("Statement.reset")
        rowWidth = 0
        hasRun = false
        let code = connection.watchingPages { sqlite3_reset(pointer) }
        if !isReadOnly { connection.settleEnd() }
        return code == SQLITE_OK || isFailureKnown()
    }

    /// Whether the result of the reset repeats the error of the last step, which was already reported. Otherwise
    /// records it.
    @inline(never)
    private func isFailureKnown() -> Bool {
        guard !hasStepFailed else {
            hasStepFailed = false
            connection.readFailure = nil
            return true
        }
        hasFailed = true
        endFailure = connection.endFailure(connection.lastCode, of: prepared)
        return false
    }

    /// Call this before new values are bound. If the execution could not be completed, this throws, and the statement
    /// cannot run until values are bound again.
    func requireReset() throws(DatabaseError) {
        guard !isReset(), let failure = takeEndFailure() else { return }
        lacksValues = true
        throw failure
    }

    func takeEndFailure() -> DatabaseError? {
        defer { endFailure = nil }
        return endFailure
    }

    func clearBindings() {
        guard let pointer else { return }
        requireTurn("ResultSet.bind")
        if !isRunning { prepared.clear(pointer) }
    }

    /// The text, for errors; `nil` if it contains a key.
    var sql: String? { pointer == nil ? nil : prepared.sql }

    // MARK: Parameters

    var parameterCount: Int32 { pointer == nil ? 0 : prepared.parameterCount }

    /// The names of the parameters without the colon; `nil` for a parameter that is not of the form `:name`.
    var parameterKeys: [ParameterKey?] { turnPointer.map { prepared.parameterKeys($0) } ?? [] }

    /// The names of the parameters without the signs that begin them, and how many different ones there are.
    var parameterNames: (all: [String?], count: Int) { turnPointer.map { prepared.parameterNames($0) } ?? ([], 0) }

    /// The name of a parameter with its first character, such as `:name`; `nil` if it has none. The first is at 1.
    func parameterName(at index: Int32) -> String? {
        turnPointer.flatMap { sqlite3_bind_parameter_name($0, index) }.map { String(cString: $0) }
    }

    /// Call this before all parameters are bound in their order. The statement cannot run until ``endBinding(_:)``.
    /// - Returns: the number of the round that begins.
    func beginBinding(_ given: Int) throws(DatabaseError) -> Int32 {
        guard beginsBinding(given) else { throw wrongCount(given) }
        return bindingRound
    }

    /// The same as ``beginBinding(_:)``; returns false where that throws ``wrongCount(_:)``.
    @inline(__always)
    func beginsBinding(_ given: Int) -> Bool {
        if pointer != nil { requireTurn("ResultSet.bind") }
        lacksValues = true
        bindingRound &+= 1
        boundCount = 0
        guard given == Int(parameterCount) else { return false }
        // Not while the statement runs: its values are in use then, and SQLite will refuse new ones.
        if !isRunning, !hasRun { prepared.rewindBoundBytes() }
        return true
    }

    /// Ends a round of binding. Throws unless each parameter was bound, because the type of a caller may bind what it
    /// likes. A parameter without a new value would still point to memory that another value now occupies. And if the
    /// statement was bound within this round, its parameters would have the values of that inner round.
    func endBinding(_ round: Int32) throws(DatabaseError) {
        guard endsBinding(round) else { throw incomplete(round) }
    }

    /// The same as ``endBinding(_:)``; returns false where that throws ``incomplete(_:)``.
    @inline(__always)
    func endsBinding(_ round: Int32) -> Bool {
        guard boundCount == parameterCount, round == bindingRound else { return false }
        lacksValues = false
        return true
    }

    @inline(never)
    func incomplete(_ round: Int32) -> DatabaseError {
        guard pointer != nil else { return .statementClosed }
        // The inner round may have ended without an error, with its own values.
        lacksValues = true
        clearBindings()
        let problem =
            round == bindingRound
            ? "The value for parameter \(boundCount + 1) bound nothing; its bind(to:) has to bind one value, or NULL."
            : "The bind(to:) of a value bound other values to the very statement that it was to be bound to."
        return DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: problem + " Nothing was executed.",
            sql: sql
        )
    }

    /// Records that a parameter has its value.
    @inline(__always)
    private func isBound(_ code: Int32, _ index: Int32) -> Bool {
        guard code == SQLITE_OK else { return false }
        if index == boundCount &+ 1 { boundCount = index }
        return true
    }

    // These return false on failure; ``bindingFailure`` is then the error. This costs less than throwing.

    @inline(__always)
    func bindNull(to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(sqlite3_bind_null(pointer, index), index)
    }

    @inline(__always)
    func bind(_ value: Int64, to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(sqlite3_bind_int64(pointer, index, value), index)
    }

    @inline(__always)
    func bind(_ value: Double, to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(sqlite3_bind_double(pointer, index, value), index)
    }

    @inline(__always)
    func bind(_ value: String, to index: Int32) -> Bool {
        // Unlike `withUTF8` and spans, this does not retain the string during the call. All strings are contiguous on
        // Linux.
        value.utf8.withContiguousStorageIfAvailable { bindText(UnsafeRawBufferPointer($0), to: index) } ?? false
    }

    /// Binds bytes as text. They must be valid UTF-8.
    @inline(__always)
    func bindText(_ bytes: UnsafeRawBufferPointer, to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(prepared.bindText(bytes, to: pointer, at: index), index)
    }

    /// Binds bytes as a blob. Empty bytes are an empty blob, not NULL.
    @inline(__always)
    func bind(_ bytes: UnsafeRawBufferPointer, to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(prepared.bindBlob(bytes, to: pointer, at: index), index)
    }

    var bindingFailure: DatabaseError { pointer == nil ? .statementClosed : connection.error(sql: sql) }

    func bindNull(at index: Int32) throws(DatabaseError) {
        guard bindNull(to: index) else { throw bindingFailure }
    }

    func bind(_ value: Int64, at index: Int32) throws(DatabaseError) {
        guard bind(value, to: index) else { throw bindingFailure }
    }

    func bind(_ value: Double, at index: Int32) throws(DatabaseError) {
        guard bind(value, to: index) else { throw bindingFailure }
    }

    func bind(_ value: String, at index: Int32) throws(DatabaseError) {
        guard bind(value, to: index) else { throw bindingFailure }
    }

    /// Binds bytes as a blob. Empty bytes are an empty blob, not NULL.
    func bind(_ bytes: some ContiguousBytes, at index: Int32) throws(DatabaseError) {
        guard bytes.withUnsafeBytes({ bind($0, to: index) }) else { throw bindingFailure }
    }

    func bindText(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws(DatabaseError) {
        guard bindText(bytes, to: index) else { throw bindingFailure }
    }

    func wrongCount(_ given: Int) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_RANGE,
            reason: .misuse,
            message: """
                The statement has \(parameterCount) parameters, but \(given) values were given. Nothing was executed. \
                A placeholder inside of quotes is no parameter.
                """,
            sql: sql
        )
    }

    // MARK: Columns. If there is no row or no such column, every value is NULL.

    var columnCount: Int32 { turnPointer.map { sqlite3_column_count($0) } ?? 0 }

    /// The same as ``pointer``. Ends the process if it is not this thread's turn.
    private var turnPointer: OpaquePointer? {
        guard let pointer else { return nil }
        requireTurn("ResultSet")
        return pointer
    }

    func columnName(at index: Int32) -> String? {
        guard let pointer = turnPointer, index >= 0, index < sqlite3_column_count(pointer) else { return nil }
        return sqlite3_column_name(pointer, index).map { String(cString: $0) }
    }

    /// What makes dictionaries of rows, with the objects of FMDB; `nil` if the statement is closed.
    var objectsByName: RowDictionary<AnyHashable, Any>? { turnPointer.flatMap { prepared.objectsByName($0) } }

    /// What makes dictionaries of rows; `nil` if the statement is closed.
    var valuesByName: RowDictionary<String, SQLValue>? { turnPointer.flatMap { prepared.valuesByName($0) } }

    /// Returns the index of a column; -1 if there is none.
    func columnIndex(of name: String) -> Int32 {
        guard let pointer = turnPointer else { return -1 }
        return prepared.columnIndex(of: name, pointer)
    }

    /// Returns the pointer if there is a row with this column; otherwise SQLite would record an error.
    @inline(__always)
    private func row(_ index: Int32) -> OpaquePointer? {
        hasColumn(index) ? pointer : nil
    }

    @inline(__always)
    func hasColumn(_ index: Int32) -> Bool {
        guard UInt32(bitPattern: index) < UInt32(bitPattern: rowWidth) else { return false }
        requireTurn("ResultSet, reading a column")
        return true
    }

    @inline(__always)
    func type(at index: Int32) -> SqliteValueType {
        guard let pointer = row(index) else { return .null }
        return SqliteValueType(rawValue: sqlite3_column_type(pointer, index)) ?? .null
    }

    @inline(__always)
    func int64(at index: Int32) -> Int64 {
        guard let pointer = row(index) else { return 0 }
        return sqlite3_column_int64(pointer, index)
    }

    @inline(__always)
    func double(at index: Int32) -> Double {
        guard let pointer = row(index) else { return 0 }
        return sqlite3_column_double(pointer, index)
    }

    /// Returns text, including NUL characters; `nil` for NULL and for invalid UTF-8.
    func text(at index: Int32) -> String? {
        row(index).flatMap { text(at: index, in: $0) }
    }

    /// Returns NUL-terminated text in SQLite's memory. It is valid until the next step, reset or conversion.
    func textPointer(at index: Int32) -> UnsafePointer<UInt8>? {
        row(index).flatMap { sqlite3_column_text($0, index) }
    }

    /// Calls `body` with SQLite's own bytes of a blob, or of a text as UTF-8, without a copy. Returns `nil` for NULL.
    @discardableResult
    func withBytes<T, E: Error>(
        at index: Int32,
        _ body: (UnsafeRawBufferPointer) throws(E) -> T
    ) throws(E) -> T? {
        guard let pointer = row(index) else { return nil }
        let type = sqlite3_column_type(pointer, index)
        guard type != SqliteValueType.null.rawValue else { return nil }
        // Reading a text as a blob would return it in the encoding of the database. The pointer of an empty blob is
        // null.
        let isText = type == SqliteValueType.text.rawValue
        let start = isText ? UnsafeRawPointer(sqlite3_column_text(pointer, index)) : sqlite3_column_blob(pointer, index)
        let count = start == nil ? 0 : Int(sqlite3_column_bytes(pointer, index))
        return try body(UnsafeRawBufferPointer(start: start, count: count))
    }
}

@available(*, unavailable, message: "A Statement belongs to the thread that uses its Database.")
extension Statement: Sendable {}

extension DatabaseError {
    static var statementRunning: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The statement was stepped by a function that it calls itself. Use another statement there."
        )
    }

    static var statementClosed: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The statement is closed or holds no SQL. Prepare it anew."
        )
    }

    static func valuesMissing(_ sql: String?) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The values could not be bound. Nothing was executed; bind them again first.",
            sql: sql
        )
    }
}
