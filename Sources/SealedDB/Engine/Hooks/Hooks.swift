internal import SQLiteEngine

/// The callbacks that a database has SQLite call while statements run. They belong to the database, and move from one
/// connection to the next.
///
/// Both the caller's closures and the library's own observation are called from here. SQLite forbids that a closure
/// uses the connection that calls it, so the connection refuses any use during the call.
final class Hooks {
    struct Progress {
        let interval: Int32
        let goesOn: () -> Bool
    }

    var update: ((RowChange) -> Void)? { didSet { install() } }
    var commit: (() throws -> Void)? { didSet { install() } }
    var rollback: (() -> Void)? { didSet { install() } }
    var progress: Progress? { didSet { install() } }
    /// Asked while statements of the library's own run for long. If it returns false, the statement ends.
    var reading: (() -> Bool)? { didSet { install() } }
    var authorizer: ((AuthorizationRequest) -> AuthorizerDecision)? {
        didSet {
            // Installs even if there is no authorizer any more: otherwise SQLite would keep the decisions of the last
            // one.
            install()
        }
    }
    let changes = ChangeCollector()
    /// What statements have read since ``recordingReads(_:)`` began; `nil` outside of it.
    private var reads: Reads? { didSet { changes.isReading = reads != nil } }

    private struct Reads {
        var tables: Set<TableName> = []
        /// Tables of which a statement reads no column, as `count(*)` does. SQLite does not tell their schema.
        var unqualified: Set<String> = []
        /// Whether a pragma may have read any table, or pages. SQLite does not tell which.
        var readsAnything = false
    }

    /// Pragmas whose answer depends on the schema, the connection or what a pragma sets. Changes of these are always
    /// observed.
    private static let pragmasWithoutRows: Set = [
        "application_id", "collation_list", "compile_options", "database_list", "encoding", "foreign_key_list",
        "foreign_keys", "function_list", "index_info", "index_list", "index_xinfo", "module_list", "page_size",
        "pragma_list", "table_info", "table_list", "table_xinfo", "user_version",
    ]

    // Not retained: the connection detaches this object when it closes, at the latest when it is deinitialized.
    private unowned(unsafe) var connection: Connection?
    /// The number of virtual machine instructions between two calls of the progress handler, and since the last call of
    /// the caller's closure.
    private var progressInterval: Int32 = 0
    private var progressed: Int32 = 0
    /// Whether statements of the library's own are running.
    fileprivate var isUserAuthorizerOff = false

    // MARK: Installation

    /// Moves to a connection, which retains this object until it closes.
    func attach(to connection: Connection) {
        self.connection = connection
        connection.hooks = self
        changes.forget()
        _ = changes.refresh(mayHaveWritten: false)
        install()
    }

    /// Begins or ends observing, if the observers have changed.
    func refreshObservation() {
        if changes.refresh(mayHaveWritten: connection?.mayHaveUncommitted == true) { install() }
    }

    /// Runs a block, and returns the tables that its statements read.
    func recordingReads<T>(_ body: () throws -> T) throws -> (result: T, tables: Set<TableName>) {
        reads = Reads()
        defer { reads = nil }
        // SQLite compiles cached statements anew, and so reports their tables too.
        install()
        let result = try body()
        guard let reads, let connection else { return (result, []) }
        self.reads = nil
        // The list has temp only once something is there.
        let schemas = try connection.trusted { () throws(DatabaseError) in
            try ["temp"] + connection.texts("PRAGMA database_list", column: 1)
        }
        // A name or view may stand for another table when a schema has changed, so these are always read.
        let possible = schemas.flatMap { schema in
            [.schema(of: schema)] + reads.unqualified.map { TableName($0, in: schema) }
        }
        return (result, reads.tables.union(possible).union(reads.readsAnything ? [.anything] : []))
    }

    /// Records a table that is read without a statement.
    func noteRead(_ table: String, in database: String) { reads?.tables.insert(TableName(table, in: database)) }

