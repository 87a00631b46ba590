internal import SQLiteEngine

/// A table of one schema, its name folded as SQLite compares names.
struct TableName: Hashable, Sendable {
    let database: String
    let table: String

    init(_ table: String, in database: String) {
        self.database = database.foldedForSQL
        self.table = table.foldedForSQL
    }

    init(_ table: UnsafePointer<CChar>, in database: UnsafePointer<CChar>) {
        self.init(String(cString: table), in: String(cString: database))
    }
}

/// Gathers what the statements of one connection change, and publishes it once it is committed.
///
/// SQLite's update hook does not tell of every change: not of tables WITHOUT ROWID, of virtual tables, of a `DELETE`
/// that empties a whole table, of changes to the schema. Therefore each statement also brings along the tables that it
/// may write, which the authorizer learns when it is prepared, and a statement that changed more rows than the hook has
/// told of counts as having changed those tables that the hook has not named.
final class ChangeCollector {
    /// The tables that a statement may write.
    struct Targets {
        /// By changing rows, which SQLite counts.
        var rows: Set<TableName> = []
        /// As a whole.
        var tables: Set<TableName> = []
    }

    private struct Run {
        var targets: Targets
        /// Row changes that the hook has told of.
        var told: Int32 = 0
        var toldTables: Set<TableName> = []
        /// Row changes of statements that ran within this one, in a function.
        var nested: Int32 = 0
    }

    private struct Transaction {
        var changes: [TableName: ChangedRows] = [:]
        /// Whether SQLite has begun a commit whose end is not known yet.
        var isInCommit = false
    }

    var hub = ChangeHub()
    private var observed: Set<TableName> = []
    private var version = 0
    /// The transaction that is open. Under a lock, because a statement that is dropped on another thread may end it.
    private let transaction = Guarded(Transaction())
    /// The statement that is running; `nil` for none.
    private var run: Run?
    /// What the statement may write that is being prepared; `nil` for none.
    private var prepared: Targets?
    /// The hook's last table, because it is nearly always the next one's too. Valid during a step.
    private var last: (database: UnsafePointer<CChar>, table: UnsafePointer<CChar>, name: TableName)?

    /// Whether somebody observes.
    var isActive: Bool { !observed.isEmpty }

    /// Takes note of who observes what now; false if nothing has changed.
    /// - Parameter isInTransaction: whether there may be changes to the new tables that nobody has noted.
    func refresh(isInTransaction: Bool) -> Bool {
        let current = hub.version
        guard current != version else { return false }
        version = current
        let former = observed
        observed = hub.observedTables
        if !isActive { forget() }
        if isInTransaction { note(observed.subtracting(former)) }
        return true
    }

    /// Everything that has not been committed is void: the connection is new, or nobody observes.
    func forget() {
        transaction.withLock { $0 = Transaction() }
    }

    // MARK: What SQLite calls

    func rowChanged(_ database: UnsafePointer<CChar>, _ table: UnsafePointer<CChar>, _ rowID: Int64) {
        let name: TableName
        if let last, last.database == database, last.table == table {
            name = last.name
        } else {
            name = TableName(table, in: database)
            last = (database, table, name)
            run?.toldTables.insert(name)
        }
        run?.told &+= 1
        note(name, rowID)
    }

    func isCommitting() {
        transaction.withLock { $0.isInCommit = true }
    }

    func rolledBack() {
        forget()
    }

