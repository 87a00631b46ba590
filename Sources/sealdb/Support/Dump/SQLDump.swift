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
        let encoding = try database.scalar(String.self, "PRAGMA encoding") ?? "UTF-8"
        if writesSchema, encoding != "UTF-8" { try line("PRAGMA encoding = '\(encoding)'") }
        try line("PRAGMA foreign_keys = OFF")
        try line("BEGIN TRANSACTION")
        do {
            try write(objects)
        } catch {
            // The reader of the output may be gone too. The first error is the one that tells the cause.
            try? line("ROLLBACK")
            try? output.flush()
            throw error
        }
        try line("COMMIT")
    }

    private func line(_ sql: String) throws { try output.write(sql + ";\n") }

    private func write(_ objects: [SchemaObject]) throws {
        for object in objects where object.kind == .table {
            if writesSchema { try write(object) }
            if writesRows { try writeRows(of: TableContents(object.name, in: database)) }
        }
        // A full-text table may take its text from a table above.
        for object in objects where object.kind == .virtualTable {
            if writesSchema { try write(object) }
            if writesRows { try write(VirtualTable(object, in: database)) }
        }
        if writesRows { try writeCounters(objects) }
        guard writesSchema else { return }
        for object in objects where object.kind == .other { try write(object) }
        guard names.isEmpty else { return }
        for pragma in ["user_version", "application_id"] {
            let value = try database.scalar(Int.self, "PRAGMA \(raw: pragma)") ?? 0
            if value != 0 { try line("PRAGMA \(pragma) = \(value)") }
        }
    }

    private func write(_ object: SchemaObject) throws { try output.write(object.statement) }

    private func writeRows(of contents: TableContents) throws {
        let start = SQLLiteral.insertion(into: contents.table, columns: contents.columns)
        let rows = try database.executeQuery(SQL(raw: contents.query))
        defer { rows.close() }
        let columns = Int32(contents.columns.count)
        while try rows.nextWithError() {
            try output.write(start)
            for column in 0..<columns {
                if column > 0 { try output.write(",") }
                try output.write(SQLLiteral.text(of: Cell(rows, column: column)))
            }
            try output.write(");\n")
        }
    }

    private func write(_ table: VirtualTable) throws {
        switch table.source {
        case .own(let contents): try writeRows(of: contents)
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
        let has = try database.scalar(
            Int.self,
            "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"
        )
        guard has == 1 else { return }
        for (name, next) in try database.all((String, Int64).self, "SELECT name, seq FROM main.sqlite_sequence") {
            guard objects.contains(where: { $0.kind == .table && $0.name.utf8.elementsEqual(name.utf8) }) else {
                continue
            }
            let text = SQLLiteral.text(of: .text(name))
            try line("DELETE FROM sqlite_sequence WHERE name = \(text)")
            try line("INSERT INTO sqlite_sequence(name, seq) VALUES(\(text), \(next))")
        }
    }
}
