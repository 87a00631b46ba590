internal import SQLiteEngine

/// The settings of a connection, made by SQL or by calls, that are not stored in the file. They end with the
/// connection, and must be set again on a connection that replaces it.
///
/// Every setting that can be read is compared on both connections, and set where it differs. Temporary objects and
/// attached databases cannot be transferred; see ``Connection/requireNothingTemporary()``.
struct ConnectionSettings {
    private let pragmas: [String: String]
    private let switches: [Int32: Int32]
    private let limits: [Int32]
    private let isLikeCaseSensitive: Bool?
    private let journalMode: String?
    private let lastInsertRowID: Int64

    /// https://www.sqlite.org/pragma.html - the pragmas that belong to a connection and return their value. The last
    /// one forbids setting some of the others.
    private static let pragmaNames = [
        "analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "cell_size_check",
        "checkpoint_fullfsync", "count_changes", "empty_result_callbacks", "foreign_keys", "full_column_names",
        "fullfsync", "ignore_check_constraints", "journal_size_limit", "legacy_alter_table", "max_page_count",
        "read_uncommitted", "recursive_triggers", "reverse_unordered_selects", "secure_delete", "short_column_names",
        "synchronous", "trusted_schema", "wal_autocheckpoint", "writable_schema", "locking_mode", "query_only",
    ]

    /// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html - from SQLITE_DBCONFIG_ENABLE_FKEY on, without 1009,
    /// which is an action and not a setting, and 1006, which the library sets itself.
    private static let switchNumbers = (1002...1019 as ClosedRange<Int32>).filter { ![1006, 1009].contains($0) }

    /// https://www.sqlite.org/c3ref/c_limit_attached.html
    private static let limitNumbers = 0..<12 as Range<Int32>

    init(of connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        self = try connection.trusted { () throws(DatabaseError) in try ConnectionSettings(connection, handle) }
    }

    private init(_ connection: Connection, _ handle: OpaquePointer) throws(DatabaseError) {
        var pragmas: [String: String] = [:]
        for name in ConnectionSettings.pragmaNames {
            // A pragma without an answer does not exist in this engine.
            if let value = try connection.text("PRAGMA \(name)") { pragmas[name] = value }
        }
        self.pragmas = pragmas
        var switches: [Int32: Int32] = [:]
        for number in ConnectionSettings.switchNumbers {
            var value: Int32 = 0
            // This SQLite refuses a switch that it does not have.
            if sealeddb_switch(handle, number, -1, &value) == SQLITE_OK { switches[number] = value }
        }
        self.switches = switches
        limits = ConnectionSettings.limitNumbers.map { sqlite3_limit(handle, $0, -1) }
        isLikeCaseSensitive = try connection.integer("SELECT 'a' LIKE 'A'").map { $0 == 0 }
        journalMode = try connection.text("PRAGMA journal_mode")
        lastInsertRowID = connection.lastInsertRowID
    }

    /// Applies every setting that differs to another connection.
    /// - Throws: ``DatabaseError`` if a setting could not be restored.
    func restore(on connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try connection.trusted { () throws(DatabaseError) in try restore(connection, handle) }
    }

    private func restore(_ connection: Connection, _ handle: OpaquePointer) throws(DatabaseError) {
        let present = try ConnectionSettings(connection, handle)
        for (number, value) in switches where present.switches[number] != value {
            var effective: Int32 = 0
            guard sealeddb_switch(handle, number, value, &effective) == SQLITE_OK, effective == value else {
                throw ConnectionSettings.notRestored("the switch \(number)")
            }
        }
        for (number, value) in zip(ConnectionSettings.limitNumbers, limits) {
            // The result is the former limit.
            _ = sqlite3_limit(handle, number, value)
        }
        if let isLikeCaseSensitive, isLikeCaseSensitive != present.isLikeCaseSensitive {
            try connection.run("PRAGMA case_sensitive_like = \(isLikeCaseSensitive ? "ON" : "OFF")")
        }
        // WAL mode belongs to the file; the other journal modes belong to the connection.
        if let journalMode, journalMode != present.journalMode, ![journalMode, present.journalMode].contains("wal") {
            guard try connection.text("PRAGMA journal_mode = \(journalMode)") == journalMode else {
                throw ConnectionSettings.notRestored("journal_mode")
            }
        }
        for name in ConnectionSettings.pragmaNames {
            guard let value = pragmas[name], try connection.text("PRAGMA \(name)") != value else { continue }
            // For secure_delete, SQLite does not accept the number 2 that it returns itself.
            let setting = name == "secure_delete" && value == "2" ? "FAST" : value
            try connection.run("PRAGMA \(name) = \(setting)")
            // SQLite raises max_page_count to the present number of pages.
            guard try connection.text("PRAGMA \(name)") == value || name == "max_page_count" else {
                throw ConnectionSettings.notRestored(name)
            }
        }
        connection.setLastInsertRowID(lastInsertRowID)
    }

    private static func notRestored(_ what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            message: """
                The connection was opened anew, and \(what) could not be set to what it was before. The connection was \
                closed. Open it, and set it again.
                """
        )
    }
}

extension Connection {
    /// - Throws: ``DatabaseError`` if this connection has something that ends with it and cannot be created again on
    ///   another: temporary tables, views and triggers, or attached databases, whose keys are not kept.
    func requireNothingTemporary() throws(DatabaseError) {
        let (schemas, objects) = try trusted { () throws(DatabaseError) in
            (
                try texts("PRAGMA database_list", column: 1).filter { !["main", "temp"].contains($0) },
                try texts("SELECT name FROM temp.sqlite_schema WHERE type <> 'index'")
            )
        }
        guard !schemas.isEmpty || !objects.isEmpty else { return }
        let names =
            (schemas.isEmpty ? [] : ["attached databases (\(schemas.joined(separator: ", ")))"])
            + (objects.isEmpty ? [] : ["temporary objects (\(objects.joined(separator: ", ")))"])
        throw DatabaseError(
            extendedCode: SQLITE_LOCKED,
            reason: .busy,
            message: """
                The connection has \(names.joined(separator: " and ")), which would be lost when it is opened anew. \
                Nothing was changed. Detach or drop them first.
                """
        )
    }

    /// Whether the connection has, or may have, anything that ``requireNothingTemporary()`` names. This pragma also
    /// works if not even the schema can be read any more.
    var mayHaveTemporaries: Bool {
        do throws(DatabaseError) {
            return try trusted { () throws(DatabaseError) in
                let schemas = Set(try texts("PRAGMA database_list", column: 1))
                guard schemas.isSubset(of: ["main", "temp"]) else { return true }
                guard schemas.contains("temp") else { return false }
                return try integer("SELECT count(*) FROM temp.sqlite_schema") != 0
            }
        } catch {
            return true
        }
    }
}
