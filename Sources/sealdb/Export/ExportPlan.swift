import ArgumentParser
import SealedDB

/// Parts of the schema that may be left out.
enum OmittedPart: String, ExpressibleByArgument, CaseIterable {
    case foreignKeys = "foreign-keys"
    case indexes, checks, defaults
}

/// What becomes of a store in PostgreSQL: the statements for each table, what is not taken, and what stands in the way.
struct ExportPlan {
    /// A part of the store that PostgreSQL does not get.
    struct NotTaken: Encodable, Sendable {
        let object: String
        let name: String
        let reason: String

        var text: String { "\(object) \"\(name)\": \(reason)" }
    }

    struct Table {
        var source: ExportedTable
        /// Make the table.
        var creation: [String] = []
        /// Add its keys, indexes and sequence, when the rows are there.
        var completion: [String] = []
        /// By the names of the constraints.
        var foreignKeys: [(name: String, statement: String)] = []
    }

    /// The schema of PostgreSQL.
    let schema: String
    private(set) var tables: [Table] = []
    private(set) var notTaken: [NotTaken] = []
    /// What has to be changed, or allowed by an option, before anything is done.
    private(set) var problems: [String] = []
    /// Every name of a relation that will be made.
    private(set) var relationNames: Set<String> = []
    private let omitted: Set<OmittedPart>
    private let widens: Bool
    private let database: Database

    /// Reads the schema and all rows, which tell what the columns hold. Call it within a transaction.
    init(
        of database: Database,
        tables names: [String],
        schema: String,
        omitted: Set<OmittedPart>,
        widens: Bool,
        progress: (_ bytes: Int64) -> Void
    ) throws {
        (self.database, self.schema, self.omitted, self.widens) = (database, schema, omitted, widens)
        let objects = try SchemaObject.those(of: names, in: SchemaObject.all(of: database))
        if !names.isEmpty, let other = objects.first(where: { [.virtualTable, .view].contains($0.kind) }) {
            throw Failure(
                .data,
                "\"\(other.name)\" is a \(other.kind == .view ? "view" : "virtual table"), and is not exported. Nothing was done."
            )
        }
        for object in objects { try noteIfNotTaken(object) }
        var size: Int64 = 0
        for object in objects where object.kind == .table {
            var table = try ExportedTable(object, in: database)
            let contents = try table.examine(in: database) { progress(size + $0) }
            size += table.size
            choose(contents, for: &table)
            tables.append(Table(source: table))
        }
        for table in tables { requireNames(table.source, objects) }
        relationNames = Set(tables.map(\.source.name))
        guard !omitted.contains(.indexes) else { return }
        relationNames.formUnion(tables.flatMap { $0.source.indexes }.filter { $0.origin == "c" }.map(\.name))
    }

    /// Of all tables, as `ExportedTable` counts it.
    var size: Int64 { tables.reduce(0) { $0 + $1.source.size } }

    private mutating func noteIfNotTaken(_ object: SchemaObject) throws {
        switch object.kind {
        case .view: note("view", object.name, "its SQL is SQLite's")
        case .trigger: note("trigger", object.name, "its SQL is SQLite's")
        case .virtualTable:
            let module = object.virtualTable?.module ?? "?"
            note(
                "virtual table",
                object.name,
                "PostgreSQL has no module \(module); neither are its shadow tables taken"
            )
        case .shadowTable, .table, .index: break
        }
    }

    private mutating func note(_ object: String, _ name: String, _ reason: String) {
        notTaken.append(NotTaken(object: object, name: name, reason: reason))
    }

    // MARK: Types

    private mutating func choose(_ contents: [ColumnContents], for table: inout ExportedTable) {
        for index in table.columns.indices {
            let column = table.columns[index]
            let choice = contents[index].choice()
            table.columns[index].type = choice.type
            let place = "table \"\(table.name)\", column \"\(column.name)\""
            if let misfit = choice.misfit {
                let declared = column.declared.isEmpty ? "without a type" : column.declared
                let text =
                    "\(place) (\(declared)): \(misfit.place.text) holds \(misfit.kind.noun), and \(misfit.wanted.name) does not"
                if widens {
                    note("type", "\(table.name).\(column.name)", "\(text); it is \(choice.type.name)")
                } else {
                    problems.append("\(text). With --widen the column becomes \(choice.type.name).")
                }
            }
            if let remark = choice.remark { note("type", "\(table.name).\(column.name)", remark) }
            let isKey = table.primaryKey.contains { ExactText(name: $0) == ExactText(name: column.name) }
            table.columns[index].mayBeNull = !(column.isNotNull || isKey)
            if column.isNotNull || isKey, let null = contents[index].firstPlace(of: .null) {
                let what = isKey ? "PRIMARY KEY" : "NOT NULL"
                if widens {
                    table.columns[index].mayBeNull = true
                    note("constraint", "\(table.name).\(column.name)", "\(what): \(null.text) holds NULL")
                } else {
                    problems.append(
                        "\(place) (\(what)): \(null.text) holds NULL. With --widen the constraint is left out."
                    )
                }
            }
            if column.isGenerated {
                let text = table.text.expressions[ExactText(name: column.name)].map { SQLPart.text(of: $0) } ?? "?"
                note(
                    "expression",
                    "\(table.name).\(column.name)",
                    "its values are taken, but not how they are made: \(text)"
                )
            }
        }
    }

