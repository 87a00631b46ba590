import SealedDB

/// A table of the store, and what it becomes.
struct ExportedTable {
    struct Column {
        let name: String
        let declared: String
        let isNotNull: Bool
        let defaultText: String?
        let isGenerated: Bool
        var type: TargetType = .text
        var mayBeNull = true
    }

    struct Index {
        let name: String
        let isUnique: Bool
        /// "c" for CREATE INDEX, "u" for UNIQUE, "pk" for PRIMARY KEY.
        let origin: String
        let isPartial: Bool
        /// `nil` for an expression or the row id.
        let columns: [(name: String, collation: String, isDescending: Bool)]?
    }

    let name: String
    let object: SchemaObject
    let text: CreateTableText
    var columns: [Column] = []
    /// In its order.
    private(set) var primaryKey: [String] = []
    /// The column that is the row id.
    let rowIDColumn: String?
    private(set) var indexes: [Index] = []
    private(set) var rowCount: Int64 = 0
    private(set) var size: Int64 = 0
    private let hasRowID: Bool
    private let rowIDName: String?
    private let encoding: TextEncoding

    init(_ object: SchemaObject, in database: Database) throws {
        self.object = object
        name = object.name
        text = CreateTableText(try object.statement())
        encoding = try TextEncoding(of: database)
        let list = try database.executeQuery("PRAGMA main.table_list(\(identifier: name))")
        defer { list.close() }
        var hasRowID = true
        while try list.nextWithError() {
            if list.string(forColumn: "schema") == "main" { hasRowID = !list.bool(forColumn: "wr") }
        }
        self.hasRowID = hasRowID
        let rows = try database.executeQuery("PRAGMA main.table_xinfo(\(identifier: name))")
        defer { rows.close() }
        var keys: [(place: Int32, name: String)] = []
        while try rows.nextWithError() {
            let column = Column(
                name: rows.string(forColumn: "name") ?? "",
                declared: rows.string(forColumn: "type") ?? "",
                isNotNull: rows.bool(forColumn: "notnull"),
                defaultText: rows.string(forColumn: "dflt_value"),
                isGenerated: rows.int(forColumn: "hidden") > 1
            )
            columns.append(column)
            if rows.int(forColumn: "pk") > 0 { keys.append((rows.int(forColumn: "pk"), column.name)) }
        }
        primaryKey = keys.sorted { $0.place < $1.place }.map(\.name)
        let contents = try TableContents(name, in: database)
        rowIDName = contents.rowID
        // Where a column shows the row id, its name is that of the column.
        rowIDColumn = contents.rowID.flatMap { id in keys.count == 1 && keys[0].name.isSame(as: id) ? id : nil }
        indexes = try ExportedTable.indexes(of: name, in: database)
    }

    private static func indexes(of table: String, in database: Database) throws -> [Index] {
        let rows = try database.executeQuery("PRAGMA main.index_list(\(identifier: table))")
        defer { rows.close() }
        var indexes: [Index] = []
        while try rows.nextWithError() {
            let name = rows.string(forColumn: "name") ?? ""
            let parts = try database.executeQuery("PRAGMA main.index_xinfo(\(identifier: name))")
            defer { parts.close() }
            var columns: [(String, String, Bool)]? = []
            while try parts.nextWithError() {
                guard parts.bool(forColumn: "key") else { continue }
                if parts.int(forColumn: "cid") < 0 { columns = nil }
                columns?.append(
                    (
                        parts.string(forColumn: "name") ?? "",
                        (parts.string(forColumn: "coll") ?? "").foldedForSQL, parts.bool(forColumn: "desc")
                    )
                )
            }
            indexes.append(
                Index(
                    name: name,
                    isUnique: rows.bool(forColumn: "unique"),
                    origin: rows.string(forColumn: "origin") ?? "",
                    isPartial: rows.bool(forColumn: "partial"),
                    columns: columns
                )
            )
        }
        // The last one that was made comes first.
        return indexes.reversed()
    }

