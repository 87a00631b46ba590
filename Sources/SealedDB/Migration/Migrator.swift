/// Brings a store's schema up to date by migrations. Each migration has a name, and runs once, in the order of
/// registration.
///
/// ```swift
/// var migrator = Migrator()
/// migrator.register("create notes", sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)")
/// migrator.register("index notes") { db in
///     try db.executeUpdate("CREATE INDEX note_body ON note (body)", values: nil)
/// }
/// try await migrator.migrate(queue)
/// ```
///
/// Each migration runs in one IMMEDIATE transaction, together with its entry in the record of migrations. After a
/// failure or a kill the store is as the last complete migration left it. Several processes may migrate at once: one
/// does it, and the others wait and find it done. Foreign keys are not enforced meanwhile, so that tables can be
/// replaced. If the connection enforces them, they are checked before each commit.
/// https://www.sqlite.org/lang_altertable.html#otheralter
///
/// The table `sealeddb_migrations` records the migrations that were run, each with a checksum of its text. A store that
/// does not match is refused and left as it is: if a later version of the program has migrated it, if its migrations
/// were run in another order, or if the text of a migration was changed after it was run.
public struct Migrator: Sendable {
    private struct Migration: Sendable {
        let name: String
        let checksum: String
        let body: @Sendable (Database) throws -> Void
    }

    private struct Applied: Equatable {
        let name: String
        let checksum: String
    }

    private var migrations: [Migration] = []

    /// A migrator without migrations.
    public init() {}

    /// The names of the migrations, in their order.
    public var names: [String] { migrations.map(\.name) }

    /// Adds a migration as the last one. Its text must not change after it was released.
    /// - Parameters:
    ///   - name: a unique name that never changes.
    ///   - sql: statements without parameters, and without BEGIN and COMMIT.
    public mutating func register(_ name: String, sql: String) {
        add(name, text: sql) { db in
            try Migrator.requireWhole(sql)
            guard db.executeStatements(sql) else { throw db.lastError() }
        }
    }

    /// Adds a migration that is written in Swift as the last one.
    /// - Parameters:
    ///   - name: a unique name that never changes.
    ///   - revision: is compared in place of the block's text, which cannot be compared. Default: empty.
    ///   - body: runs in a transaction, which it cannot end. If it throws an error, the transaction is rolled back. The
    ///     same happens if a call in it fails and nobody checks its result (see
    ///     ``Configuration/failsBlocksAfterIgnoredErrors``), however the database is configured.
    public mutating func register(
        _ name: String,
        revision: String = "",
        _ body: @escaping @Sendable (Database) throws -> Void
    ) {
        add(name, text: revision, body)
    }

    private mutating func add(_ name: String, text: String, _ body: @escaping @Sendable (Database) throws -> Void) {
        precondition(!names.contains(name), "Migrator.register: the name \"\(name)\" is taken.")
        migrations.append(Migration(name: name, checksum: Migrator.checksum(of: text), body: body))
    }

