import SealedDB

/// Writes statements that a shell executes in one transaction.
struct SQLScriptWriter {
    let output: ResultOutput
    /// That of the store that is written.
    let encoding: TextEncoding

    /// The numbers in a store's header that belong to its user. https://www.sqlite.org/fileformat.html#database_header
    static let numbers = ["user_version", "application_id"]

    func line(_ sql: String) throws(Failure) { try output.write(sql + ";\n") }

    /// Writes what `body` writes as one transaction. If it fails, whoever executes the output stores nothing, and fails.
    func transaction(_ body: () throws -> Void) throws {
        try line("PRAGMA foreign_keys = OFF")
        // Rows may be older than a constraint that they violate.
        try line("PRAGMA ignore_check_constraints = ON")
        try line("BEGIN TRANSACTION")
        do {
            try body()
        } catch {
            // The reader of the output may be gone too. The first error is the one that tells the cause. Whoever loads the
            // output must fail as well: the status of a pipe is that of its last command.
            try? line("ROLLBACK")
            try? line("SELECT this_dump_is_incomplete")
            try? output.flush()
            throw error
        }
        try line("COMMIT")
        try line("PRAGMA ignore_check_constraints = OFF")
    }

    func write(_ object: SchemaObject) throws {
        let statement = try object.statement()
        if statement.utf8.contains(UInt8(ascii: "\r")) {
            StandardError.message(
                """
                The SQL of "\(object.name)" holds a carriage return. "sealdb exec" keeps it; the stock shells drop it before \
                a line feed, also in literals.
                """
            )
        }
        try output.write(statement)
    }

    func writeRows(of contents: TableContents, in database: Database) throws {
        let start = insertion(into: contents)
        guard encoding.isUTF8 else {
            return try contents.forEachRow(in: database) { try write($0, after: start, of: contents) }
        }
        // A text that is not valid is written as its bytes.
        let rows = try database.executeQuery(SQL(raw: contents.query))
        defer { rows.close() }
        let (count, buffer) = (Int32(contents.columns.count), output.buffer)
        while try rows.nextWithError() {
            buffer.add(start)
            for column in 0..<count {
                if column > 0 { buffer.add(UInt8(ascii: ",")) }
                SQLLiteral.add(rows.heldValue(forColumnIndex: column), to: buffer)
            }
            buffer.add(");\n")
            try output.endRow()
        }
    }

    /// The beginning of the statement that inserts a row. What a constraint would do to the row is not wanted.
    func insertion(into contents: TableContents) -> String {
        SQLLiteral.insertion(into: contents.table, columns: contents.columns, "INSERT OR ABORT INTO")
    }

    func write(_ row: [Cell], after start: String, of contents: TableContents) throws {
        try requireWritable(row, contents.table)
        try output.write(start + row.map { SQLLiteral.text(of: $0) }.joined(separator: ",") + ");\n")
    }

    func requireWritable(_ row: [Cell], _ table: String) throws(Failure) {
        guard !encoding.isUTF8, row.contains(where: \.isBrokenText) else { return }
        throw Failure(
            .data,
            "A text in \"\(table)\" is not valid UTF-16, and cannot be written as SQL. Use: sealdb backup"
        )
    }

    /// Writes the rows of virtual tables, and what was set in each.
    ///
    /// An index that is made anew comes last: its text may be in another virtual table.
    func write(_ tables: [VirtualTable], in database: Database) throws {
        for table in tables {
            guard case .own(let contents) = table.source else { continue }
            try writeRows(of: contents, in: database)
            try writeOptions(of: table, in: database)
        }
        for table in tables {
            guard case .otherTable = table.source else { continue }
            try line(VirtualTable.command("rebuild", table.name))
            try writeOptions(of: table, in: database)
        }
    }

    private func writeOptions(of table: VirtualTable, in database: Database) throws {
        for (option, value) in try table.options(database) {
            let name = SQLLiteral.name(table.name)
            try line(
                "INSERT INTO \(name)(\(name), rank) VALUES(\(option.quoted(by: "'")), \(SQLLiteral.text(of: value)))"
            )
        }
    }

    /// The names of the tables with AUTOINCREMENT that had a row, and their last row ids.
    /// https://www.sqlite.org/autoinc.html
    static func counters(_ objects: [SchemaObject], in database: Database) throws -> [(table: String, last: Cell)] {
        let has = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"
        guard try database.executeQuery(SQL(raw: has)).scalar(Int.self) == 1 else { return [] }
        // SQL may write a row for any table, but the table of counters exists only where one counts.
        let tables = Set(objects.filter { $0.kind == .table && $0.counts }.map { ExactText(name: $0.name) })
        let rows = try database.executeQuery("SELECT name, seq FROM main.sqlite_sequence")
        defer { rows.close() }
        var counters: [(String, Cell)] = []
        while try rows.nextWithError() {
            guard let name = rows.string(forColumnIndex: 0), tables.contains(ExactText(name: name)) else { continue }
            counters.append((name, Cell(rows, column: 1)))
        }
        return counters
    }

    func writeCounters(_ objects: [SchemaObject], in database: Database) throws {
        for (name, last) in try SQLScriptWriter.counters(objects, in: database) {
            let text = SQLLiteral.text(of: .text(name))
            try line("DELETE FROM sqlite_sequence WHERE name = \(text)")
            try line("INSERT INTO sqlite_sequence(name, seq) VALUES(\(text), \(SQLLiteral.text(of: last)))")
        }
    }
}