    /// Notes what the statement will write. Decides nothing, but for one case.
    func willRun(
        _ code: Int32,
        _ first: UnsafePointer<CChar>?,
        _ second: UnsafePointer<CChar>?,
        _ database: UnsafePointer<CChar>?,
        _ source: UnsafePointer<CChar>?
    ) -> AuthorizerDecision {
        switch code {
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
            guard let first, let database else { return .allow }
            let name = TableName(first, in: database)
            guard observed.contains(name) else { return .allow }
            add(name, to: \.rows)
            // Row by row instead of all at once: a trigger may also have changed single rows, so that the hook names
            // the table. Outside of triggers this answer could keep a table from being dropped.
            return code == SQLITE_DELETE && source != nil ? .ignore : .allow
        case SQLITE_CREATE_TABLE, SQLITE_CREATE_TEMP_TABLE, SQLITE_CREATE_VTABLE, SQLITE_DROP_TABLE,
            SQLITE_DROP_TEMP_TABLE, SQLITE_DROP_VTABLE:
            guard let first, let database else { return .allow }
            add(TableName(first, in: database), to: \.tables)
        case SQLITE_ALTER_TABLE:
            guard let first, let second else { return .allow }
            add(TableName(second, in: first), to: \.tables)
        default: break
        }
        return .allow
    }

    private func add(_ name: TableName, to part: WritableKeyPath<Targets, Set<TableName>>) {
        guard observed.contains(name) else { return }
        // SQLite prepares a statement anew within its step when the schema has changed.
        if prepared != nil { prepared![keyPath: part].insert(name) } else { run?.targets[keyPath: part].insert(name) }
    }

    // MARK: Statements

    /// Prepares a statement, and returns what it may write.
    func preparing(_ prepare: () -> Int32) -> (code: Int32, targets: Targets) {
        let outer = prepared
        prepared = Targets()
        let code = prepare()
        defer { prepared = outer }
        return (code, prepared ?? Targets())
    }

    /// Steps a statement, and takes note of what it changes.
    func step(_ statement: Statement, _ pointer: OpaquePointer, _ handle: OpaquePointer) -> Int32 {
        let outer = (run, prepared)
        run = Run(targets: statement.targets)
        (prepared, last) = (nil, nil)
        let before = sqlite3_total_changes(handle)
        let code = sqlite3_step(pointer)
        let changed = sqlite3_total_changes(handle) &- before
        if let run {
            statement.targets = run.targets
            // A statement that returns rows has made its changes before the first, and is counted at its end, which may
            // never come.
            let mayHaveMore = !statement.hasRow && (code == SQLITE_ROW || changed &- run.nested != run.told)
            if mayHaveMore { note(run.targets.rows.subtracting(run.toldTables)) }
            if code == SQLITE_DONE { note(run.targets.tables) }
        }
        (run, prepared) = outer
        run?.nested &+= changed
        last = nil
        return code
    }

    /// A row of which only the blob is written, which the hook does not tell of.
    func blobWritten(_ table: String, in database: String, rowID: Int64) {
        note(TableName(table, in: database), rowID)
    }

    private func note(_ name: TableName, _ rowID: Int64) {
        guard observed.contains(name) else { return }
        transaction.withLock { $0.changes[name, default: .some([])].insert(rowID) }
    }

    private func note(_ names: Set<TableName>) {
        let names = names.intersection(observed)
        guard !names.isEmpty else { return }
        transaction.withLock { transaction in
            for name in names { transaction.changes[name] = .any }
        }
    }

    /// Publishes if the transaction has ended well.
    func settle(_ handle: OpaquePointer) {
        let committed = transaction.withLock { transaction -> [TableName: ChangedRows] in
            guard transaction.isInCommit || !transaction.changes.isEmpty else { return [:] }
            let hasEnded = sqlite3_txn_state(handle, nil) != SQLITE_TXN_WRITE
            // A COMMIT that found the database busy leaves the transaction open.
            defer { transaction = hasEnded ? Transaction() : Transaction(changes: transaction.changes) }
            // What ended without a commit changed nothing after all.
            return hasEnded && transaction.isInCommit ? transaction.changes : [:]
        }
        hub.publish(committed)
    }

    /// The whole database was replaced.
    func everythingChanged() {
        hub.publish(Dictionary(uniqueKeysWithValues: hub.observedTables.map { ($0, ChangedRows.any) }))
    }
}
