/// Copies a database row by row. Source and target may be encrypted in different ways, or be plaintext.
///
/// All other ways have pitfalls. Between different page sizes, the backup API and VACUUM INTO report success and write
/// heap memory and plaintext. VACUUM INTO always gives the copy SQLCipher's default settings. `sqlcipher_export` loses
/// `user_version`, `application_id`, row ids and the encoding. This code treats the schema as VACUUM does, with two
/// connections that were each keyed in the usual way. <https://www.sqlite.org/lang_vacuum.html>
struct RowCopy {
    let source: Connection
    /// An empty database that does not have its first page yet.
    let target: Connection
    /// What the source shows, for the target's connection to read as well. SQLite then moves the rows by itself, where it can
    /// as records that are not taken apart. `nil` if only the source's own connection reads it, as in memory.
    var served: ServedFile?

    /// The schema under which the target's connection has the source.
    private static let schema = "source"

    /// - Returns: the ``ContentDigest`` of what was read; `nil` if not all rows came through the source's connection.
    func run(progress: (_ targetPages: Int64) throws(DatabaseError) -> Void) throws(DatabaseError) -> [UInt8]? {
        guard served == nil else { return try copyAll(progress) }
        var pages: Int64 = 0
        return try source.snapshot { () throws(DatabaseError) in
            // A thousand large rows take long.
            try source.whileReading { _ throws(DatabaseError) in
                try progress(pages)
            } _: { () throws(DatabaseError) in
                try copyAll { written throws(DatabaseError) in
                    pages = written
                    try progress(written)
                }
            }
        }
    }

    private func copyAll(_ progress: (Int64) throws(DatabaseError) -> Void) throws(DatabaseError) -> [UInt8]? {
        try prepareTarget()
        var hasKey = false
        if Engine.isEncrypting { hasKey = try target.text("PRAGMA cipher_provider") != nil }
        if let served {
            try served.attach(to: target, as: RowCopy.schema, hasKey: hasKey)
            // What serves the pages can end the copy only when it is asked for one, also within a large record.
            try target.run("PRAGMA \(RowCopy.schema.quotedIdentifier).cache_size = 0")
        }
        try target.run("BEGIN IMMEDIATE")
        let objects = try schema()
        try create(objects)
        try keepSchema()
        var digest = try served == nil ? ContentDigest(of: source) : nil
        try digest?.addSchema(of: source)
        for table in try TableLayout.all(of: source) {
            try digest?.begin(table)
            // Inserting into the tables before this one, which are all others, has filled sqlite_sequence. Its rows in the
            // source may differ, so start again.
            if table.name == "sqlite_sequence" { try target.run("DELETE FROM main.sqlite_sequence") }
            if served != nil, let transfer = try table.transfer(from: RowCopy.schema, of: source) {
                try target.run(transfer)
            } else {
                try copy(table, &digest, progress)
            }
        }
        try registerOthers()
        for pragma in ["user_version", "application_id"] {
            try target.run("PRAGMA main.\(pragma) = \(try source.integer("PRAGMA \(pragma)") ?? 0)")
        }
        try target.run("COMMIT")
        if served != nil {
            try target.unguarded { () throws(DatabaseError) in
                try target.run("DETACH \(RowCopy.schema.quotedIdentifier)")
            }
        }
        return try digest?.value()
    }

    /// Sets what cannot be changed once the target has pages.
    private func prepareTarget() throws(DatabaseError) {
        try target.run("PRAGMA encoding = '\(try source.text("PRAGMA encoding") ?? "UTF-8")'")
        try target.run("PRAGMA auto_vacuum = \(try source.integer("PRAGMA auto_vacuum") ?? 0)")
        try target.run("PRAGMA foreign_keys = OFF")
        // What SQLite sorts is plaintext.
        try target.run("PRAGMA temp_store = MEMORY")
        // Rows that are older than a CHECK constraint may violate it. They are copied too.
        try target.run("PRAGMA ignore_check_constraints = ON")
        // Allows tables with names that SQLite reserves, such as sqlite_stat1.
        try target.run("PRAGMA writable_schema = ON")
    }

    private struct SchemaObject {
        let type: String
        let name: String
        let isStored: Bool
        /// The bytes, which need not be UTF-8; `nil` for indexes that belong to a constraint.
        let sql: [UInt8]?
    }

    private func schema() throws(DatabaseError) -> [SchemaObject] {
        let rows = try source.prepare("SELECT type, name, rootpage, sql FROM sqlite_schema ORDER BY rowid")
        defer { rows.close() }
        var result: [SchemaObject] = []
        while try rows.step() {
            result.append(
                SchemaObject(
                    type: rows.text(at: 0) ?? "",
                    name: rows.text(at: 1) ?? "",
                    isStored: rows.int64(at: 2) > 0,
                    sql: rows.withBytes(at: 3) { Array($0) }
                )
            )
        }
        return result
    }

