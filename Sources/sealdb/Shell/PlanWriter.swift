import SealedDB

/// Draws the rows of `EXPLAIN QUERY PLAN` as a tree. https://www.sqlite.org/eqp.html
final class PlanWriter: CellWriter {
    private let output: ResultOutput
    private var steps: [(id: Int64, parent: Int64, detail: String)] = []

    /// - Returns: `nil` if these are the rows of another `EXPLAIN`.
    init?(_ rows: ResultSet, _ output: ResultOutput) {
        let names = (0..<rows.columnCount).map { rows.columnName(for: $0) ?? "" }
        guard names.elementsEqual(["id", "parent", "notused", "detail"]) else { return nil }
        self.output = output
    }

    func begin(columns: [String]) throws {}

    func write(_ row: [Cell]) throws {
        guard row.count == 4, case .integer(let id) = row[0], case .integer(let parent) = row[1] else { return }
        steps.append((id, parent, TerminalText.escaped(row[3].plainText ?? "")))
    }

    func end() throws {
        try output.write("QUERY PLAN\n")
        try draw(below: 0, "")
    }

    private func draw(below parent: Int64, _ indentation: String) throws {
        let children = steps.filter { $0.parent == parent && $0.id != parent }
        for (index, child) in children.enumerated() {
            let isLast = index == children.count - 1
            try output.write(indentation + (isLast ? "`--" : "|--") + child.detail + "\n")
            try draw(below: child.id, indentation + (isLast ? "   " : "|  "))
        }
    }
}
