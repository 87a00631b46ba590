/// Writes what is found in a damaged store into a new one.
final class Salvage {
    private let pages: SalvagedPages
    private let trees: SalvagedTrees
    private var encoding = SalvagedEncoding.utf8
    private(set) var problems: [String]
    private var virtualTables: [SalvagedObject] = []
    private(set) var tables: [StoreRecovery.Report.Table] = []
    private(set) var lostCount = 0
    private var lostAndFound: LostAndFound?
    private var isSchemaDamaged = false
    /// Whether rows may be missing that stand in trees of indexes.
    private var misses = false

    init(pages: SalvagedPages, problems: [String]) throws(DatabaseError) {
        self.pages = pages
        self.problems = problems
        trees = try SalvagedTrees(pages)
    }

    /// - Parameter progress: gets the number of rows that were saved, at most the number of pages.
    func run(
        into target: Connection,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        encoding = try textEncoding()
        try prepare(target)
        try target.run("BEGIN IMMEDIATE")
        var objects = try schema()
        if isSchemaDamaged { objects += try orphanedSchema(encoding, isTaken: true) }
        try createTables(objects, target)
        let tables = objects.filter { $0.type.isSame(as: "table") && $0.root > 0 }
        for object in tables where !object.isSequence { try save(object, target, progress) }
        // SQLite has filled it while rows came into the other tables.
        for object in tables where object.isSequence { try save(object, target, progress) }
        try passIndexes(objects)
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
        if let header = pages.header, BigEndian.number(header[52..<56]) > 0 {
            try target.run("PRAGMA auto_vacuum = \(BigEndian.number(header[64..<68]) > 0 ? 2 : 1)")
        }
        try target.run("PRAGMA foreign_keys = OFF")
        try target.run("PRAGMA ignore_check_constraints = ON")
        // Allows tables with names that SQLite reserves, such as sqlite_stat1.
        try target.run("PRAGMA writable_schema = ON")
    }

    // MARK: Schema

    /// How texts are stored. If the header is lost, a page of the schema that nothing leads to tells it.
    private func textEncoding() throws(DatabaseError) -> SalvagedEncoding {
        if let header = pages.header {
            return SalvagedEncoding(rawValue: BigEndian.number(header[56..<60])) ?? .utf8
        }
        for encoding in [SalvagedEncoding.utf8, .utf16LittleEndian, .utf16BigEndian] {
            guard try !orphanedSchema(encoding, isTaken: false).isEmpty else { continue }
            problems.append(
                "Page 1 is damaged. The texts are those of \(encoding.pragma), as in the rest of the schema."
            )
            return encoding
        }
        problems.append("Page 1 is damaged: the texts are taken for UTF-8.")
        return .utf8
    }

    private func schema() throws(DatabaseError) -> [SalvagedObject] {
        var objects: [SalvagedObject] = []
        var unclear = 0
        let losses = try trees.forEachRow(below: 1, isTable: true) { row in
            if let object = SalvagedObject(row.record, encoding) { objects.append(object) } else { unclear += 1 }
        }
        isSchemaDamaged = !losses.isNone || unclear > 0
        if isSchemaDamaged {
            problems.append(
                "The schema is damaged: the rows of tables that it names no more are in lost_and_found."
            )
        }
        return objects
    }

    /// What stands on leaves of the schema to which nothing leads any more.
    private func orphanedSchema(
        _ encoding: SalvagedEncoding,
        isTaken: Bool
    ) throws(DatabaseError) -> [SalvagedObject] {
        var objects: [SalvagedObject] = []
        // Rows of other pages come later.
        _ = try trees.forEachOrphan(takesIndexes: false) { _, rows in
            let found = rows.compactMap { SalvagedObject($0.record, encoding) }
            guard found.count == rows.count else { return false }
            objects += found
            return isTaken
        }
        return objects
    }

    private func createTables(_ objects: [SalvagedObject], _ target: Connection) throws(DatabaseError) {
        let stored = objects.filter { $0.type.isSame(as: "table") && $0.root > 0 }
        for table in stored where !table.isSequence { try create(table, target) }
        if let sequence = stored.first(where: \.isSequence),
            try target.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'") == 0
        {
            try create(sequence, target)
        }
    }

    private func createIndexes(_ objects: [SalvagedObject], _ target: Connection) throws(DatabaseError) {
        for index in objects where index.type.isSame(as: "index") && index.sql != nil { try create(index, target) }
    }