    private func noteRead(_ table: UnsafePointer<CChar>, in database: UnsafePointer<CChar>?) {
        if let database {
            reads?.tables.insert(TableName(table, in: database))
        } else {
            reads?.unqualified.insert(String(cString: table))
        }
    }

    private func noteRead(byPragma name: UnsafePointer<CChar>) {
        if !Hooks.pragmasWithoutRows.contains(String(cString: name).foldedForSQL) { reads?.readsAnything = true }
    }

    /// Removes the callbacks from a connection that is closing.
    func detach(from handle: OpaquePointer) {
        sqlite3_update_hook(handle, nil, nil)
        sqlite3_commit_hook(handle, nil, nil)
        sqlite3_rollback_hook(handle, nil, nil)
        sqlite3_progress_handler(handle, 0, nil, nil)
        // Removing these cannot fail.
        sqlite3_set_authorizer(handle, nil, nil)
        sqlite3_trace_v2(handle, 0, nil, nil)
        if connection?.handle == handle { connection = nil }
    }

    /// Registers the callbacks that are set, and removes all others.
    func install() {
        guard let handle = connection?.handle else { return }
        // Not retained here: the connection retains this object as long as it has the handle.
        let this = Unmanaged.passUnretained(self).toOpaque()
        let observes = changes.isActive
        connection?.isObserved = observes
        sqlite3_update_hook(handle, update == nil && !observes ? nil : Hooks.updated, this)
        sqlite3_commit_hook(handle, Hooks.committing, this)
        sqlite3_rollback_hook(handle, rollback == nil && !observes ? nil : Hooks.rolledBack, this)
        let supervision = connection?.supervision.flatMap { $0.isWatching ? $0 : nil }
        let isAsked = progress != nil || supervision != nil || reading != nil
        progressInterval = min(progress?.interval ?? .max, supervision == nil ? .max : Supervision.interval)
        if reading != nil { progressInterval = min(progressInterval, Connection.readingInterval) }
        sqlite3_progress_handler(handle, isAsked ? progressInterval : 0, isAsked ? Hooks.progressed : nil, this)
        // This also makes SQLite prepare all statements again, with the present authorizer. Setting the authorizer or
        // the tracer only stores a pointer, and cannot fail.
        sqlite3_set_authorizer(handle, Hooks.authorizing, this)
        let isTraced = supervision?.slowStatements != nil
        // This cannot fail either.
        sqlite3_trace_v2(handle, isTraced ? UInt32(SQLITE_TRACE_PROFILE) : 0, Hooks.traced, this)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> Hooks {
        Unmanaged<Hooks>.fromOpaque(context!).takeUnretainedValue()
    }

    /// Runs a closure of the caller. The connection must not be used during the call.
    private func call<T>(_ closure: () throws -> T) rethrows -> T {
        guard let connection else { return try closure() }
        return try connection.withinHook(closure)
    }

    // MARK: Callbacks for SQLite. None may throw.

    private static let updated:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, sqlite3_int64
        ) -> Void = { context, operation, database, table, rowID in
            guard let database, let table else { return }
            let hooks = of(context)
            if hooks.changes.isActive { hooks.changes.rowChanged(database, table, rowID) }
            guard let update = hooks.update else { return }
            let change = RowChange(
                code: operation,
                database: String(cString: database),
                table: String(cString: table),
                rowID: rowID
            )
            hooks.call { update(change) }
        }

