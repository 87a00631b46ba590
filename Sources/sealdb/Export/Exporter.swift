import SealedDB

/// Writes what a plan says to PostgreSQL, and compares what has arrived.
struct Exporter {
    struct TableReport: Encodable, Sendable {
        let table: String
        /// "exported", "skipped" (it was there, with the same rows) or "made" (without rows).
        let status: String
        let rowCount: Int64
        /// Of the rows as PostgreSQL sends them; `nil` if none were copied.
        let digest: String?
    }

    let plan: ExportPlan
    let database: Database
    let target: any ExportTarget
    let schemaOnly: Bool
    let resumes: Bool
    let progress: (_ phase: String, _ bytes: Int64) -> Void
    private var reports: [TableReport] = []
    private var schema: String { plan.schema }

    init(
        plan: ExportPlan,
        database: Database,
        target: any ExportTarget,
        schemaOnly: Bool,
        resumes: Bool,
        progress: @escaping (_ phase: String, _ bytes: Int64) -> Void
    ) {
        (self.plan, self.database, self.target) = (plan, database, target)
        (self.schemaOnly, self.resumes, self.progress) = (schemaOnly, resumes, progress)
    }

    /// Runs it all. If it fails, PostgreSQL has nothing of what is not committed.
    mutating func run() throws -> [TableReport] {
        do {
            try resumes ? runByTable() : runAtOnce()
            return reports
        } catch let unknown as CommitUnknown {
            throw Failure(
                .unavailable,
                """
                \(unknown.message) That was while PostgreSQL committed: whether it has what was sent, only a look at schema \
                "\(schema)" tells; there is all of it or nothing\(resumes ? " of the last table" : ""). The store is unchanged.
                """
            )
        } catch let failure as Failure {
            throw Failure(failure.status, "\(failure.message) \(state)")
        }
    }

    /// What there is after a failure.
    private var state: String {
        let stored = reports.filter { $0.status != "skipped" }.count
        guard resumes, stored > 0 else {
            return "PostgreSQL has nothing of this run: all is rolled back. The store is unchanged."
        }
        return
            "\(stored.counted("table")) \(stored == 1 ? "is" : "are") stored whole; the same command goes on after that."
    }

    private mutating func runAtOnce() throws {
        try target.execute("BEGIN")
        try makeSchema()
        try requireAbsent(plan.relationNames)
        var made: [TableReport] = []
        for table in plan.tables { try run(table.creation) }
        var copied: [RowDigest?] = []
        for (index, table) in plan.tables.enumerated() { copied.append(try copy(table, before: sizeBefore(index))) }
        for table in plan.tables { try run(table.completion) }
        for table in plan.tables { try run(table.foreignKeys.map(\.statement)) }
        for (table, sent) in zip(plan.tables, copied) { made.append(try compared(table, sent)) }
        try commit()
        reports = made
    }

    private mutating func runByTable() throws {
        try target.execute("BEGIN")
        try makeSchema()
        try commit()
        for (index, table) in plan.tables.enumerated() {
            try target.execute("BEGIN")
            if try exists(table.source.name) {
                reports.append(try recognized(table, before: sizeBefore(index)))
                try commit()
                continue
            }
            try run(table.creation)
            let sent = try copy(table, before: sizeBefore(index))
            try run(table.completion)
            let report = try compared(table, sent)
            try commit()
            reports.append(report)
        }
        try target.execute("BEGIN")
        for table in plan.tables {
            for key in table.foreignKeys where try !hasConstraint(key.name, of: table.source.name) {
                try run([key.statement])
            }
        }
        try commit()
    }

    private func sizeBefore(_ index: Int) -> Int64 { plan.tables[..<index].reduce(0) { $0 + $1.source.size } }

    private func run(_ statements: [String]) throws {
        for statement in statements {
            try ExportInterruption.check()
            try target.execute(statement)
        }
    }

    private func commit() throws {
        // A store that is read without locks may have changed meanwhile.
        try database.requireStill()
        try ExportInterruption.check()
        try target.commit()
    }

    // MARK: What is there

    private func makeSchema() throws {
        let name = TargetName.literal(schema)
        guard try target.execute("SELECT 1 FROM pg_namespace WHERE nspname = \(name)").isEmpty else { return }
        try target.execute("CREATE SCHEMA \(TargetName.quoted(schema))")
    }

    private func requireAbsent(_ names: Set<String>) throws {
        let found = try target.execute(
            """
            SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE nspname = \(TargetName.literal(schema)) ORDER BY relname COLLATE "C"
            """
        ).compactMap { $0.first ?? nil }.filter { names.contains($0) }
        guard !found.isEmpty else { return }
        let more = found.count > 5 ? " and \(found.count - 5) more" : ""
        throw Failure(
            .cannotCreate,
            """
            Schema "\(schema)" has these already: \(found.prefix(5).map { "\"\($0)\"" }.joined(separator: ", "))\(more). \
            Remove them, name another --schema, or go on with an export that was begun with --resume.
            """
        )
    }