    private mutating func requireNames(_ table: ExportedTable, _ objects: [SchemaObject]) {
        func check(_ what: String, _ name: String) {
            guard let problem = TargetName.problem(of: name) else { return }
            problems.append("\(what) \"\(name)\" \(problem). Rename it in the store first, with ALTER TABLE … RENAME.")
        }
        check("table", table.name)
        for column in table.columns {
            check("table \"\(table.name)\", column", column.name)
            if TargetName.systemColumns.contains(column.name) {
                problems.append(
                    """
                    table "\(table.name)", column "\(column.name)": every table of PostgreSQL has a column of this name. Rename it in \
                    the store first.
                    """
                )
            }
        }
        for index in table.indexes where index.origin == "c" && !omitted.contains(.indexes) {
            check("index", index.name)
        }
        if table.columns.count > 1600 {
            problems.append("table \"\(table.name)\" has \(table.columns.count) columns, and PostgreSQL takes 1600.")
        }
    }

    // MARK: Statements

    /// Makes the statements, and finds what stands in the way of them.
    mutating func makeStatements() throws {
        var names = relationNames
        for place in tables.indices {
            let table = tables[place].source
            tables[place].creation = [creation(of: table)]
            tables[place].completion = try completion(of: table, &names)
            if !omitted.contains(.foreignKeys) { tables[place].foreignKeys = try foreignKeys(of: table) }
        }
        relationNames = names
    }

    func qualified(_ name: String) -> String { "\(TargetName.quoted(schema)).\(TargetName.quoted(name))" }

    private mutating func creation(of table: ExportedTable) -> String {
        var lines: [String] = []
        for column in table.columns {
            var line = "\(TargetName.quoted(column.name)) \(column.type.name)"
            if let text = column.defaultText, !column.isGenerated {
                if omitted.contains(.defaults) {
                    note("default", "\(table.name).\(column.name)", "left out as asked for: \(text)")
                } else if let value = ColumnDefault.translated(text, as: column.type) {
                    line += " DEFAULT \(value)"
                } else {
                    note("default", "\(table.name).\(column.name)", "PostgreSQL may read it otherwise: \(text)")
                }
            }
            if !column.mayBeNull { line += " NOT NULL" }
            if let collation = table.text.collations[ExactText(name: column.name)], !collation.isSame(as: "binary") {
                note(
                    "collation",
                    "\(table.name).\(column.name)",
                    "COLLATE \(collation): PostgreSQL compares byte by byte"
                )
            }
            lines.append(line)
        }
        let columns = table.expressionColumns
        for check in table.text.checks {
            let text = SQLPart.text(of: check)
            if omitted.contains(.checks) {
                note("check", table.name, "left out as asked for: \(text)")
            } else if let condition = PortableExpression.condition(check, columns: columns) {
                lines.append("CHECK (\(condition))")
            } else {
                note("check", table.name, "PostgreSQL may read it otherwise: \(text)")
            }
        }
        if table.text.hasConflictClause { note("clause", table.name, "ON CONFLICT: PostgreSQL has it in INSERT alone") }
        return "CREATE TABLE \(qualified(table.name)) (\n    \(lines.joined(separator: ",\n    "))\n)"
    }

