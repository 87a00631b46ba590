import SealedDB

/// Writes a store as SQL that makes it again. The stock shells and `sealdb exec` read it.
/// https://www.sqlite.org/cli.html#converting_an_entire_database_to_a_text_file
struct SQLDump {
    let database: Database
    let output: ResultOutput
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
                let table = try VirtualTable(object, text, in: database)
                _ = try table.options(database)
                try table.requireSameIndex(in: database)
            }
        }
        let writer = SQLScriptWriter(output: output, encoding: try TextEncoding(of: database))
        if writesSchema, !writer.encoding.isUTF8 { try writer.line("PRAGMA encoding = '\(writer.encoding.rawValue)'") }
        try writer.transaction {
            try write(objects, to: writer)
            try database.requireStill()
        }
    }

    private func write(_ objects: [SchemaObject], to writer: SQLScriptWriter) throws {
        for object in objects where object.kind == .table {
            if writesSchema { try writer.write(object) }
            if writesRows { try writer.writeRows(of: TableContents(object.name, in: database), in: database) }
        }
        // A full-text table may take its text from a table or view above.
        if writesSchema { for object in objects where object.kind == .view { try writer.write(object) } }
        var tables: [VirtualTable] = []
        for object in objects {
            guard let text = object.virtualTable else { continue }
            if writesSchema { try writer.write(object) }
            if writesRows { tables.append(try VirtualTable(object, text, in: database)) }
        }
        try writer.write(tables, in: database)
        if writesRows { try writer.writeCounters(objects, in: database) }
        guard writesSchema else { return }
        for object in objects where object.isOfTable { try writer.write(object) }
        guard names.isEmpty else { return }
        for pragma in SQLScriptWriter.numbers {
            let value = try database.executeQuery("PRAGMA \(raw: pragma)").scalar(Int.self) ?? 0
            if value != 0 { try writer.line("PRAGMA \(pragma) = \(value)") }
        }
    }
}