    /// Refuses a script whose end SQLite would take for a comment. It could never be run later, because its text must stay.
    /// One that has nothing but blanks there hides nothing.
    private static func requireWhole(_ sql: String) throws(DatabaseError) {
        var sql = sql
        let endsInComment = sql.withUTF8 { bytes in
            var tokens = SQLTokenizer(bytes)
            var end = 0
            while let token = tokens.next() { end = token.range.upperBound }
            guard tokens.endsInComment else { return false }
            return !bytes[end...].filter { !" \t\n\u{c}\r".utf8.contains($0) }.elementsEqual("/*".utf8)
        }
        guard endsInComment else { return }
        throw DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .misuse,
            message:
                "The script ends in a comment without its end (*/), in which statements may stand that would never be run."
        )
    }

    /// A 64-bit FNV-1a hash. It finds accidental changes, but not deliberate ones.
    static func checksum(of text: String) -> String {
        let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }

    // MARK: Migrating

    /// Runs the missing migrations on the connection that writes.
    /// - Parameters:
    ///   - access: the queue or pool.
    ///   - last: the name of the last migration to run, for example to test the next one; `nil`, the default, for all.
    ///     Migrations after it that were run earlier stay.
    /// - Returns: the names of the migrations that were run now.
    /// - Throws: the error of a migration, or a ``DatabaseError``. The changes of the failed migration are rolled back;
    ///   earlier migrations stay.
    @discardableResult
    public func migrate(_ access: some DatabaseAccess, upTo last: String? = nil) throws -> [String] {
        try access.writeWithoutTransaction { db in try migrate(db, upTo: last) }
    }

    /// Like the synchronous form, but does not block a thread while it waits. Cancelling the task
    /// stops the running migration, which is rolled back.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func migrate(_ access: some DatabaseAccess, upTo last: String? = nil) async throws -> [String] {
        try await access.writeWithoutTransaction { db in try migrate(db, upTo: last) }
    }

    /// Like the form for queues and pools, on one connection. It may not be in a transaction.
    /// - Throws: as the form for queues and pools; ``DatabaseError/Reason/misuse`` within a transaction.
    @discardableResult
    public func migrate(_ database: Database, upTo last: String? = nil) throws -> [String] {
        let count = try count(upTo: last)
        guard !database.isInTransaction else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "Migrations run in transactions of their own. Commit or roll back first. Nothing was changed."
            )
        }
        guard try migrations.count - pending(in: database).count < count else { return [] }
        let enforcesForeignKeys = try database.integer("PRAGMA foreign_keys") == 1
        if enforcesForeignKeys { try database.run("PRAGMA foreign_keys = OFF") }
        var made: [String] = []
        do {
            while let name = try makeNext(in: database, of: count, checksForeignKeys: enforcesForeignKeys) {
                made.append(name)
            }
        } catch {
            // The error of the migration is more useful than one from here. If foreign keys cannot be enforced again,
            // the connection is closed.
            if enforcesForeignKeys { try? enforceForeignKeys(again: database) }
            throw error
        }
        if enforcesForeignKeys { try enforceForeignKeys(again: database) }
        return made
    }

    /// Enforces foreign keys again, and checks it: in a transaction that a failed ROLLBACK has left open, SQLite
    /// ignores the pragma without an error.
    private func enforceForeignKeys(again database: Database) throws {
        guard database.isOpen else { return }
        do {
            try database.run("PRAGMA foreign_keys = ON")
            guard try database.integer("PRAGMA foreign_keys") == 1 else { throw DatabaseError.notEnforced }
        } catch {
            database.close()
            throw error
        }
    }

    /// The names of the missing migrations. Changes nothing.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/unknownMigrations`` for a store that does not match.
    public func pending(in database: Database) throws(DatabaseError) -> [String] {
        let applied = try applied(in: database)
        try verify(applied)
        return migrations.dropFirst(applied.count).map(\.name)
    }

    /// Returns how many migrations there are up to this one.
    private func count(upTo last: String?) throws(DatabaseError) -> Int {
        guard let last else { return migrations.count }
        guard let index = names.firstIndex(of: last) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "There is no migration \"\(last)\". Nothing was changed."
            )
        }
        return index + 1
    }

    /// Whether the schema of the store differs from the one that its migrations make of an empty database: somebody has
    /// changed it by other means, or a migration that was written in Swift has been changed since it was run.
    ///
    /// The migrations run again, in a database in memory with the functions of ``Configuration/prepare``. Changes
    /// nothing in the store. Tables of SQLite's own, such as `sqlite_stat1`, are not compared.
    /// - Throws: ``DatabaseError`` as ``pending(in:)`` does, and whatever a migration throws on an empty database;
    ///   ``DatabaseError/Reason/notAllowed`` if ``Configuration/prepare`` attaches files: migrations might change these again.
    public func hasSchemaChanges(in database: Database) throws -> Bool {
        let count = try migrations.count - pending(in: database).count
        var configuration = database.configuration
        configuration.keyOrigin = nil
        configuration.isReadOnly = false
        configuration.createsFile = true
        configuration.journalMode = nil
        configuration.replication = nil
        let fresh = Database(path: nil, configuration: configuration)
        // It has no key, so files that are attached or written to would be plaintext, or be changed again.
        fresh.willPrepare = { [weak fresh] in fresh?.connection?.statementGuard.refusesFiles = true }
        try fresh.openVerified()
        defer { fresh.close() }
        guard try fresh.openConnection().attachedFiles().isEmpty else {
            throw DatabaseError.notAllowed(
                """
                Configuration.prepare attaches files, which the migrations might change again when they run in another \
                database. Attach them after opening.
                """
            )
        }
        if count > 0 { try migrate(fresh, upTo: names[count - 1]) }
        return try Migrator.schema(of: database) != Migrator.schema(of: fresh)
    }

    private static func schema(of database: Database) throws(DatabaseError) -> [ExactText?] {
        try database.executeQuery(
            """
            SELECT sql FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'sealeddb_migrations'
            ORDER BY type, name
            """
        ).all(String?.self)
            .map { $0.map { ExactText($0) } }
    }

    /// Runs the next migration in a transaction, and returns its name; `nil` if none of the first `count` is missing.
    private func makeNext(in database: Database, of count: Int, checksForeignKeys: Bool) throws -> String? {
        if database.supervision.isStopped { throw DatabaseError.stopped }
        return try database.inTransaction {
            // Another process may have run it meanwhile.
            let applied = try applied(in: database)
            try verify(applied)
            guard applied.count < count else { return nil }
            let migration = migrations[applied.count]
            try context("The migration \"\(migration.name)\" failed and was rolled back; those before it stay") {
                try database.withinTransaction { try migration.body(database) }
                if checksForeignKeys { try database.checkForeignKeys() }
            }
            try database.run(Migrator.table)
            try database.executeUpdate(
                "INSERT INTO main.sealeddb_migrations (name, checksum) VALUES (?, ?)",
                values: [migration.name, migration.checksum]
            )
            let record = Applied(name: migration.name, checksum: migration.checksum)
            guard try self.applied(in: database) == applied + [record] else {
                throw Migrator.notRecorded(migration.name)
            }
            return migration.name
        }
    }

    private func context<T>(_ text: String, _ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw error.adding(context: text)
        }
    }

    // MARK: The store's record

    private static let table = """
        CREATE TABLE IF NOT EXISTS main.sealeddb_migrations (
            position INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            checksum TEXT NOT NULL,
            applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
        )
        """

    /// What is not recorded would be run again.
    private static func notRecorded(_ name: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .unverified,
            message: """
                The migration "\(name)" was rolled back, because the store did not record that it was run; those before it stay. \
                See what was made of the table sealeddb_migrations, such as a trigger on it.
                """
        )
    }

    private func applied(in database: Database) throws(DatabaseError) -> [Applied] {
        let sql = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = 'sealeddb_migrations'"
        guard try database.integer(sql) == 1 else { return [] }
        let rows = try database.executeQuery(
            "SELECT name, checksum FROM main.sealeddb_migrations ORDER BY position",
            values: nil
        )
        defer { rows.close() }
        var applied: [Applied] = []
        while try rows.nextWithError() {
            applied.append(
                Applied(
                    name: rows.string(forColumnIndex: 0) ?? "",
                    checksum: rows.string(forColumnIndex: 1) ?? ""
                )
            )
        }
        return applied
    }

    /// Makes sure that the migrations that were run are the first of those that are registered.
    private func verify(_ applied: [Applied]) throws(DatabaseError) {
        let unknown = applied.map(\.name).filter { !names.contains($0) }
        guard unknown.isEmpty else {
            throw .unknownMigrations(
                """
                The store has migrations that this program does not know: \(unknown.joined(separator: ", ")). A later \
                version has used it; use that one.
                """
            )
        }
        for (migration, record) in zip(migrations, applied) {
            guard migration.name == record.name else {
                throw .unknownMigrations(
                    """
                    The store's migrations have another order: "\(record.name)" was made where "\(migration.name)" is \
                    registered. New migrations are registered after the others.
                    """
                )
            }
            guard migration.checksum == record.checksum else {
                throw .unknownMigrations(
                    """
                    The migration "\(migration.name)" was changed after the store was migrated. Restore its text, and \
                    register the change as a new migration.
                    """
                )
            }
        }
    }
}