    private func exists(_ table: String) throws -> Bool {
        try !target.execute("SELECT 1 FROM \(relation(table))").isEmpty
    }

    private func relation(_ table: String) -> String {
        """
        pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE nspname = \(TargetName.literal(schema)) AND relname = \(TargetName.literal(table))
        """
    }

    private func hasConstraint(_ name: String, of table: String) throws -> Bool {
        try !target.execute(
            """
            SELECT 1 FROM pg_constraint WHERE conname = \(TargetName.literal(name))
            AND conrelid = (SELECT c.oid FROM \(relation(table)))
            """
        ).isEmpty
    }

    /// A table that is there is skipped if it holds just what the store holds.
    private func recognized(_ table: ExportPlan.Table, before: Int64) throws -> TableReport {
        let name = table.source.name
        let different = Failure(
            .cannotCreate,
            "Table \"\(name)\" of schema \"\(schema)\" is there, and is another one than the store's. Remove it, or name another --schema."
        )
        let columns = try target.execute(
            """
            SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = (SELECT c.oid FROM \(relation(name)) AND relkind = 'r') AND attnum > 0 AND NOT attisdropped
            ORDER BY attnum
            """
        )
        guard columns == table.source.columns.map({ [$0.name, $0.type.name] }) else { throw different }
        if schemaOnly { return TableReport(table: name, status: "skipped", rowCount: 0, digest: nil) }
        let own = try digest(of: table, before: before) { _ in }
        guard try digestThere(of: table) == own else { throw different }
        return TableReport(table: name, status: "skipped", rowCount: own.count, digest: own.text)
    }

    // MARK: Rows

    private func list(_ table: ExportPlan.Table) -> String {
        let columns = table.source.columns.map { TargetName.quoted($0.name) }.joined(separator: ", ")
        return "\(plan.qualified(table.source.name)) (\(columns))"
    }

    /// Copies the rows of a table.
    /// - Returns: the digest of what was sent; `nil` if rows are not wanted.
    private func copy(_ table: ExportPlan.Table, before: Int64) throws -> RowDigest? {
        guard !schemaOnly else { return nil }
        var sent = RowDigest()
        try target.copyIn("COPY \(list(table)) FROM STDIN (FORMAT binary)") { send in
            try CopiedRow.header.withUnsafeBytes { try send($0) }
            let buffer = ByteBuffer(capacity: 1 << 17)
            sent = try digest(of: table, before: before) { row in
                buffer.add(row)
                guard buffer.count >= 1 << 16 else { return }
                try send(buffer.bytes)
                buffer.removeAll()
            }
            CopiedRow.trailer.withUnsafeBytes { buffer.add($0) }
            try send(buffer.bytes)
        }
        return sent
    }

    /// Reads a table of the store, and returns the digest of its rows as PostgreSQL has them.
    private func digest(
        of table: ExportPlan.Table,
        before: Int64,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> RowDigest {
        let types = table.source.columns.map(\.type)
        let row = ByteBuffer(capacity: 4096)
        var (digest, size) = (RowDigest(), before)
        try table.source.forEachRow(in: database) { place, values in
            row.removeAll()
            CopiedRow.begin(values.count, in: row)
            for (value, type) in zip(values, types) {
                size += value.size
                // The same rows were read before, within the same transaction.
                guard CopiedRow.add(value, as: type, to: row) else {
                    throw Failure(
                        .software,
                        "\(place.text) of \"\(table.source.name)\" holds another value than before."
                    )
                }
            }
            try digest.add(row.bytes)
            try body(row.bytes)
            progress("copy", size)
        }
        return digest
    }

    private func digestThere(of table: ExportPlan.Table) throws -> RowDigest {
        var (digest, rows) = (RowDigest(), CopiedRows())
        try target.copyOut("COPY \(list(table)) TO STDOUT (FORMAT binary)") { bytes in
            try rows.read(bytes) { try digest.add($0) }
        }
        guard rows.isComplete else {
            throw Failure(.software, "PostgreSQL sent less than all rows of \"\(table.source.name)\".")
        }
        return digest
    }

    private func compared(_ table: ExportPlan.Table, _ sent: RowDigest?) throws -> TableReport {
        let name = table.source.name
        guard let sent else { return TableReport(table: name, status: "made", rowCount: 0, digest: nil) }
        progress("compare", sizeBefore(plan.tables.firstIndex { $0.source.name.isSame(as: name) } ?? 0))
        let there = try digestThere(of: table)
        guard there == sent else {
            let what = there.count == sent.count ? "other rows than" : "\(there.count.counted("row")) instead of"
            throw Failure(.software, "Table \"\(name)\" of PostgreSQL has \(what) the \(sent.count) that were sent.")
        }
        return TableReport(table: name, status: "exported", rowCount: sent.count, digest: sent.text)
    }
}
