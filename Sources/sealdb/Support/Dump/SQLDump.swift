import SealedDB

/// Writes a store as SQL that makes it again. The stock shells and `sealdb exec` read it.
/// https://www.sqlite.org/cli.html#converting_an_entire_database_to_a_text_file
struct SQLDump {
    let database: Database
    let output: StandardOutput
    var writesSchema = true
    var writesRows = true
    /// The tables and views to write; empty for all.
    var names: [String] = []

    /// Writes everything as the store holds it at one moment. If this fails, what was written stores nothing.
    func run() throws {
        guard database.beginDeferredTransaction() else { throw database.lastError() }
        // Only read: there is nothing to commit.
        defer { _ = database.rollback() }
        let objects = try SchemaObject.those(of: names, in: SchemaObject.all(of: database))
        if writesRows {
            // What cannot be written is told before anything is.
            for object in objects {
                guard let text = object.virtualTable else { continue }
                _ = try VirtualTable(object, text, in: database).options(database)
            }
        }
        let encoding = try database.executeQuery("PRAGMA encoding").scalar(String.self) ?? "UTF-8"
        if writesSchema, encoding != "UTF-8" { try line("PRAGMA encoding = '\(encoding)'") }
        try line("PRAGMA foreign_keys = OFF")
        // Rows may be older than a constraint that they violate.
        try line("PRAGMA ignore_check_constraints = ON")
        try line("BEGIN TRANSACTION")
        do {
            try write(objects, isUTF8: encoding == "UTF-8")
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

    private func line(_ sql: String) throws { try output.write(sql + ";\n") }

    private func write(_ objects: [SchemaObject], isUTF8: Bool) throws {
        for object in objects where object.kind == .table {
            if writesSchema { try write(object) }
            if writesRows { try writeRows(of: TableContents(object.name, in: database), isUTF8: isUTF8) }
        }
        // A full-text table may take its text from a table or view above.
        if writesSchema { for object in objects where object.kind == .view { try write(object) } }
        for object in objects {
            guard let text = object.virtualTable else { continue }
            if writesSchema { try write(object) }
            if writesRows { try write(VirtualTable(object, text, in: database), isUTF8: isUTF8) }
        }
        if writesRows { try writeCounters(objects) }
        guard writesSchema else { return }
        for object in objects where object.kind == .other { try write(object) }
        guard names.isEmpty else { return }
        for pragma in ["user_version", "application_id"] {
            let value = try database.executeQuery("PRAGMA \(raw: pragma)").scalar(Int.self) ?? 0
            if value != 0 { try line("PRAGMA \(pragma) = \(value)") }
        }
    }

    private func write(_ object: SchemaObject) throws {
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

    private func writeRows(of contents: TableContents, isUTF8: Bool) throws {
        // What a constraint would do to a row is not wanted here.
        let start = SQLLiteral.insertion(into: contents.table, columns: contents.columns, "INSERT OR ABORT INTO")
        let rows = try database.executeQuery(SQL(raw: contents.query))
        defer { rows.close() }
        let columns = Int32(contents.columns.count)
        while try rows.nextWithError() {
            let cells = (0..<columns).map { Cell(rows, column: $0) }
            if !isUTF8, cells.contains(where: \.isBrokenText) {
                throw Failure(
                    .data,
                    "A text in \"\(contents.table)\" is not valid UTF-16, and cannot be written as SQL. Use: sealdb backup"
                )
            }
            try output.write(start + cells.map { SQLLiteral.text(of: $0) }.joined(separator: ",") + ");\n")
        }
    }

    private func write(_ table: VirtualTable, isUTF8: Bool) throws {
        switch table.source {
        case .own(let contents): try writeRows(of: contents, isUTF8: isUTF8)
        case .otherTable: try line(VirtualTable.command("rebuild", table.name))
        case .nothing: break
        }
        for (option, value) in try table.options(database) {
            let name = SQLLiteral.name(table.name)
            try line(
                "INSERT INTO \(name)(\(name), rank) VALUES(\(option.quoted(by: "'")), \(SQLLiteral.text(of: value)))"
            )
        }
    }

    /// The next row ids of tables with AUTOINCREMENT. https://www.sqlite.org/autoinc.html
    private func writeCounters(_ objects: [SchemaObject]) throws {
        let has = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"
        guard try database.executeQuery(SQL(raw: has)).scalar(Int.self) == 1 else { return }
        // SQL may write a row for any table, but the table of counters exists only where one counts.
        let tables = Set(objects.filter { $0.kind == .table && $0.counts }.map { ExactText(name: $0.name) })
        let rows = try database.executeQuery("SELECT name, seq FROM main.sqlite_sequence")
        defer { rows.close() }
        while try rows.nextWithError() {
            guard let name = rows.string(forColumnIndex: 0), tables.contains(ExactText(name: name)) else { continue }
            let text = SQLLiteral.text(of: .text(name))
            let next = SQLLiteral.text(of: Cell(rows, column: 1))
            try line("DELETE FROM sqlite_sequence WHERE name = \(text)")
            try line("INSERT INTO sqlite_sequence(name, seq) VALUES(\(text), \(next))")
        }
    }
}
