internal import SQLiteEngine

/// The rules are enforced where SQLite compiles statements, which is also where SQLCipher obeys its pragmas: the
/// authorizer is asked first. https://www.sqlite.org/c3ref/set_authorizer.html
final class StatementGuard {
    var rules: GuardRules?
    /// While the library itself sets what SQL may not.
    var isSuspended = false
    /// Whether a key may have come by SQL since the rules were looked at.
    var hasKeyFromSQL = false
    /// Why the statement that is being compiled was refused; until it is met as a result code.
    private var refusal: String?

    /// Whether an action is against the rules. The first text of an action is a pragma's name, or a file's.
    func refuses(_ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?) -> Bool {
        guard let rules, !isSuspended else { return false }
        let reason: String?
        switch action {
        case SQLITE_PRAGMA:
            guard let first else { return false }
            reason = rules.refusal(ofPragma: String(cString: first), value: second.map { String(cString: $0) })
        case SQLITE_ATTACH:
            reason = rules.refusal(ofAttached: first.map { String(cString: $0) })
        default: return false
        }
        if let reason { refusal = reason }
        return reason != nil
    }

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
            guard let handle else { return }
            // They have the only place that SQLite has for it, and ask the rules first.
            if let hooks { return hooks.install() }
            // The connection keeps the guard for as long as it has the handle.
            let context = Unmanaged.passUnretained(statementGuard).toOpaque()
            // It is only remembered, which cannot fail.
            sqlite3_set_authorizer(handle, newValue == nil ? nil : StatementGuard.callback, context)
        }
    }

    /// Runs statements of the library's own.
    func unguarded<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let wasSuspended = statementGuard.isSuspended
        statementGuard.isSuspended = true
        defer { statementGuard.isSuspended = wasSuspended }
        return try body()
    }

    /// Before any SQL is compiled.
    /// - Parameter comesFirst: whether it is a statement that holds a key.
    func authorizeKeyStatement(comesFirst: Bool) throws(DatabaseError) {
        if statementGuard.hasKeyFromSQL {
            statementGuard.hasKeyFromSQL = false
            guardAfterKeyStatement()
        }
        guard comesFirst else { return }
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
        guardRules = GuardRules(allowsCipherStatements: !isKeyed || allowsCipherStatements)
    }
}

extension DatabaseError {
    static func notAllowed(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_AUTH, reason: .notAllowed, message: message + " Nothing was executed.")
    }
}