    private mutating func completion(
        of table: ExportedTable,

        _ names: inout Set<String>
    ) throws -> [String] {
        let target = qualified(table.name)
        var statements: [String] = []
        func list(_ columns: [String]) -> String { columns.map { TargetName.quoted($0) }.joined(separator: ", ") }
        if !table.primaryKey.isEmpty {
            let isWhole = table.primaryKey.allSatisfy { table.column($0)?.mayBeNull == false }
            let name = TargetName.free(table.name, "_pkey", taken: &names)
            statements.append(
                """
                ALTER TABLE \(target) ADD CONSTRAINT \(TargetName.quoted(name)) \(isWhole ? "PRIMARY KEY" : "UNIQUE") \
                (\(list(table.primaryKey.map { table.column($0)?.name ?? $0 })))
                """
            )
        }
        for index in table.indexes where index.origin != "pk" {
            if let statement = try statement(for: index, of: table, &names) { statements.append(statement) }
        }
        if let id = table.rowIDColumn, let column = table.column(id) {
            let sequence = TargetName.free("\(table.name)_\(column.name)", "_seq", taken: &names)
            let name = qualified(sequence)
            statements.append(
                """
                ALTER TABLE \(target) ALTER COLUMN \(TargetName.quoted(column.name)) ADD GENERATED BY DEFAULT AS IDENTITY \
                (SEQUENCE NAME \(name))
                """
            )
            if let last = try table.lastRowID(in: database), last > 0 {
                statements.append("SELECT setval(\(TargetName.literal(name)), \(last))")
            }
        }
        return statements
    }

    private mutating func statement(
        for index: ExportedTable.Index,
        of table: ExportedTable,

        _ names: inout Set<String>
    ) throws -> String? {
        let isConstraint = index.origin == "u"
        let kind = isConstraint ? "unique constraint" : index.isUnique ? "unique index" : "index"
        let name = isConstraint ? table.name : index.name
        if !isConstraint, omitted.contains(.indexes) {
            note(kind, name, "left out as asked for")
            return nil
        }
        guard let parts = index.columns else {
            note(kind, name, "it is of an expression, or of the row id")
            return nil
        }
        if let other = parts.first(where: { !$0.collation.isSame(as: "binary") }) {
            let columns = parts.map(\.name).joined(separator: ", ")
            note(
                "collation",
                name,
                "COLLATE \(other.collation) of the \(kind) of \(columns): PostgreSQL's compares byte by byte"
            )
        }
        let columns = parts.map { part in
            TargetName.quoted(table.column(part.name)?.name ?? part.name)
                + (part.isDescending && !isConstraint ? " DESC" : "")
        }.joined(separator: ", ")
        let target = qualified(table.name)
        if isConstraint {
            let suffix = "_" + parts.map(\.name).joined(separator: "_")
            let name = TargetName.free(table.name + suffix, "_key", taken: &names)
            return "ALTER TABLE \(target) ADD CONSTRAINT \(TargetName.quoted(name)) UNIQUE (\(columns))"
        }
        var condition = ""
        if index.isPartial {
            guard let text = try self.condition(of: index, table) else {
                note(kind, name, "PostgreSQL may read its condition otherwise")
                return nil
            }
            condition = " WHERE \(text)"
        }
        return
            "CREATE \(index.isUnique ? "UNIQUE " : "")INDEX \(TargetName.quoted(name)) ON \(target) (\(columns))\(condition)"
    }

    /// The condition of a partial index: what follows the WHERE of its statement.
    private func condition(of index: ExportedTable.Index, _ table: ExportedTable) throws -> String? {
        let sql = try database.executeQuery(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = \(index.name)"
        )
        .scalar(String.self)
        let parts = SQLPart.all(of: sql ?? "")
        guard let start = parts.firstIndex(where: { $0.isWord("where") }) else { return nil }
        let columns = table.expressionColumns
        return PortableExpression.condition(Array(parts[(start + 1)...]), columns: columns)
    }

    /// All statements, in an order in which they can be executed.
    var statements: [String] {
        var statements = ["CREATE SCHEMA IF NOT EXISTS \(TargetName.quoted(schema))"]
        for table in tables { statements += table.creation + table.completion }
        for table in tables { statements += table.foreignKeys.map(\.statement) }
        return statements
    }
}

// MARK: Foreign keys

extension ExportPlan {
    private struct ForeignKey {
        let parent: String
        var columns: [(child: String, parent: String?)] = []
        let onUpdate: String
        let onDelete: String
        var deferral = CreateTableText.Deferral()
    }

    private func declared(in table: ExportedTable) throws -> [ForeignKey] {
        let rows = try database.executeQuery("PRAGMA main.foreign_key_list(\(identifier: table.name))")
        defer { rows.close() }
        var keys: [(number: Int32, key: ForeignKey)] = []
        while try rows.nextWithError() {
            let number = rows.int(forColumn: "id")
            if keys.last?.number != number {
                let key = ForeignKey(
                    parent: rows.string(forColumn: "table") ?? "",
                    onUpdate: rows.string(forColumn: "on_update") ?? "",
                    onDelete: rows.string(forColumn: "on_delete") ?? ""
                )
                keys.append((number, key))
            }
            keys[keys.count - 1].key.columns.append(
                (rows.string(forColumn: "from") ?? "", rows.string(forColumn: "to"))
            )
        }
        // The last one that is declared has the number 0.
        var declared = keys.sorted { $0.number > $1.number }.map(\.key)
        guard declared.count == table.text.deferrals.count else { return declared }
        for index in declared.indices { declared[index].deferral = table.text.deferrals[index] }
        return declared
    }

