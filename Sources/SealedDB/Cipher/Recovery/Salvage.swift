/// Writes what is found in a damaged store into a new one.
final class Salvage {
    private let pages: SalvagedPages
    private let trees: SalvagedTrees
    private let encoding: SalvagedEncoding
    private(set) var problems: [String]
    private var virtualTables: [Object] = []
    private(set) var tables: [StoreRecovery.Report.Table] = []
    private(set) var lostCount = 0
    private var lostAndFound: LostAndFound?
    private var isSchemaDamaged = false

    /// An object of the schema, as far as it can be read.
    private struct Object {
        let type, name, table: String
        let root: Int64
        let sql: String?

        init?(_ record: SalvagedRecord, _ encoding: SalvagedEncoding) {
            let values = record.values
            guard values.count == 5, let type = values[0].text(encoding),
                ["table", "index", "view", "trigger"].contains(where: { $0.isSame(as: type) }),
                let name = values[1].text(encoding), let table = values[2].text(encoding),
                values[4].isNull || values[4].text(encoding)?.foldedForSQL.begins(with: "create") == true
            else { return nil }
            (self.type, self.name, self.table) = (type, name, table)
            root = values[3].integer ?? 0
            sql = values[4].text(encoding)
        }
    }

    init(pages: SalvagedPages, problems: [String]) {
        self.pages = pages
        self.problems = problems
        trees = SalvagedTrees(pages)
        encoding = (pages.header.flatMap { SalvagedEncoding(rawValue: LogOverlay.number($0[56..<60])) }) ?? .utf8
    }

    /// - Parameter progress: gets the number of rows that were saved, at most the number of pages.
    func run(
        into target: Connection,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        try prepare(target)
        try target.run("BEGIN IMMEDIATE")
        var objects = try schema()
        if isSchemaDamaged {
            // Leaves of the schema to which nothing leads any more. What else there is comes later.
            _ = try trees.forEachOrphan { _, rows in
                let found = rows.compactMap { Object($0.record, encoding) }
                guard found.count == rows.count else { return false }
                objects += found
                return true
            }
        }
        try createTables(objects, target)
        for object in objects where object.type.isSame(as: "table") && object.root > 0 {
            try save(object, target, progress)
        }
        try saveOrphans(target, progress)
        try createIndexes(objects, target)
        for type in ["view", "trigger"] {
            for object in objects where object.type.isSame(as: type) { try create(object, target) }
        }
        virtualTables = objects.filter { $0.type.isSame(as: "table") && $0.root <= 0 }
        try setNumbers(target)
        lostAndFound?.close()
        try target.run("COMMIT")
    }

    private func prepare(_ target: Connection) throws(DatabaseError) {
        try target.run("PRAGMA encoding = '\(encoding.pragma)'")
        if let header = pages.header, LogOverlay.number(header[52..<56]) > 0 {
            try target.run("PRAGMA auto_vacuum = \(LogOverlay.number(header[64..<68]) > 0 ? 2 : 1)")
        }
        try target.run("PRAGMA foreign_keys = OFF")
        try target.run("PRAGMA ignore_check_constraints = ON")
        // Allows tables with names that SQLite reserves, such as sqlite_stat1.
        try target.run("PRAGMA writable_schema = ON")
    }

    // MARK: Schema

    private func schema() throws(DatabaseError) -> [Object] {
        var objects: [Object] = []
        var unclear = 0
        let losses = try trees.forEachRow(below: 1, isTable: true) { row in
            if let object = Object(row.record, encoding) { objects.append(object) } else { unclear += 1 }
        }
        isSchemaDamaged = !losses.isNone || unclear > 0
        if isSchemaDamaged {
            problems.append(
                "The schema is damaged: the rows of tables that it names no more are in lost_and_found."
            )
        }
        if pages.header == nil { problems.append("Page 1 is damaged: the texts are taken for UTF-8.") }
        return objects
    }

    private func createTables(_ objects: [Object], _ target: Connection) throws(DatabaseError) {
        let stored = objects.filter { $0.type.isSame(as: "table") && $0.root > 0 }
        for table in stored where !table.name.isSame(as: "sqlite_sequence") { try create(table, target) }
        if let sequence = stored.first(where: { $0.name.isSame(as: "sqlite_sequence") }),
            try target.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'") == 0
        {
            try create(sequence, target)
        }
    }

    private func createIndexes(_ objects: [Object], _ target: Connection) throws(DatabaseError) {
        for index in objects where index.type.isSame(as: "index") && index.sql != nil { try create(index, target) }
    }

    private func create(_ object: Object, _ target: Connection) throws(DatabaseError) {
        do throws(DatabaseError) {
            if let sql = object.sql { try target.run(sql) }
        } catch {
            // What SQLite says of the statement itself; anything else, such as a full disk, ends the recovery.
            guard [SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_CORRUPT].contains(error.code) else { throw error }
            problems.append("The \(object.type) \(object.name) could not be made: \(error.message)")
        }
    }