    private static let committing: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
        let hooks = of(context)
        do {
            try hooks.connection?.requireNamedFiles()
            try hooks.call { try hooks.commit?() }
        } catch {
            hooks.connection?.thrown.keep(
                error,
                message: "The commit hook refused the transaction, which was rolled back.",
                under: SQLITE_CONSTRAINT_COMMITHOOK
            )
            return 1
        }
        hooks.changes.isCommitting()
        return 0
    }

    private static let rolledBack: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
        let hooks = of(context)
        hooks.changes.rolledBack()
        if let rollback = hooks.rollback { hooks.call(rollback) }
    }

    private static let progressed: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
        let hooks = of(context)
        if let connection = hooks.connection, connection.supervision?.goesOn(connection) == false { return 1 }
        if let reading = hooks.reading, !reading() { return 1 }
        guard let progress = hooks.progress else { return 0 }
        let (sum, overflows) = hooks.progressed.addingReportingOverflow(hooks.progressInterval)
        hooks.progressed = overflows ? .max : sum
        guard hooks.progressed >= progress.interval else { return 0 }
        hooks.progressed = 0
        return hooks.call { progress.goesOn() } ? 0 : 1
    }

    private static let authorizing:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> Int32 = { context, code, first, second, database, source in
            of(context).decide(code, first, second, database, source).code
        }

    /// The only place where authorizer decisions are made. The library's own rules come first. Of its decision and the
    /// caller's, the stricter one applies.
    private func decide(
        _ code: Int32,
        _ first: UnsafePointer<CChar>?,
        _ second: UnsafePointer<CChar>?,
        _ database: UnsafePointer<CChar>?,
        _ source: UnsafePointer<CChar>?
    ) -> AuthorizerDecision {
        let ruled = connection?.statementGuard.decision(code, first, second, in: database) ?? .allow
        guard ruled == .allow else { return ruled }
        if code == SQLITE_READ, reads != nil, let first { noteRead(first, in: database) }
        if code == SQLITE_PRAGMA, reads != nil, let first { noteRead(byPragma: first) }
        let own = changes.isActive ? changes.willRun(code, first, second, database, source) : .allow
        guard let authorizer, !isUserAuthorizerOff else { return own }
        let request = AuthorizationRequest(
            action: AuthorizerAction(code, first.map { String(cString: $0) }, second.map { String(cString: $0) }),
            database: database.map { String(cString: $0) },
            source: source.map { String(cString: $0) }
        )
        return own.and(call { authorizer(request) })
    }

    private static let traced:
        @convention(c) (
            UInt32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32 = { _, context, statement, duration in
            let hooks = of(context)
            guard let statement, let duration else { return 0 }
            let seconds = Double(duration.load(as: sqlite3_int64.self)) / 1e9
            guard let slow = hooks.connection?.supervision?.slowStatements, slow.threshold <= seconds else { return 0 }
            let text = sqlite3_sql(OpaquePointer(statement)).map { String(cString: $0) } ?? ""
            slow.report(SQLStatementText.isSecret(text) ? nil : text, seconds)
            return 0
        }
}

extension Connection {
    /// Runs statements of the library's own, without the caller's authorizer and without a time limit.
    func trusted<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let hadTimeLimit = supervision?.hasTimeLimit
        supervision?.hasTimeLimit = false
        defer { if let hadTimeLimit { supervision?.hasTimeLimit = hadTimeLimit } }
        guard let hooks else { return try body() }
        let wasOff = hooks.isUserAuthorizerOff
        hooks.isUserAuthorizerOff = true
        defer { hooks.isUserAuthorizerOff = wasOff }
        return try body()
    }
}

/// Preparing and stepping under observation, on the connection's thread.
extension Connection {
    func observedPrepare(_ prepare: () -> Int32) -> (code: Int32, ChangeCollector.Targets) {
        guard isObserved, let hooks else { return (prepare(), .init()) }
        settleChanges()
        if depth == 0 { hooks.refreshObservation() }
        return hooks.changes.preparing(prepare)
    }

    func observedStep(_ statement: Statement, _ pointer: OpaquePointer) -> Int32 {
        guard let hooks, let handle else { return sqlite3_step(pointer) }
        let code = hooks.changes.step(statement, pointer, handle)
        settleChanges()
        return code
    }

    /// Publishes the changes that have been committed.
    func settleChanges() {
        if isObserved, let hooks, let handle { hooks.changes.settle(handle) }
    }

    /// Publishes what SQLite has committed because a statement or blob has ended outside of a step: perhaps no call
    /// follows that would.
    func settleEnd() {
        if let hooks, let handle { hooks.changes.settleEnd(handle) }
    }
}
