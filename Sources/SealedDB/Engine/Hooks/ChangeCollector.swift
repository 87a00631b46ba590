internal import SQLiteEngine
import Synchronization

/// A table of one schema. Both names are folded to lower case as SQLite does for comparison.
struct TableName: Hashable, Sendable {
    let database: String
    let table: String

    init(_ table: String, in database: String) {
        self.database = database.foldedForSQL
        let name = table.foldedForSQL
        // SQLite reports changes of a schema's table by its oldest name alone. https://www.sqlite.org/schematab.html
        self.table = TableName.namesOfSchemas.contains(name) ? "sqlite_master" : name
    }

    private static let namesOfSchemas: Set = ["sqlite_schema", "sqlite_temp_schema", "sqlite_temp_master"]

    /// The table that holds the schema.
    static func schema(of database: String) -> TableName { TableName("sqlite_master", in: database) }

    /// The table in which SQLite counts for AUTOINCREMENT.
    static func sequence(of database: String) -> TableName { TableName("sqlite_sequence", in: database) }

    /// Stands for whatever a commit may change.
    static let anything = TableName("", in: "")

    init(_ table: UnsafePointer<CChar>, in database: UnsafePointer<CChar>) {
        self.init(String(cString: table), in: String(cString: database))
    }
}

/// Collects what the statements of one connection change, and publishes it once it is committed.
///
/// SQLite's update hook does not report every change: it leaves out tables WITHOUT ROWID, virtual tables, a `DELETE`
/// that empties a whole table, and changes to the schema. Therefore the authorizer also collects the tables that each
/// statement may write, while the statement is prepared. If a statement changed more rows than the hook reported, all
/// its tables that the hook did not name count as changed.
final class ChangeCollector {
    /// The tables that a statement may write.
    struct Targets {
        /// Tables in which the statement changes rows. SQLite counts these changes.
        var rows: Set<TableName> = []
        /// Tables that the statement creates, alters or drops.
        var tables: Set<TableName> = []
        var reach = Reach.tables
    }

    /// What a statement may change beside rows and tables.
    enum Reach {
        case tables
        /// Which schemas there are, as by ATTACH, at once.
        case schemas
        /// What a pragma sets, such as `user_version`, in the transaction.
        case settings
        /// Row ids that no column holds, as by VACUUM, which commits by itself.
        case rowIDs
    }

    private struct Run {
        var targets: Targets
        /// The number of row changes that the hook has reported.
        var told: Int32 = 0
        var toldTables: Set<TableName> = []
        /// The number of row changes by statements that ran within this one, in a function.
        var nested: Int32 = 0
    }

    private struct Transaction {
        var changes: [TableName: ChangedRows] = [:]
        /// Whether SQLite has begun a commit whose outcome is not known yet.
        var isInCommit = false
    }

    var hub = ChangeHub()
    private var observed: Set<TableName> = []
    private var version = 0
    /// Whether somebody is to be told of every commit.
    private let observesAnything = Atomic(false)
    /// Whether this connection has committed since it last looked for observers.
    private let hasCommitted = Atomic(false)
    /// Whether SQLite has begun a commit of changes that are not published yet.
    private let hasNews = Atomic(false)
    /// The open transaction. It is under a lock, because a statement dropped on another thread may end it.
    private let transaction = Guarded(Transaction())
    /// The running statement; `nil` for none.
    private var run: Run?
    /// What the statement being prepared may write; `nil` for none.
    private var prepared: Targets?
    /// The table of the hook's last call, which is nearly always the next one's too. Valid during a step.
    private var last: (database: UnsafePointer<CChar>, table: UnsafePointer<CChar>, name: TableName)?

    /// Whether what is read is recorded. A block that is observed does not cause itself to be called again.
    var isReading = false

    /// Whether anybody observes changes.
    var isActive: Bool { !observed.isEmpty }

    /// Updates the set of observed tables. Returns false if it has not changed.
    ///
    /// Call this at the end of a turn too: observers that came meanwhile may have read the state before a commit of
    /// this turn, and are told of it here.
    /// - Parameter mayHaveWritten: whether something that is not committed may have changed the newly observed tables.
    func refresh(mayHaveWritten: @autoclosure () -> Bool) -> Bool {
        let hasCommitted = hasCommitted.exchange(false, ordering: .relaxed)
        let current = hub.version
        guard current != version else { return false }
        version = current
        let former = observed
        observed = hub.observedTables
        observesAnything.store(observed.contains(.anything), ordering: .relaxed)
        if !isActive { forget() }
        let added = observed.subtracting(former)
        if mayHaveWritten() { note(added) }
        if hasCommitted { publishAny(added) }
        return true
    }