    func column(_ name: String) -> Column? {
        let name = ExactText(name: name)
        return columns.first { ExactText(name: $0.name) == name }
    }

    func isBinary(_ column: String) -> Bool {
        (text.collations[ExactText(name: column)] ?? "binary").isSame(as: "binary")
    }

    /// The columns as expressions see them, by their names.
    var expressionColumns: [ExactText: PortableExpression.Column] {
        var found: [ExactText: PortableExpression.Column] = [:]
        for column in columns {
            found[ExactText(name: column.name)] = .init(
                name: column.name,
                type: column.type,
                isBinary: isBinary(column.name)
            )
        }
        return found
    }

    // MARK: Rows

    /// Selects the row id, if there is one, the columns, and the bytes of texts where SQLite would repair them. From the table
    /// itself: a damaged index could leave out rows.
    private var query: String {
        let names = columns.map { SQLLiteral.name($0.name) }
        let bytes = encoding.isUTF8 ? [] : names.map { "CASE typeof(\($0)) WHEN 'text' THEN CAST(\($0) AS BLOB) END" }
        let first = rowIDName.map { [SQLLiteral.name($0)] } ?? ["NULL"]
        return
            "SELECT \((first + names + bytes).joined(separator: ", ")) FROM main.\(SQLLiteral.name(name)) NOT INDEXED"
    }

    /// Calls `body` with the values of each row, which are valid until it returns.
    func forEachRow(in database: Database, _ body: (RowPlace, [ExportedValue]) throws -> Void) throws {
        let rows = try database.executeQuery(SQL(raw: query))
        defer { rows.close() }
        var number: Int64 = 0
        var values: [ExportedValue] = []
        let count = Int32(columns.count)
        while try rows.nextWithError() {
            try ExportInterruption.check()
            number += 1
            values.removeAll(keepingCapacity: true)
            for column in 1...count {
                let value = ExportedValue(rows.heldValue(forColumnIndex: column))
                values.append(encoding.isUTF8 ? value : exact(value, rows, column + count))
            }
            let rowID: Int64? = if case .integer(let id) = rows.heldValue(forColumnIndex: 0) { id } else { nil }
            try body(RowPlace(number: number, rowID: rowID), values)
        }
    }

    /// A text of a store in UTF-16: SQLite repairs what it hands out, and only the bytes tell.
    private func exact(_ value: ExportedValue, _ rows: ResultSet, _ column: Int32) -> ExportedValue {
        guard case .blob(let stored) = rows.heldValue(forColumnIndex: column) else { return value }
        guard case .text(let bytes) = value else { return .brokenText(stored) }
        let isSame = encoding.bytes(of: String(decoding: bytes, as: UTF8.self)).elementsEqual(stored)
        return isSame ? value : .brokenText(stored)
    }

    /// Reads all rows, and finds what their columns become.
    mutating func examine(in database: Database, _ progress: (Int64) -> Void) throws -> [ColumnContents] {
        var contents = columns.map { ColumnContents(DeclaredType($0.declared)) }
        try forEachRow(in: database) { place, values in
            rowCount = place.number
            for (index, value) in values.enumerated() {
                contents[index].add(value, at: place)
                size += value.size
            }
            progress(size)
        }
        return contents
    }

    /// The largest value of the row id, and of those that SQLite has given away.
    func lastRowID(in database: Database) throws -> Int64? {
        guard let rowIDColumn else { return nil }
        let name = SQLLiteral.name(rowIDColumn)
        let largest = try database.executeQuery(SQL(raw: "SELECT max(\(name)) FROM main.\(SQLLiteral.name(self.name))"))
            .scalar(Int64.self)
        guard object.counts else { return largest }
        let last = try SQLScriptWriter.counters([object], in: database).compactMap { counter -> Int64? in
            if case .integer(let value) = counter.last { value } else { nil }
        }
        return ([largest].compactMap { $0 } + last).max()
    }
}
