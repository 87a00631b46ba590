/// Full-text search with FTS5, and with FTS3 and FTS4 through SQL. To mark what a query found, use SQL's `highlight(…)`
/// and `snippet(…)` in FTS5, and `offsets(…)` in FTS3 and FTS4; see ``TextOffsets``. https://www.sqlite.org/fts5.html
extension Database {
    /// Adds a tokenizer to FTS5, for `CREATE VIRTUAL TABLE … USING fts5(…, tokenize = 'name argument …')`. The
    /// tokenizer is added again whenever the database is reopened, also with the key that it gets later. Another program cannot use such a table without it.
    ///
    /// It replaces a tokenizer of the same name. Tables that this connection has already used keep the old one until
    /// the connection is closed.
    /// - Parameters:
    ///   - name: the name by which tables ask for it.
    ///   - make: makes the tokenizer of a table from the words after the name. If it throws, the statement that uses the
    ///     table fails. The database retains the closure, so capture the database `unowned`.
    /// - Throws: ``DatabaseError``, with the reason ``DatabaseError/Reason/unsupported`` if the engine has no FTS5.
    /// https://www.sqlite.org/fts5.html#custom_tokenizers
    public func addTokenizer(
        _ name: String,
        make: @escaping (_ arguments: [String]) throws -> any FTS5Tokenizer
    ) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            try additions.add(FTS5Module(name: name, make: make), to: connection) { () throws(DatabaseError) in
                try mayBeKeyedLater(connection)
            }
        }
    }

    /// Runs a command on the index of an FTS3, FTS4 or FTS5 table.
    /// - Throws: ``DatabaseError``, with the code `SQLITE_CORRUPT` if ``FullTextCommand/integrityCheck`` finds a
    ///   difference, and `SQLITE_ERROR` if the table is not a full-text table.
    public func perform(_ command: FullTextCommand, onTable table: String) throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let (text, rank) = try isFTS5(table) ? command.forFTS5 : (command.forFTS4, nil)
            let name: SQL = "\(identifier: table)"
            if let rank {
                try executeUpdate("INSERT INTO \(name) (\(name), rank) VALUES (\(text), \(rank))")
            } else {
                try executeUpdate("INSERT INTO \(name) (\(name)) VALUES (\(text))")
            }
        }
    }

    private func isFTS5(_ table: String) throws(DatabaseError) -> Bool {
        // https://www.sqlite.org/pragma.html#pragma_table_xinfo
        let rows = try executeQuery("PRAGMA table_xinfo(\(identifier: table))")
        defer { rows.close() }
        var hidden: Set<String> = []
        while try rows.nextWithError() {
            if rows.int(forColumn: "hidden") == 1 { hidden.insert(rows.string(forColumn: "name") ?? "") }
        }
        guard hidden.contains("rank") || hidden.contains("docid") else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .misuse,
                message: "\(table) is not a table for full-text search. Nothing was done."
            )
        }
        return hidden.contains("rank")
    }
}

/// A command for a full-text index. https://www.sqlite.org/fts5.html#special_insert_commands,
/// https://www.sqlite.org/fts3.html#commands
public enum FullTextCommand: Sendable, Hashable {
    /// Merges the whole index into one structure, which makes queries faster.
    case optimize
    /// Rebuilds the index from the contents of the table.
    case rebuild
    /// Compares the index with the contents. Fails with `SQLITE_CORRUPT` if they differ.
    case integrityCheck
    /// Merges a part of the index: writes about `pages` pages. Only levels with at least `segments` segments are
    /// merged; FTS5 ignores that number.
    case merge(pages: Int, segments: Int)
    /// Sets how many segments of a level are merged automatically; 0 for none.
    case automerge(segments: Int)

    var forFTS4: String {
        switch self {
        case .optimize: "optimize"
        case .rebuild: "rebuild"
        case .integrityCheck: "integrity-check"
        case .merge(let pages, let segments): "merge=\(pages),\(segments)"
        case .automerge(let segments): "automerge=\(segments)"
        }
    }

    var forFTS5: (text: String, rank: Int?) {
        switch self {
        case .optimize, .rebuild, .integrityCheck: (forFTS4, nil)
        // FTS5 has a separate setting for the number of segments, `usermerge`.
        case .merge(let pages, _): ("merge", pages)
        case .automerge(let segments): ("automerge", segments)
        }
    }

    /// Reads FMDB's form: `optimize`, `rebuild`, `integrity-check`, `merge=X,Y` or `automerge=N`.
    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1)
        let numbers = parts.dropFirst().flatMap { $0.split(separator: ",") }.map { Int($0) ?? -1 }
        guard let name = parts.first, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        switch (name, numbers.count) {
        case ("optimize", 0): self = .optimize
        case ("rebuild", 0): self = .rebuild
        case ("integrity-check", 0): self = .integrityCheck
        case ("merge", 2): self = .merge(pages: numbers[0], segments: numbers[1])
        case ("automerge", 1): self = .automerge(segments: numbers[0])
        default: return nil
        }
    }
}
