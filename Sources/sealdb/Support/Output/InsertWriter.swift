import SealedDB

/// Writes statements that insert the rows into a table.
final class InsertWriter: ResultWriter {
    private let output: ResultOutput
    private let table: String
    private var start = ""
    private var columnCount: Int32 = 0

    init(output: ResultOutput, table: String) {
        self.output = output
        self.table = table
    }

    /// - Throws: ``Failure`` if two columns have one name: SQLite would take the values of the first and drop the others.
    func begin(columns: [String]) throws {
        if let name = columns.first(where: { name in columns.count { ExactText(name: $0) == ExactText(name: name) } > 1
        }) {
            throw Failure(.data, "Two columns are called \"\(name)\". Give them names: SELECT … AS …")
        }
        start = SQLLiteral.insertion(into: table, columns: columns)
        columnCount = Int32(columns.count)
    }

    func write(row: ResultSet) throws {
        output.buffer.add(start)
        for column in 0..<columnCount {
            if column > 0 { output.buffer.add(UInt8(ascii: ",")) }
            SQLLiteral.add(row.heldValue(forColumnIndex: column), to: output.buffer)
        }
        output.buffer.add(");\n")
        try output.endRow()
    }

    func end() {}
}
