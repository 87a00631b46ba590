import Foundation
internal import SQLiteEngine

/// Enforces the rules when SQLite compiles a statement. SQLCipher also executes its pragmas then, but SQLite asks the
/// authorizer first. https://www.sqlite.org/c3ref/set_authorizer.html
final class StatementGuard {
    var rules: GuardRules?
    /// Whether SQL may set keys and cipher settings once there is a key, and change settings of the whole process at
    /// any time.
    var allowsCipherStatements = false
    /// Whether the library itself is running statements that the rules forbid to SQL.
    var isSuspended = false
    var heldChanges = HeldChanges()
    /// Whether blocks that throw rely on a journal for the rollback.
    var requiresJournal = false
    /// Whether migrations are only tried, which must not touch files.
    var refusesFiles = false
    /// Whether the library moves the log into the file, and SQLite must not do so beside it.
    var movesLog = false
    /// Whether SQL may have set a key since the rules were last updated.
    var hasKeyFromSQL = false
    /// Why the statement being compiled was refused, until the result code arrives.
    private var refusal: DatabaseError?
    /// The schema of an attached file that is not encrypted as it must be, and could not be detached.
    var unsafeSchema: String?

    /// The statement that is being compiled.
    struct Compilation {
        fileprivate let verb: String?
        fileprivate let holdsKey: Bool
        fileprivate var facts: StatementFacts = []
    }
    private var compilation: Compilation?
    /// Knows what the present block may do; `nil` for no supervision.
    var supervision: Supervision?
    /// The connection, as long as it is open.
    fileprivate var handle: OpaquePointer?

    /// Call this before SQLite compiles a statement.
    /// - Returns: the outer compilation within which this one takes place. Pass it to ``end(_:)``.
    func begin(_ text: SQLStatementText) -> Compilation? {
        defer { compilation = Compilation(verb: text.verb, holdsKey: text.holdsKey) }
        return compilation
    }

    /// Ends the compilation, and returns what SQLite reported about the statement.
    func end(_ outer: Compilation?) -> StatementFacts {
        defer { compilation = outer }
        return compilation?.facts ?? []
    }

    /// The decision of the library's own rules. `first` is the name of a pragma or of a file.
    func decision(
        _ action: Int32,
        _ first: UnsafePointer<CChar>?,
        _ second: UnsafePointer<CChar>?,
        in schema: UnsafePointer<CChar>?
    ) -> AuthorizerDecision {
        if refuses(action, first, second, in: schema) { return .deny }
        // See `Connection.keepToOneThread()`. No script needs to fail because it does not make sorts faster.
        guard action == SQLITE_PRAGMA, second != nil, let first, sqlite3_stricmp(first, "threads") == 0 else {
            return .allow
        }
        return .ignore
    }

    /// Whether the rules forbid an action.
    func refuses(
        _ action: Int32,
        _ first: UnsafePointer<CChar>?,
        _ second: UnsafePointer<CChar>?,
        in schema: UnsafePointer<CChar>?
    ) -> Bool {
        let facts = StatementFacts(action, first, second)
        compilation?.facts.formUnion(facts)
        guard !isSuspended else { return false }
        // What a table compiles when it is read, as `pragma_optimize` does, starts without being checked.
        if compilation == nil, facts.contains(.statements), supervision?.scope == .reading {
            refusal = .readOnlyBlock
            return true
        }
        let reason: String?
        switch action {
        case SQLITE_PRAGMA:
            guard let first else { return false }
            let (name, value) = (String(cString: first), second.map { String(cString: $0) })
            reason =
                misreading(ofPragma: name) ?? rules?.refusal(ofPragma: name, value: value)
                ?? GuardRules.refusal(ofProcessPragma: name, value: value, isPermitted: allowsCipherStatements)
                ?? heldChanges.refusal(ofPragma: name, value: value) ?? refusal(ofPragma: name, value: value)
        case SQLITE_ATTACH:
            let file = first.map { String(cString: $0) }
            reason = misreadingOfAttach ?? rules?.refusal(ofAttached: file) ?? refusal(ofFile: file)
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE, SQLITE_DROP_TABLE:
            reason = refusal(ofChanging: first, addsRows: action == SQLITE_INSERT, in: schema)
        case SQLITE_ALTER_TABLE, SQLITE_CREATE_TRIGGER, SQLITE_CREATE_INDEX:
            reason = refusal(ofChanging: second, addsRows: false, in: schema)
        default: return false
        }
        if let reason { refusal = .notAllowed(reason) }
        return reason != nil
    }

