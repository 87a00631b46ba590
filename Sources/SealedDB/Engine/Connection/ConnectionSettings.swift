internal import SQLiteEngine

/// What was set on a connection, by SQL or by calls, and is not in the file: it goes with the connection, and has to be set
/// again where one is opened in its place.
///
/// All that reads back is looked at on both connections, and what differs is set. What cannot be carried over are
/// temporary objects and attached databases; see ``Connection/requireNothingTemporary()``.
struct ConnectionSettings {
    private let pragmas: [String: String]
    private let switches: [Int32: Int32]
    private let limits: [Int32]
    private let isLikeCaseSensitive: Bool?
    private let journalMode: String?
    private let lastInsertRowID: Int64

    /// https://www.sqlite.org/pragma.html - those that belong to a connection, and tell what they are set to. The last
    /// forbids some of the others.
    private static let pragmaNames = [
        "analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "cell_size_check",
        "checkpoint_fullfsync", "count_changes", "empty_result_callbacks", "foreign_keys", "full_column_names",
        "fullfsync", "ignore_check_constraints", "journal_size_limit", "legacy_alter_table", "max_page_count",
        "read_uncommitted", "recursive_triggers", "reverse_unordered_selects", "secure_delete", "short_column_names",
        "synchronous", "threads", "trusted_schema", "wal_autocheckpoint", "writable_schema", "locking_mode",
        "query_only",
    ]

    /// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html - from SQLITE_DBCONFIG_ENABLE_FKEY on, without what acts
    /// instead of being set (1009), and what the library sets itself (1006).
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
            // Without an answer, this engine does not have it.
            if let value = try connection.text("PRAGMA \(name)") { pragmas[name] = value }
        }
        self.pragmas = pragmas
        var switches: [Int32: Int32] = [:]
        for number in ConnectionSettings.switchNumbers {
            var value: Int32 = 0
            // One that this SQLite does not have is refused.
            if sealeddb_switch(handle, number, -1, &value) == SQLITE_OK { switches[number] = value }
        }
        self.switches = switches
        limits = ConnectionSettings.limitNumbers.map { sqlite3_limit(handle, $0, -1) }
        isLikeCaseSensitive = try connection.integer("SELECT 'a' LIKE 'A'").map { $0 == 0 }
        journalMode = try connection.text("PRAGMA journal_mode")
        lastInsertRowID = connection.lastInsertRowID
    }

    /// Sets all that is different on another connection.
    /// - Throws: ``DatabaseError`` if something is not as it was afterwards.
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
            // The result is the limit before.
            _ = sqlite3_limit(handle, number, value)
        }
        if let isLikeCaseSensitive, isLikeCaseSensitive != present.isLikeCaseSensitive {
            try connection.run("PRAGMA case_sensitive_like = \(isLikeCaseSensitive ? "ON" : "OFF")")
        }
        // Of a file, WAL is; the others are of the connection.
        if let journalMode, journalMode != present.journalMode, ![journalMode, present.journalMode].contains("wal") {
            guard try connection.text("PRAGMA journal_mode = \(journalMode)") == journalMode else {
                throw ConnectionSettings.notRestored("journal_mode")
            }
        }
        for name in ConnectionSettings.pragmaNames {
            guard let value = pragmas[name], try connection.text("PRAGMA \(name)") != value else { continue }
            // The one whose answer it does not take.
            let setting = name == "secure_delete" && value == "2" ? "FAST" : value
            try connection.run("PRAGMA \(name) = \(setting)")
            // The number of pages is never less than there are.
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
    /// - Throws: ``DatabaseError`` if this connection has what ends with it and cannot be made again elsewhere: temporary
    ///   tables, views and triggers, and attached databases, whose keys are not kept.
    func requireNothingTemporary() throws(DatabaseError) {
        let (schemas, objects) = try trusted { () throws(DatabaseError) in
            (
                try texts("SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')"),
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

    /// Whether there is something that ``requireNothingTemporary()`` names, or may be: it is asked where not even the schema
    /// can be read any more, which this pragma does not need.
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
