import Foundation
internal import SQLiteEngine

/// Fundamental types of SQLite values, with SQLite's numbers. https://www.sqlite.org/c3ref/c_blob.html
public enum SqliteValueType: Int32, Sendable {
    case integer = 1
    case float = 2
    case text = 3
    case blob = 4
    case null = 5
}

/// One use of a prepared statement: FMDB's `FMStatement`. https://www.sqlite.org/c3ref/stmt.html
///
/// Belongs to the thread that uses its ``Database``; it may be dropped on any.
public final class Statement {
    /// `nil` for text without a statement, and once the use has ended.
    private(set) var pointer: OpaquePointer?
    /// Columns of the row that it stands on, between a step that returned one and the next step, reset or end; else 0.
    private var rowWidth: Int32 = 0
    /// How many rows the execution has returned.
    private(set) var rowNumber = 0
    /// Whether a step is under way; a function that it calls must leave the statement alone.
    private(set) var isRunning = false
    private var isClosing = false
    /// Whether SQLite has to reset it before it runs again.
    private(set) var hasRun = false
    /// True after a failed binding: it must not run with NULL in place of values.
    private(set) var lacksValues = false
    /// Counts how often all parameters were bound, or begun to be.
    private(set) var bindingRound: Int32 = 0
    /// How many parameters have their value in this round: the first ones, without a gap.
    private var boundCount: Int32 = 0
    /// Whether a step or an end failed.
    private(set) var hasFailed = false
    /// Whether the last step of the present execution failed.
    private var hasStepFailed = false
    private var endFailure: DatabaseError?
    /// When its time is up, where that is limited; in nanoseconds of the monotonic clock.
    var deadline: UInt64?
    /// Whether text that is more than white space followed the statement.
    var hasTail = false

    let connection: Connection
    let prepared: PreparedStatement
    /// Whether no other thread may use the connection meanwhile: SQLite's `sqlite3_value` is then as good as a column.
    /// https://www.sqlite.org/c3ref/value.html
    var isAlone: Bool { gate != nil }
    private let gate: ThreadGate?
    /// Whom it keeps alive while it is in use: the database of a result set.
    var user: AnyObject?
    /// How many queries and updates this prepared statement has served, the present one included: 1 for one that was
    /// prepared now, more for one from the cache.
    public let useCount: Int

    // Its place in the connection's list, under the connection's lock.
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

    /// What a use gives back at its end.
    struct Taken {
        let prepared: PreparedStatement
        let user: AnyObject?
    }

    /// For the connection alone, under its lock; once.
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

    /// Whether it is in use.
    public var inUse: Bool { pointer != nil }

    /// The text; empty once the use has ended, and for a statement that holds a key.
    public var query: String {
        if pointer != nil { requireTurn("Statement.query") }
        return sql ?? ""
    }

    var kind: StatementKind { prepared.kind }
    /// Whether the statement leaves the database file as it is.
    var isReadOnly: Bool { prepared.isReadOnly }
    var isRunningWriter: Bool { isRunning && !isReadOnly }
    var hasRow: Bool { rowWidth > 0 }
    var dateFormat: DateFormatter? { connection.dateFormat }

    var targets: ChangeCollector.Targets {
        get { prepared.targets }
        set { prepared.targets = newValue }
    }

    /// ``user``, unless the use ends with the step that is under way.
    var activeUser: AnyObject? {
        guard pointer != nil, !isClosing else { return nil }
        requireTurn("ResultSet")
        return user
    }

    /// Ends the process if another thread could be using the connection now. A statement that has ended may be anywhere:
    /// nothing is left of it that is in use.
    @inline(__always)
    func requireTurn(_ call: StaticString) { gate?.require(call) }

    /// Ends this use, as closing the result set does; idempotent. In a function that the statement calls, it ends when
    /// the function has returned.
    ///
    /// Outside a transaction SQLite commits what the statement wrote no later than here. If that fails,
    /// ``Database/lastError()`` tells. https://www.sqlite.org/c3ref/reset.html
    public func close() {
        if let failure = end() { connection.noteUnnoticed(failure) }
    }