    private func refusal(
        ofChanging table: UnsafePointer<CChar>?,
        addsRows: Bool,
        in schema: UnsafePointer<CChar>?
    ) -> String? {
        // Most names need not become a String.
        guard let rules, let table, rules.hasSlots || strcasecmp(table, GuardRules.slotMemory) == 0,
            let reason = rules.refusal(ofChanging: String(cString: table), addsRows: addsRows), !isVacuumsOwn(schema)
        else { return nil }
        return reason
    }

    /// Whether SQLite compiles a statement for a VACUUM that runs, which fills the copy of a table that way. SQLite also
    /// compiles while other statements run: again after the schema has changed, and what virtual tables need.
    private func isVacuumsOwn(_ schema: UnsafePointer<CChar>?) -> Bool {
        guard compilation == nil, let handle, let schema, strcmp(schema, "main") != 0 else { return false }
        // VACUUM only begins when no other statement runs; its own run within it. https://www.sqlite.org/lang_vacuum.html
        var statement = sqlite3_next_stmt(handle, nil)
        while let running = statement {
            if sqlite3_stmt_busy(running) != 0, let sql = sqlite3_sql(running),
                SQLStatementText.verb(of: String(cString: sql)) == "vacuum"
            {
                return true
            }
            statement = sqlite3_next_stmt(handle, running)
        }
        return false
    }

    // SQLite's authorizer does not see the key of an ATTACH, so the text was searched for it. If SQLite finds something
    // else in the text than that search did, the search cannot be relied on.

    private func misreading(ofPragma name: String) -> String? {
        guard let compilation, !compilation.holdsKey, SQLStatementText.keyPragmas.contains(name.lowercased()) else {
            return nil
        }
        return StatementGuard.misread
    }

    private var misreadingOfAttach: String? {
        guard let compilation, compilation.verb != "attach" else { return nil }
        return StatementGuard.misread
    }

    /// VACUUM INTO attaches its file, too. An empty name is that of a temporary file, which VACUUM needs.
    private func refusal(ofFile name: String?) -> String? {
        guard refusesFiles, name?.isEmpty == false || name == nil, name != ":memory:" else { return nil }
        return "The migrations are only tried here, in a database in memory, and must not attach or write files."
    }

    private func refusal(ofPragma name: String, value: String?) -> String? {
        if movesLog, name.lowercased() == "wal_autocheckpoint", value != nil {
            return "wal_autocheckpoint is the pool's own business, which moves the log by one connection alone. "
                + "Configuration.maximumLogSize bounds the log."
        }
        // SQLite accepts the beginning of a mode's name for the mode.
        guard requiresJournal, name.lowercased() == "journal_mode", let value, !value.isEmpty,
            "off".hasPrefix(value.lowercased())
        else { return nil }
        return "journal_mode OFF is refused in queues and pools: \(StatementGuard.cannotUndo)"
    }

    static let cannotUndo = "SQLite could not undo what a block has written that throws, nor a statement that fails."

    private static let misread = "The statement sets a key or attaches a file, but is not written as one that does."

    func takeRefusal() -> DatabaseError? {
        defer { refusal = nil }
        return refusal
    }

    /// The authorizer callback for SQLite.
    fileprivate static let callback:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> Int32 = { context, action, first, second, schema, _ in
            let statementGuard = Unmanaged<StatementGuard>.fromOpaque(context!).takeUnretainedValue()
            return statementGuard.decision(action, first, second, in: schema).code
        }
}