    private func create(_ object: SalvagedObject, _ target: Connection) throws(DatabaseError) {
        guard let statement = object.statement else { return }
        guard object.isPlain else {
            problems.append(
                "The \(object.type) \(object.name) could not be made: its statement is not that of a schema."
            )
            return
        }
        do throws(DatabaseError) {
            try statement.withUnsafeBufferPointer { bytes throws(DatabaseError) in
                let (creation, _) = try target.prepare(bytes, from: 0)
                defer { creation.close() }
                _ = try creation.step()
            }
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
            guard let sql = table.sql, table.isPlain else {
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
            let value = Int32(truncatingIfNeeded: BigEndian.number(header[offset..<offset + 4]))
            try target.run("PRAGMA \(pragma) = \(value)")
        }
    }

    // MARK: Rows

    private func save(
        _ object: SalvagedObject,
        _ target: Connection,
        _ progress: (Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let table =
            try hasTable(object.name, target)
            ? try RecoveredTable(object.name, in: target, encoding: encoding) : nil
        defer { table?.close() }
        if object.isSequence, table != nil { try target.run("DELETE FROM sqlite_sequence") }
        var (count, misfits) = (0, 0)
        let losses = try trees.forEachRow(below: object.root, isTable: table?.hasRowIDs) {
            row throws(DatabaseError) in
            if try table?.insert(row) ?? false {
                count += 1
            } else {
                try keep(row, root: object.root, target)
                misfits += 1
            }
            if (count + misfits).isMultiple(of: 1000) { try progress(row.page) }
        }
        if !losses.isNone, table?.hasRowIDs != true { misses = true }
        if misfits > 0 {
            let (fit, stand) = misfits == 1 ? ("does not fit", "is") : ("do not fit", "are")
            let reason = table == nil ? "" : " \(fit) the table, and"
            problems.append("\(misfits.counted("row")) of \(object.name)\(reason) \(stand) in lost_and_found.")
        }
        guard table != nil else {
            if !losses.isNone { problems.append(Salvage.text(of: losses, object.name)) }
            return
        }
        guard !object.isSequence || !losses.isNone else { return }
        tables.append(
            .init(name: object.name, rowCount: count, lostPages: losses.pages.sorted(), brokenRowCount: losses.rows)
        )
    }

    private static func text(of losses: SalvagedTrees.Losses, _ name: String) -> String {
        let pages = losses.pages.sorted().prefix(10).map(String.init).joined(separator: ", ")
        let rest = losses.pages.count > 10 ? " and others" : ""
        return """
            Of \(name), which could not be made, \(losses.rows.counted("row")) \(losses.rows == 1 ? "is" : "are") not whole\
            \(losses.pages.isEmpty ? "." : ", and what stands below these pages is missing: \(pages)\(rest).")
            """
    }

    /// Walks the indexes, so that their pages are not taken for pages to which nothing leads.
    private func passIndexes(_ objects: [SalvagedObject]) throws(DatabaseError) {
        for index in objects where index.type.isSame(as: "index") && index.root > 0 {
            // Indexes are made anew, so nothing is lost with a page of one.
            _ = try trees.forEachRow(below: index.root, isTable: false) { _ in }
        }
        guard trees.outdatedCount > 0 else { return }
        problems.append(
            """
            Page 1 is that of another state: it counts \(trees.outdatedCount.counted("page")) of tables as free, or not at all. What the schema does not \
            name is in lost_and_found.
            """
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
        let losses = try trees.forEachOrphan(takesIndexes: isSchemaDamaged || misses || trees.isOutdated) {
            page,
            rows throws(DatabaseError) in
            for row in rows { try keep(row, root: nil, target) }
            try progress(page)
            return true
        }
        guard losses.rows > 0 else { return }
        let ends = losses.rows == 1 ? "is not whole, and is lost." : "are not whole, and are lost."
        problems.append("\(losses.rows.counted("row")) of unknown tables \(ends)")
    }

    private func keep(_ row: SalvagedTrees.Row, root: Int64?, _ target: Connection) throws(DatabaseError) {
        if lostAndFound == nil { lostAndFound = try LostAndFound(in: target, encoding: encoding) }
        lostCount += 1
        guard try lostAndFound?.insert(row, root: root) ?? false else { return }
        lostCount += 1
        problems.append(
            "A row of page \(row.page) has \(row.record.values.count) values. The last ones are in a second row of lost_and_found."
        )
    }
}