    /// Inserts virtual tables directly into the schema: their SQL would make their tables again.
    func registerVirtualTables(in target: Connection) throws(DatabaseError) {
        try target.run("PRAGMA writable_schema = ON")
        let insertion = try target.prepare(
            """
            INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) SELECT 'table', ?1, ?1, 0, ?2
            WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE)
            """
        )
        defer { insertion.close() }
        for table in virtualTables {
            guard let sql = table.sql, sql.foldedForSQL.begins(with: "create virtual table") else {
                problems.append("The virtual table \(table.name) could not be made: it has no statement of its own.")
                continue
            }
            try insertion.bind(table.name, at: 1)
            try insertion.bind(sql, at: 2)
            _ = try insertion.step()
            insertion.reset()
        }
    }

    func add(problems more: [String]) { problems += more }

    private func setNumbers(_ target: Connection) throws(DatabaseError) {
        guard let header = pages.header else { return }
        for (pragma, offset) in [("user_version", 60), ("application_id", 68)] {
            let value = Int32(truncatingIfNeeded: LogOverlay.number(header[offset..<offset + 4]))
            try target.run("PRAGMA \(pragma) = \(value)")
        }
    }

    // MARK: Rows

    private func save(
        _ object: Object,
        _ target: Connection,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let isSequence = object.name.isSame(as: "sqlite_sequence")
        let table =
            try hasTable(object.name, target)
            ? try RecoveredTable(object.name, in: target, encoding: encoding) : nil
        defer { table?.close() }
        // SQLite has filled it while rows came into the tables before this one.
        if isSequence, table != nil { try target.run("DELETE FROM sqlite_sequence") }
        var (count, misfits) = (0, 0)
        let losses = try trees.forEachRow(below: object.root, isTable: table?.hasRowIDs ?? true) {
            row throws(DatabaseError) in
            if try table?.insert(row) ?? false {
                count += 1
            } else {
                try keep(row, root: object.root, target)
                misfits += 1
            }
            if (count + misfits).isMultiple(of: 1000) { try progress(row.page) }
        }
        if misfits > 0 {
            problems.append("\(misfits) rows of \(object.name) do not fit the table, and are in lost_and_found.")
        }
        guard table != nil, !isSequence || !losses.isNone else { return }
        tables.append(
            .init(name: object.name, rowCount: count, lostPages: losses.pages.sorted(), brokenRowCount: losses.rows)
        )
    }

    private func hasTable(_ name: String, _ target: Connection) throws(DatabaseError) -> Bool {
        let statement = try target.prepare("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?")
        defer { statement.close() }
        try statement.bind(name, at: 1)
        return try statement.step()
    }

    private func saveOrphans(
        _ target: Connection,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let losses = try trees.forEachOrphan { page, rows throws(DatabaseError) in
            for row in rows { try keep(row, root: nil, target) }
            try progress(page)
            return true
        }
        if losses.rows > 0 { problems.append("\(losses.rows) rows of unknown tables are not whole, and are lost.") }
    }

    private func keep(_ row: SalvagedTrees.Row, root: Int64?, _ target: Connection) throws(DatabaseError) {
        if lostAndFound == nil { lostAndFound = try LostAndFound(in: target, encoding: encoding) }
        try lostAndFound?.insert(row, root: root)
        lostCount += 1
    }
}

/// The table of rows whose place is not known.
final class LostAndFound {
    private let target: Connection
    private let encoding: SalvagedEncoding
    private let name: String
    private var columnCount = 0
    private var insertions: [Int: Statement] = [:]

    init(in target: Connection, encoding: SalvagedEncoding) throws(DatabaseError) {
        (self.target, self.encoding) = (target, encoding)
        var name = "lost_and_found"
        var number = 0
        // The store may have a table of this name, as one that was recovered before has.
        while try target.integer("SELECT count(*) FROM sqlite_schema WHERE name = '\(name)' COLLATE NOCASE") != 0 {
            name = "lost_and_found_\(number)"
            number += 1
        }
        self.name = name
        try target.run("CREATE TABLE \(name) (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER)")
    }

    func close() {
        for insertion in insertions.values { insertion.close() }
        insertions = [:]
    }

    func insert(_ row: SalvagedTrees.Row, root: Int64?) throws(DatabaseError) {
        // A table has at most 2000 columns. No row of a store has more. https://www.sqlite.org/limits.html#max_column
        let values = row.record.values.prefix(1990)
        while columnCount < values.count {
            try target.run("ALTER TABLE \(name) ADD COLUMN c\(columnCount)")
            columnCount += 1
        }
        let insertion = try insertion(of: values.count)
        if let root { try insertion.bind(root, at: 1) } else { try insertion.bindNull(at: 1) }
        try insertion.bind(row.page, at: 2)
        try insertion.bind(Int64(values.count), at: 3)
        try insertion.bind(row.rowID, at: 4)
        for (index, value) in values.enumerated() {
            try value.bind(to: insertion, at: Int32(index + 5), encoding: encoding)
        }
        _ = try insertion.step()
        insertion.reset()
    }

    private func insertion(of count: Int) throws(DatabaseError) -> Statement {
        if let insertion = insertions[count] { return insertion }
        let names = ["rootpgno", "pgno", "nfield", "id"] + (0..<count).map { "c\($0)" }
        let marks = [String](repeating: "?", count: names.count).joined(separator: ", ")
        let insertion = try target.prepare("INSERT INTO \(name) (\(names.joined(separator: ", "))) VALUES (\(marks))")
        insertions[count] = insertion
        return insertion
    }
}