    /// Creates the tables and then the indexes. sqlite_sequence comes last of the tables, because SQLite creates it
    /// with the first AUTOINCREMENT table.
    private func create(_ objects: [SchemaObject]) throws(DatabaseError) {
        let tables = objects.filter { $0.type == "table" && $0.isStored }
        for table in tables where table.name != "sqlite_sequence" { try create(table) }
        if let sequence = tables.first(where: { $0.name == "sqlite_sequence" })?.sql,
            try target.integer("SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'") == 0
        {
            try target.run(sequence)
        }
        for index in objects where index.type == "index" { try create(index) }
        let isUTF16 = try source.text("PRAGMA encoding") != "UTF-8"
        guard tables.isEmpty, !objects.isEmpty || isUTF16 else { return }
        // With the first object that SQLite makes, it writes the encoding of all texts. The others are registered.
        try target.run("CREATE VIEW main.first AS SELECT 1")
        try target.run("DROP VIEW main.first")
    }

    private func create(_ object: SchemaObject) throws(DatabaseError) {
        // SQLite reads a schema up to the first NUL.
        guard let sql = object.sql.map({ Array($0.prefix { $0 != 0 }) }) else { return }
        do throws(DatabaseError) {
            try target.run(sql)
        } catch {
            guard error.code == SQLITE_ERROR else { throw error }
            throw error.adding(
                context: """
                    The \(object.type) \(object.name) cannot be made in the new file. It can have only what SQLite itself knows: no \
                    collation or function of a program, and no expression that fails. Drop what names them, and have that \
                    program make it again in the new file
                    """
            )
        }
    }

    private func copy(
        _ table: TableLayout,
        _ digest: inout ContentDigest?,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let rows = try table.rows(of: source)
        defer { rows.close() }
        let insertion = try target.prepare(table.insertion())
        defer { insertion.close() }
        let pageCount = try target.prepare("PRAGMA page_count")
        defer { pageCount.close() }
        let isUTF16 = try source.text("PRAGMA encoding") != "UTF-8"
        var count = 0
        try source.holdingMutex { () throws(DatabaseError) in
            while try rows.step() {
                var index: Int32 = 0
                for part in rows.parts {
                    for column in 0..<part.columnCount {
                        index += 1
                        try insertion.bind(column: column, of: part, at: index, isUTF16: isUTF16)
                    }
                }
                _ = try insertion.step()
                insertion.reset()
                // Only after the values are bound, because reading a text converts it in place.
                try digest?.add(rows)
                count += 1
                if count.isMultiple(of: 1000) {
                    _ = try pageCount.step()
                    try progress(pageCount.int64(at: 0))
                    pageCount.reset()
                }
            }
        }
    }

    /// Writes what the source's schema says of the objects that were made, as it stands there. SQLite has written it in a form of
    /// its own, and another program may have written it otherwise. It was made of the same text, so it means the same.
    private func keepSchema() throws(DatabaseError) {
        let isUTF16 = try source.text("PRAGMA encoding") != "UTF-8"
        let rows = try source.prepare("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema ORDER BY rowid")
        defer { rows.close() }
        let change = try target.prepare(
            """
            UPDATE main.sqlite_schema SET name = ?2, tbl_name = ?3, sql = ?4
            WHERE type IS ?1 AND name = ?2 COLLATE NOCASE AND (name, tbl_name, sql) IS NOT (?2, ?3, ?4)
            """
        )
        defer { change.close() }
        let count = try target.prepare(
            "SELECT count(*) FROM main.sqlite_schema WHERE (type, name, tbl_name, sql) IS (?1, ?2, ?3, ?4)"
        )
        defer { count.close() }
        while try rows.step() {
            guard rows.int64(at: 4) > 0 else { continue }
            for column in 0..<4 as Range<Int32> {
                try change.bind(column: column, of: rows, at: column + 1, isUTF16: isUTF16)
                try count.bind(column: column, of: rows, at: column + 1, isUTF16: isUTF16)
            }
            _ = try change.step()
            change.reset()
            _ = try count.step()
            let isKept = count.int64(at: 0) == 1
            count.reset()
            guard !isKept else { continue }
            let (type, name) = (rows.text(at: 0) ?? "object", rows.text(at: 1) ?? "")
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                message: """
                    The \(type) \(name) cannot be made in the new file as it stands in the schema of the source: its statement makes \
                    something else. The new file was discarded, and the source is as it was. Make \(name) anew in the source, with \
                    its rows, and try again.
                    """
            )
        }
    }

    /// Inserts views, triggers and virtual tables directly into the schema. If their SQL were run, triggers would fire,
    /// virtual tables would create their tables again, and broken views would be refused. The values are copied as they are,
    /// because a text need not be valid.
    private func registerOthers() throws(DatabaseError) {
        let isUTF16 = try source.text("PRAGMA encoding") != "UTF-8"
        let rows = try source.prepare("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema ORDER BY rowid")
        defer { rows.close() }
        let insertion = try target.prepare(
            "INSERT INTO main.sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)"
        )
        defer { insertion.close() }
        while try rows.step() {
            guard rows.int64(at: 4) <= 0, rows.text(at: 0) != "index" else { continue }
            for column in 0..<4 as Range<Int32> {
                try insertion.bind(column: column, of: rows, at: column + 1, isUTF16: isUTF16)
            }
            _ = try insertion.step()
            insertion.reset()
        }
    }
}

extension Connection {
    /// Runs a statement of a schema to its end, whose texts need not be UTF-8.
    fileprivate func run(_ sql: [UInt8]) throws(DatabaseError) {
        let statement = try sql.withUnsafeBufferPointer { bytes throws(DatabaseError) in try prepare(bytes, from: 0).0 }
        defer { statement.close() }
        while try statement.step() {}
    }
}