extension Connection {
    /// The rules; `nil` on a connection that does not use keys.
    var guardRules: GuardRules? {
        get { statementGuard.rules }
        set {
            statementGuard.rules = newValue
            installAuthorizer()
        }
    }

    /// Installs the authorizer. There always is one, because it reports what a statement does. SQLite compiles earlier
    /// statements again when they next run.
    func installAuthorizer() {
        guard let handle else { return }
        statementGuard.handle = handle
        // SQLite has one authorizer per connection. The hooks occupy it, and ask the guard first.
        if let hooks { return hooks.install() }
        // Not retained here: the connection retains the guard as long as it has the handle.
        let context = Unmanaged.passUnretained(statementGuard).toOpaque()
        // This only stores a pointer, and cannot fail.
        sqlite3_set_authorizer(handle, StatementGuard.callback, context)
    }

    /// Runs statements of the library's own, to which the rules do not apply.
    func unguarded<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let wasSuspended = statementGuard.isSuspended
        statementGuard.isSuspended = true
        defer { statementGuard.isSuspended = wasSuspended }
        return try body()
    }

    /// Call this before any SQL is compiled. Throws if the statement sets or needs a key in a way that the rules
    /// forbid.
    func authorizeKeyStatement(_ text: SQLStatementText) throws(DatabaseError) {
        if statementGuard.hasKeyFromSQL {
            statementGuard.hasKeyFromSQL = false
            guardAfterKeyStatement()
        }
        try requireDefaultCipherSettings(text)
        if text.copiesAttached, guardRules != nil, !statementGuard.isSuspended {
            throw .notAllowed(
                """
                VACUUM INTO gives the copy the key of main, or none if main has none, also where it copies an attached \
                database. Open that one by itself, or use StoreBackup.
                """
            )
        }
        guard text.holdsKey else { return }
        if let rules = guardRules {
            guard rules.allowsCipherStatements || statementGuard.isSuspended else {
                throw .notAllowed(
                    """
                    SQL that holds a key is refused on a connection with a key. Use attach(_:as:key:), or give keys in \
                    the Configuration.
                    """
                )
            }
        } else {
            try requireMemoryForTemporaries()
        }
        statementGuard.hasKeyFromSQL = !statementGuard.isSuspended
    }

    /// Call this before the library attaches a file with a key to a database that may have none.
    func guardKeyFromAPI() throws(DatabaseError) {
        guard guardRules == nil else { return }
        try requireMemoryForTemporaries()
        guardRules = GuardRules(allowsCipherStatements: true)
    }

    private func requireMemoryForTemporaries() throws(DatabaseError) {
        switch try integer("PRAGMA temp_store") {
        case 2: return
        case 0 where ["TEMP_STORE=2", "TEMP_STORE=3"].contains { Engine.compileOptions.contains($0) }: return
        default:
            throw .notAllowed(
                """
                Temporary tables and sorts of this connection go to disk in plaintext. Execute \
                "PRAGMA temp_store = MEMORY" before a key is used.
                """
            )
        }
    }

    /// Updates the rules after a statement that set a key. This happens at the next statement and not sooner: new rules
    /// make SQLite compile earlier statements again, and the one that set the key would then be refused.
    private func guardAfterKeyStatement() {
        let isKeyed: Bool
        do throws(DatabaseError) {
            isKeyed = try text("PRAGMA cipher_provider") != nil
        } catch {
            // If this cannot be determined, the connection counts as one with a key.
            isKeyed = true
        }
        guard guardRules == nil || isKeyed else { return }
        guardRules = GuardRules(
            allowsCipherStatements: !isKeyed || statementGuard.allowsCipherStatements
        )
    }
}

extension DatabaseError {
    static func notAllowed(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_AUTH, reason: .notAllowed, message: message + " Nothing was executed.")
    }
}
