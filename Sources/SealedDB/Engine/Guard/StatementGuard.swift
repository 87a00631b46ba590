internal import SQLiteEngine

/// The rules are enforced where SQLite compiles statements, which is also where SQLCipher obeys its pragmas: the
/// authorizer is asked first. https://www.sqlite.org/c3ref/set_authorizer.html
final class StatementGuard {
    var rules: GuardRules?
    /// Whether keys and cipher settings may come by SQL once there is a key, and settings of the whole process at any time.
    var allowsCipherStatements = false
    /// While the library itself sets what SQL may not.
    var isSuspended = false
    var heldChanges = HeldChanges()
    /// Whether blocks that throw rely on a journal.
    var requiresJournal = false
    /// Whether a key may have come by SQL since the rules were looked at.
    var hasKeyFromSQL = false
    /// Why the statement that is being compiled was refused; until it is met as a result code.
    private var refusal: String?
    /// An attached file that is not sealed as it has to be, and could not be detached.
    var unsafeSchema: String?

    /// A statement that is being compiled.
    struct Compilation {
        fileprivate let verb: String?
        fileprivate let holdsKey: Bool
        fileprivate var facts: StatementFacts = []
    }
    private var compilation: Compilation?

    /// Before SQLite compiles a statement.
    /// - Returns: the compilation in which this one takes place, for ``end(_:)``.
    func begin(_ text: SQLStatementText) -> Compilation? {
        defer { compilation = Compilation(verb: text.verb, holdsKey: text.holdsKey) }
        return compilation
    }

    /// What was learned of the statement.
    func end(_ outer: Compilation?) -> StatementFacts {
        defer { compilation = outer }
        return compilation?.facts ?? []
    }

    /// Whether an action is against the rules. The first text of an action is a pragma's name, or a file's.
    func refuses(_ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?) -> Bool {
        compilation?.facts.formUnion(StatementFacts(action))
        guard !isSuspended else { return false }
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
            reason = misreadingOfAttach ?? rules?.refusal(ofAttached: first.map { String(cString: $0) })
        default: return false
        }
        if let reason { refusal = reason }
        return reason != nil
    }

    // SQLite's authorizer does not see the key of an ATTACH, and the text was read for it. Where SQLite does not find in
    // the text what was found before, nothing that was found can be relied on.

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

    private func refusal(ofPragma name: String, value: String?) -> String? {
        // SQLite takes the beginning of a mode's name for the name.
        guard requiresJournal, name.lowercased() == "journal_mode", let value, !value.isEmpty,
            "off".hasPrefix(value.lowercased())
        else { return nil }
        return "journal_mode OFF is refused in queues and pools: \(StatementGuard.cannotUndo)"
    }

    static let cannotUndo = "SQLite could not undo what a block has written that throws, nor a statement that fails."

    private static let misread = "The statement sets a key or attaches a file, but is not written as one that does."

    func takeRefusal() -> String? {
        defer { refusal = nil }
        return refusal
    }

    /// Called by SQLite.
    fileprivate static let callback:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> Int32 = { context, action, first, second, _, _ in
            let statementGuard = Unmanaged<StatementGuard>.fromOpaque(context!).takeUnretainedValue()
            return statementGuard.refuses(action, first, second) ? SQLITE_DENY : SQLITE_OK
        }
}

extension Connection {
    /// `nil` on a connection that has nothing to do with keys.
    var guardRules: GuardRules? {
        get { statementGuard.rules }
        set {
            statementGuard.rules = newValue
            installAuthorizer()
        }
    }

    /// There is always one, from which is learned what a statement does. Statements that were compiled before are compiled
    /// anew when they run next.
    func installAuthorizer() {
        guard let handle else { return }
        // They have the only place that SQLite has for it, and ask the guard first.
        if let hooks { return hooks.install() }
        // The connection keeps the guard for as long as it has the handle.
        let context = Unmanaged.passUnretained(statementGuard).toOpaque()
        // It is only remembered, which cannot fail.
        sqlite3_set_authorizer(handle, StatementGuard.callback, context)
    }

    /// Runs statements of the library's own.
    func unguarded<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let wasSuspended = statementGuard.isSuspended
        statementGuard.isSuspended = true
        defer { statementGuard.isSuspended = wasSuspended }
        return try body()
    }

    /// Before any SQL is compiled.
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

    /// Before the library attaches a file with a key, to a database that may have none.
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

    /// Not sooner than at the next statement: new rules make SQLite compile those anew that were compiled before, and
    /// the one that brought the key would be refused.
    private func guardAfterKeyStatement() {
        let isKeyed: Bool
        do throws(DatabaseError) {
            isKeyed = try text("PRAGMA cipher_provider") != nil
        } catch {
            // Where one cannot know, it has a key.
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