    /// As ``close()``; returns why the execution could not be completed.
    func end() -> DatabaseError? {
        guard isRunning else { return connection.release(self) }
        isClosing = true
        return nil
    }

    /// Advances by one row; false at the end. https://www.sqlite.org/c3ref/step.html
    func step() throws(DatabaseError) -> Bool { try advance() }

    /// As ``step()``, for the calls that each row goes through. What is rare is left to functions of their own.
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

    /// It stands on the first row.
    @inline(never)
    private func stepped(_ pointer: OpaquePointer) {
        rowNumber = 1
        hasStepFailed = false
        rowWidth = sqlite3_data_count(pointer)
        prepared.checkColumnNames(pointer)
        // It may be stepped no further, and end on any thread.
        if !isReadOnly { connection.willHaveWritten() }
    }

    @inline(never)
    private func ended(_ code: Int32) throws(DatabaseError) -> Bool {
        rowWidth = code == SQLITE_ROW ? sqlite3_data_count(pointer) : 0
        var error = code == SQLITE_ROW || code == SQLITE_DONE ? nil : connection.error(sql: sql, of: prepared)
        // Its own commit, or that which it asks for.
        if error?.code == SQLITE_IOERR, connection.isAutocommit,
            !isReadOnly || prepared.controlsTransaction || prepared.controlsSavepoint,
            let state = error.flatMap({ connection.stateAfterMoment($0.extendedCode) })
        {
            error = error?.adding(context: state)
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
        // Else it is the guard that detaches a file.
        if prepared.changesAttachments, connection.statementGuard.unsafeSchema == nil {
            try connection.forgetDetachedFiles()
            try connection.holdChangesOfAttachedFiles()
            try connection.requireSealedAttachments()
        }
        if !isReadOnly { try connection.writeHeldChanges() }
        return false
    }

    private var refusal: DatabaseError {
        @inline(never) get {
            pointer == nil ? .statementClosed : isRunning ? .statementRunning : .valuesMissing(sql)
        }
    }

    /// Makes the statement ready to run again, with its bindings kept. https://www.sqlite.org/c3ref/reset.html
    ///
    /// In a function that the statement calls it does nothing. If the execution that ends could not be completed,
    /// ``Database/lastError()`` tells.
    public func reset() {
        if !isReset(), let failure = takeEndFailure() { connection.noteUnnoticed(failure) }
    }

    /// As ``reset()``; false, with a failure to be taken, if the execution could not be completed.
    @inline(__always)
    func isReset() -> Bool {
        guard let pointer, hasRun, !isRunning else { return true }
        requireTurn("Statement.reset")
        rowWidth = 0
        hasRun = false
        return connection.watchingPages({ sqlite3_reset(pointer) }) == SQLITE_OK || isFailureKnown()
    }

    /// The result of the reset repeats the last step's error, which was reported then.
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

    /// Before new values are bound. If the execution that ends could not be completed, it does not run again without.
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

    /// The text, for errors; `nil` if it holds a key.
    var sql: String? { pointer == nil ? nil : prepared.sql }

    // MARK: Parameters

    var parameterCount: Int32 { pointer == nil ? 0 : prepared.parameterCount }

    /// The names of the parameters, without the colon; `nil` where one has not the form `:name`.
    var parameterKeys: [AnyHashable?] { turnPointer.map { prepared.parameterKeys($0) } ?? [] }

    /// Before all parameters are bound in their order: until ``endBinding(_:)`` it does not run.
    /// - Returns: the round that begins.
    func beginBinding(_ given: Int) throws(DatabaseError) -> Int32 {
        guard beginsBinding(given) else { throw wrongCount(given) }
        return bindingRound
    }

    /// As ``beginBinding(_:)``; false for ``wrongCount(_:)``.
    @inline(__always)
    func beginsBinding(_ given: Int) -> Bool {
        if pointer != nil { requireTurn("ResultSet.bind") }
        lacksValues = true
        bindingRound &+= 1
        boundCount = 0
        guard given == Int(parameterCount) else { return false }
        // Not while it runs: what is bound is in use then, and SQLite will refuse the new values.
        if !isRunning, !hasRun { prepared.rewindBoundBytes() }
        return true
    }

    /// What a caller's type binds is not in our hands. A parameter that it passed over would still point to memory where
    /// the value of another one is by now, and one that was bound in a round within this one has that round's value.
    func endBinding(_ round: Int32) throws(DatabaseError) {
        guard endsBinding(round) else { throw incomplete(round) }
    }

    /// As ``endBinding(_:)``; false for ``incomplete(_:)``.
    @inline(__always)
    func endsBinding(_ round: Int32) -> Bool {
        guard boundCount == parameterCount, round == bindingRound else { return false }
        lacksValues = false
        return true
    }

    @inline(never)
    func incomplete(_ round: Int32) -> DatabaseError {
        guard pointer != nil else { return .statementClosed }
        // The round within this one may have ended well, with its own values.
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

    /// Takes note of a parameter that has its value.
    @inline(__always)
    private func isBound(_ code: Int32, _ index: Int32) -> Bool {
        guard code == SQLITE_OK else { return false }
        if index == boundCount &+ 1 { boundCount = index }
        return true
    }

    // False on failure, which is then ``bindingFailure``: that is cheaper to pass on than an error.

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
        // Keeps no reference to the string meanwhile, unlike `withUTF8` and spans. All strings are contiguous on Linux.
        value.utf8.withContiguousStorageIfAvailable { bindText(UnsafeRawBufferPointer($0), to: index) } ?? false
    }

    /// As text, whose bytes must be UTF-8.
    @inline(__always)
    func bindText(_ bytes: UnsafeRawBufferPointer, to index: Int32) -> Bool {
        guard let pointer else { return false }
        return isBound(prepared.bindText(bytes, to: pointer, at: index), index)
    }

    /// As a blob; empty bytes are an empty blob, not NULL.
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

    /// As a blob; empty bytes are an empty blob, not NULL.
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

    // MARK: Columns. Without a row, and for a column that is not there, every value is NULL.

    var columnCount: Int32 { turnPointer.map { sqlite3_column_count($0) } ?? 0 }

    /// ``pointer``, for the thread whose turn it is.
    private var turnPointer: OpaquePointer? {
        guard let pointer else { return nil }
        requireTurn("ResultSet")
        return pointer
    }

    func columnName(at index: Int32) -> String? {
        guard let pointer = turnPointer, index >= 0, index < sqlite3_column_count(pointer) else { return nil }
        return sqlite3_column_name(pointer, index).map { String(cString: $0) }
    }

    /// Names of the columns, as keys.
    var columnKeys: [AnyHashable] { turnPointer.map { prepared.columnKeys($0) } ?? [] }

    /// -1 if there is none.
    func columnIndex(of name: String) -> Int32 {
        guard let pointer = turnPointer else { return -1 }
        return prepared.columnIndex(of: name, pointer)
    }

    /// The pointer if it stands on a row that has this column: SQLite would otherwise record an error.
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

    /// Text with its embedded NULs; `nil` for NULL and for invalid UTF-8.
    func text(at index: Int32) -> String? {
        row(index).flatMap { text(at: index, in: $0) }
    }

    /// Terminated text inside SQLite, valid until the next step, reset or conversion.
    func textPointer(at index: Int32) -> UnsafePointer<UInt8>? {
        row(index).flatMap { sqlite3_column_text($0, index) }
    }

    /// Calls `body` with the bytes of a blob, or of a text as UTF-8, inside SQLite; `nil` for NULL.
    @discardableResult
    func withBytes<T, E: Error>(
        at index: Int32,
        _ body: (UnsafeRawBufferPointer) throws(E) -> T
    ) throws(E) -> T? {
        guard let pointer = row(index) else { return nil }
        let type = sqlite3_column_type(pointer, index)
        guard type != SqliteValueType.null.rawValue else { return nil }
        // A text as blob would be in the encoding of the database. An empty blob has a null pointer.
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
