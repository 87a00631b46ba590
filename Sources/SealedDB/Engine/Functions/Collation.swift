import Foundation
internal import SQLiteEngine

/// A collation, which the database registers on each connection that it opens.
struct Collation {
    let name: String
    let compare: (String, String) -> ComparisonResult

    private final class Box {
        let compare: (String, String) -> ComparisonResult
        /// Not retained: SQLite compares only within statements, which keep the connection alive.
        unowned(unsafe) let connection: Connection

        init(_ compare: @escaping (String, String) -> ComparisonResult, _ connection: Connection) {
            self.compare = compare
            self.connection = connection
        }
    }

    /// https://www.sqlite.org/c3ref/create_collation.html
    func register(on connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try Collation.validate(name)
        let box = Unmanaged.passRetained(Box(compare, connection))
        let code = sqlite3_create_collation_v2(
            handle,
            name,
            SQLITE_UTF8,
            box.toOpaque(),
            { context, firstCount, first, secondCount, second in
                let box = Unmanaged<Box>.fromOpaque(context!).takeUnretainedValue()
                let first = UnsafeRawBufferPointer(start: first, count: Int(firstCount))
                let second = UnsafeRawBufferPointer(start: second, count: Int(secondCount))
                // A collation may not use the connection: it could not report that it ended the transaction of the
                // statement that sorts.
                return box.connection.withinHook {
                    Int32(Collation.order(first, second, box.compare).rawValue)
                }
            },
            { $0.map { Unmanaged<Box>.fromOpaque($0).release() } }
        )
        // In this case, SQLite does not release the box, unlike for functions.
        if code != SQLITE_OK { box.release() }
        try connection.check(code)
    }

    static func remove(_ name: String, from connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try validate(name)
        try connection.check(sqlite3_create_collation_v2(handle, name, SQLITE_UTF8, nil, nil, nil))
    }

    private static func validate(_ name: String) throws(DatabaseError) {
        guard name.isEmpty || name.utf8.contains(0) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The name of a collation is not empty and has no NUL. Nothing was changed."
        )
    }

    /// Compares two texts. In invalid UTF-8, U+FFFD replaces the invalid bytes. Texts that are only equal because of
    /// that are ordered by their bytes, so that an index does not confuse them.
    private static func order(
        _ first: UnsafeRawBufferPointer,
        _ second: UnsafeRawBufferPointer,
        _ compare: (String, String) -> ComparisonResult
    ) -> ComparisonResult {
        let valid = (String(validating: first, as: UTF8.self), String(validating: second, as: UTF8.self))
        let result = compare(
            valid.0 ?? String(decoding: first, as: UTF8.self),
            valid.1 ?? String(decoding: second, as: UTF8.self)
        )
        guard result == .orderedSame else { return result }
        switch (valid.0 == nil, valid.1 == nil) {
        case (false, false): return .orderedSame
        case (false, true): return .orderedAscending
        case (true, false): return .orderedDescending
        case (true, true):
            if first.elementsEqual(second) { return .orderedSame }
            return first.lexicographicallyPrecedes(second) ? .orderedAscending : .orderedDescending
        }
    }
}

extension Connection {
    /// Removes the modules of virtual tables, so that a check of the whole file does not ask them: a module fails if it lacks
    /// a tokenizer. https://www.sqlite.org/c3ref/drop_modules.html
    func dropModules() {
        guard let handle else { return }
        // Always OK for an open connection. Should modules stay, the check fails as it did before.
        sqlite3_drop_modules(handle, nil)
    }

    /// Lets statements be prepared that need an unknown collation, and compares bytes instead. Use it only on a
    /// connection that neither searches an index nor writes. https://www.sqlite.org/c3ref/collation_needed.html
    func acceptUnknownCollations() {
        guard let handle else { return }
        // This only stores the function, and cannot fail.
        sqlite3_collation_needed(handle, nil) { _, handle, _, name in
            // If memory runs out, the collation stays unknown, and SQLite rejects the statement.
            sqlite3_create_collation_v2(
                handle,
                name,
                SQLITE_UTF8,
                nil,
                { _, firstCount, first, secondCount, second in
                    let first = UnsafeRawBufferPointer(start: first, count: Int(firstCount))
                    let second = UnsafeRawBufferPointer(start: second, count: Int(secondCount))
                    return first.elementsEqual(second) ? 0 : first.lexicographicallyPrecedes(second) ? -1 : 1
                },
                nil
            )
        }
    }
}