extension DatabaseError {
    fileprivate static func unknownMigrations(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISMATCH,
            reason: .unknownMigrations,
            message: message + " Nothing was changed."
        )
    }
}

extension Database {
    fileprivate func run(_ sql: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in try openConnection().run(sql) }
    }

    fileprivate func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        try recording { () throws(DatabaseError) in try openConnection().integer(sql) }
    }

    /// Runs the block of a migration in the open transaction. Throws if SQLite has rolled that transaction back.
    fileprivate func withinTransaction(_ block: () throws -> Void) throws {
        try noticingFailures(always: true) {
            try block()
            closeOpenResultSets()
        }
        guard isInTransaction else { throw DatabaseError.transactionLost }
    }

    /// Checks foreign keys. https://www.sqlite.org/pragma.html#pragma_foreign_key_check
    fileprivate func checkForeignKeys() throws(DatabaseError) {
        let tables = try recording { () throws(DatabaseError) in
            try openConnection().texts("PRAGMA foreign_key_check")
        }
        guard !tables.isEmpty else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CONSTRAINT_FOREIGNKEY,
            message: """
                FOREIGN KEY constraint failed: it would leave \(tables.count.counted("row")) without parents, in \
                \(Set(tables).sorted().joined(separator: ", "))
                """
        )
    }
}

extension DatabaseError {
    fileprivate static let notEnforced = DatabaseError(
        extendedCode: SQLITE_ERROR,
        reason: .unverified,
        message: """
            The migrations are made, but foreign keys, which were off meanwhile, could not be enforced again. The connection \
            was closed: open it again.
            """
    )
}