    /// Discards all changes that are not committed: the connection is new, or nobody observes any more.
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
        hasCommitted.store(true, ordering: .relaxed)
        let changesAnything = observesAnything.load(ordering: .relaxed)
        let changesSomething = transaction.withLock { transaction in
            transaction.isInCommit = true
            if changesAnything { transaction.changes[.anything] = .any }
            return !transaction.changes.isEmpty
        }
        if changesSomething { hasNews.store(true, ordering: .relaxed) }
    }

    func rolledBack() {
        forget()
    }

    /// Records what the statement will write. Returns a decision other than `.allow` in only one case.
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
            // SQLite reports to nobody what it counts there. https://www.sqlite.org/autoinc.html
            if code == SQLITE_INSERT { add(.sequence(of: String(cString: database)), to: \.tables) }
            guard observed.contains(name) else { return .allow }
            add(name, to: \.rows)
            // `.ignore` makes SQLite delete row by row instead of all rows at once. This is needed because a trigger
            // may also have changed single rows, so that the hook names the table. Outside of triggers, this answer
            // could keep a table from being dropped.
            return code == SQLITE_DELETE && source != nil ? .ignore : .allow
        case SQLITE_CREATE_TABLE, SQLITE_CREATE_TEMP_TABLE, SQLITE_CREATE_VTABLE, SQLITE_DROP_TABLE,
            SQLITE_DROP_TEMP_TABLE, SQLITE_DROP_VTABLE:
            guard let first, let database else { return .allow }
            add(TableName(first, in: database), to: \.tables)
            add(.schema(of: String(cString: database)), to: \.tables)
            add(.sequence(of: String(cString: database)), to: \.tables)
        case SQLITE_CREATE_VIEW, SQLITE_CREATE_TEMP_VIEW, SQLITE_DROP_VIEW, SQLITE_DROP_TEMP_VIEW, SQLITE_CREATE_INDEX,
            SQLITE_CREATE_TEMP_INDEX, SQLITE_DROP_INDEX, SQLITE_DROP_TEMP_INDEX, SQLITE_CREATE_TRIGGER,
            SQLITE_CREATE_TEMP_TRIGGER, SQLITE_DROP_TRIGGER, SQLITE_DROP_TEMP_TRIGGER:
            guard let database else { return .allow }
            add(.schema(of: String(cString: database)), to: \.tables)
        case SQLITE_ALTER_TABLE:
            // The new name of a table that is renamed is not told.
            guard let first, let second else { return .allow }
            add(TableName(second, in: first), to: \.tables)
            add(.schema(of: String(cString: first)), to: \.tables)
            add(.sequence(of: String(cString: first)), to: \.tables)
        case SQLITE_ANALYZE:
            guard let database else { return .allow }
            let schema = String(cString: database).foldedForSQL
            for name in observed where name.database == schema && name.table.hasPrefix("sqlite_stat") {
                add(name, to: \.tables)
            }
        case SQLITE_ATTACH, SQLITE_DETACH:
            // VACUUM attaches a file of its own while it runs. SQLite may also compile an ATTACH once more then.
            if prepared != nil {
                prepared!.reach = .schemas
            } else if run?.targets.reach != .schemas {
                run?.targets.reach = .rowIDs
            }
        case SQLITE_PRAGMA where second != nil:
            if prepared != nil { prepared!.reach = .settings } else { run?.targets.reach = .settings }
        default: break
        }
        return .allow
    }

    private func add(_ name: TableName, to part: WritableKeyPath<Targets, Set<TableName>>) {
        guard observed.contains(name) else { return }
        // If the schema has changed, SQLite prepares the statement again within its step.
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

    /// Steps a statement, and records what it changes.
    func step(_ statement: Statement, _ pointer: OpaquePointer, _ handle: OpaquePointer) -> Int32 {
        let outer = (run, prepared)
        run = Run(targets: statement.targets)
        (prepared, last) = (nil, nil)
        let before = sqlite3_total_changes(handle)
        let code = sqlite3_step(pointer)
        let changed = sqlite3_total_changes(handle) &- before
        if let run {
            statement.targets = run.targets
            // A statement that returns rows has made its changes before the first row. SQLite counts them at its end,
            // which may never come.
            // What a statement has counted that failed, and kept what it had done, is not all.
            let mayHaveMore = !statement.hasRow && (code != SQLITE_DONE || changed &- run.nested != run.told)
            if mayHaveMore { note(run.targets.rows.subtracting(run.toldTables)) }
            if code == SQLITE_DONE || code == SQLITE_ROW && !statement.hasRow { note(run.targets.tables) }
            if code == SQLITE_DONE { noteReach(run.targets.reach, isReadOnly: statement.isReadOnly) }
        }
        (run, prepared) = outer
        run?.nested &+= changed
        last = nil
        return code
    }

    private func noteReach(_ reach: Reach, isReadOnly: Bool) {
        guard !isReading else { return }
        switch reach {
        case .tables: break
        case .schemas: publishAny(observed.filter { $0 == .schema(of: $0.database) })
        case .settings: if !isReadOnly { note(observed) }
        case .rowIDs: everythingChanged()
        }
    }

    /// Records a row whose blob was written, which the hook does not report.
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

    /// Publishes the changes if the end of a statement or blob has committed them. Any thread may end one.
    func settleEnd(_ handle: OpaquePointer) {
        // Most ends commit nothing, and this costs less than the lock.
        if hasNews.load(ordering: .relaxed) { settle(handle) }
    }

    /// Publishes the changes if the transaction has been committed.
    func settle(_ handle: OpaquePointer) {
        hasNews.store(false, ordering: .relaxed)
        let committed = transaction.withLock { transaction -> [TableName: ChangedRows] in
            guard transaction.isInCommit || !transaction.changes.isEmpty else { return [:] }
            let hasEnded = sqlite3_txn_state(handle, nil) != SQLITE_TXN_WRITE
            // A COMMIT that failed because the database was busy leaves the transaction open.
            defer { transaction = hasEnded ? Transaction() : Transaction(changes: transaction.changes) }
            // If the transaction ended without a commit, it changed nothing.
            return hasEnded && transaction.isInCommit ? transaction.changes : [:]
        }
        hub.publish(committed)
    }

    /// Reports all observed tables as changed, because the whole database was replaced.
    func everythingChanged() { publishAny(hub.observedTables) }

    private func publishAny(_ names: Set<TableName>) {
        hub.publish(Dictionary(uniqueKeysWithValues: names.map { ($0, ChangedRows.any) }))
    }
}