    private mutating func foreignKeys(of table: ExportedTable) throws -> [(String, String)] {
        var statements: [(String, String)] = []
        var names: Set<String> = []
        for key in try declared(in: table) {
            let columns = key.columns.map(\.child).joined(separator: ", ")
            func omit(_ reason: String) { note("foreign key", "\(table.name) (\(columns)) to \(key.parent)", reason) }
            guard
                let parent = tables.first(where: { ExactText(name: $0.source.name) == ExactText(name: key.parent) })?
                    .source
            else {
                omit("that table is not exported")
                continue
            }
            let targets = key.columns.enumerated().map { index, pair in
                pair.parent ?? (index < parent.primaryKey.count ? parent.primaryKey[index] : "")
            }
            let pairs = zip(key.columns.map { table.column($0.child) }, targets.map { parent.column($0) })
                .compactMap { child, target in child.flatMap { child in target.map { (child, $0) } } }
            guard pairs.count == key.columns.count, isKey(targets, of: parent) else {
                omit("what it refers to is no key")
                continue
            }
            guard pairs.allSatisfy({ $0.0.type == $0.1.type }) else {
                omit("the columns are of other types than those that they refer to")
                continue
            }
            guard targets.allSatisfy({ parent.isBinary($0) }) else {
                omit("the key is not compared byte by byte")
                continue
            }
            if let place = try firstOrphan(table, parent, pairs) {
                problems.append(
                    """
                    table "\(table.name)", foreign key (\(columns)): \(place) refers to no row of "\(parent.name)". Repair the store, \
                    or leave out these keys with --without foreign-keys.
                    """
                )
            }
            let name = TargetName.free(
                "\(table.name)_" + key.columns.map(\.child).joined(separator: "_"),
                "_fkey",
                taken: &names
            )
            var statement = """
                ALTER TABLE \(qualified(table.name)) ADD CONSTRAINT \(TargetName.quoted(name)) FOREIGN KEY \
                (\(pairs.map { TargetName.quoted($0.0.name) }.joined(separator: ", "))) REFERENCES \
                \(qualified(parent.name)) (\(pairs.map { TargetName.quoted($0.1.name) }.joined(separator: ", ")))
                """
            for (event, action) in [("UPDATE", key.onUpdate), ("DELETE", key.onDelete)] where action != "NO ACTION" {
                statement += " ON \(event) \(action)"
            }
            if key.deferral.isDeferrable {
                statement += " DEFERRABLE" + (key.deferral.isInitiallyDeferred ? " INITIALLY DEFERRED" : "")
            }
            statements.append((name, statement))
        }
        return statements
    }

    /// Whether PostgreSQL will have a key of just these columns.
    private func isKey(_ columns: [String], of table: ExportedTable) -> Bool {
        let wanted = Set(columns.map { ExactText(name: $0) })
        if Set(table.primaryKey.map { ExactText(name: $0) }) == wanted { return true }
        return table.indexes.contains { index in
            guard index.isUnique, !index.isPartial, let parts = index.columns,
                index.origin == "u" || !omitted.contains(.indexes)
            else { return false }
            return Set(parts.map { ExactText(name: $0.name) }) == wanted
        }
    }

    /// The first row that refers to none, as SQLite compares them.
    private func firstOrphan(
        _ table: ExportedTable,
        _ parent: ExportedTable,
        _ pairs: [(ExportedTable.Column, ExportedTable.Column)]
    ) throws -> String? {
        let present = pairs.map { "c.\(SQLLiteral.name($0.0.name)) IS NOT NULL" }.joined(separator: " AND ")
        let same = pairs.map { "p.\(SQLLiteral.name($0.1.name)) = c.\(SQLLiteral.name($0.0.name))" }
            .joined(separator: " AND ")
        let id = try TableContents(table.name, in: database).rowID.map { "c.\(SQLLiteral.name($0))" } ?? "NULL"
        let rows = try database.executeQuery(
            SQL(
                raw: """
                    SELECT \(id) FROM main.\(SQLLiteral.name(table.name)) AS c WHERE \(present) AND NOT EXISTS \
                    (SELECT 1 FROM main.\(SQLLiteral.name(parent.name)) AS p WHERE \(same)) LIMIT 1
                    """
            )
        )
        defer { rows.close() }
        guard try rows.nextWithError() else { return nil }
        guard case .integer(let id) = rows.heldValue(forColumnIndex: 0) else { return "a row" }
        return "row id \(id)"
    }
}
