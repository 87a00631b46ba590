import SealedDB

/// Writes the SQL that makes the first of two stores hold what the second one holds.
struct DifferenceScript {
    let comparison: StoreComparison
    let differences: [StoreDifference]
    let writer: SQLScriptWriter

    private var first: ComparedStore { comparison.first }
    private var second: ComparedStore { comparison.second }

    init(_ comparison: StoreComparison, _ differences: [StoreDifference], output: StandardOutput) throws {
        (self.comparison, self.differences) = (comparison, differences)
        writer = SQLScriptWriter(output: output, isUTF8: try comparison.second.value(of: "encoding") == "UTF-8")
    }

    func write() throws {
        guard !differences.isEmpty else { return }
        let objects = differences.filter { ![.setting, .counter].contains($0.kind) }
        let tables = objects.filter { $0.kind == .table || $0.kind == .virtualTable }
        // What is made anew, or is no more.
        let changed = Set(objects.filter { !$0.isOfRowsAlone }.map(\.identity))
        func isChanged(_ object: SchemaObject) -> Bool {
            if changed.contains(object.identity) { return true }
            let table = SchemaObject.Identity(name: ExactText(name: object.table), isTrigger: false)
            // What belongs to a table or view goes with it. A trigger would also act on the rows that are written here.
            return object.isOfTable && changed.contains(table) || object.kind == .trigger && !tables.isEmpty
        }
        try writer.transaction {
            try drop(first.objects.filter(isChanged))
            try writeTables(isChanged)
            for object in second.objects where object.kind == .view && isChanged(object) { try writer.write(object) }
            try writeVirtualTables(isChanged, tablesChange: !tables.isEmpty)
            try writeCounters(isNeeded: !tables.isEmpty)
            for object in second.objects where object.isOfTable && isChanged(object) { try writer.write(object) }
            for difference in differences where difference.kind == .setting {
                guard SQLScriptWriter.numbers.contains(difference.name) else { continue }
                try writer.line("PRAGMA \(difference.name) = \(difference.valueInSecond ?? "0")")
            }
        }
    }

    private func drop(_ objects: [SchemaObject]) throws {
        let words: [(SchemaObject.Kind, String)] = [
            (.trigger, "TRIGGER"), (.view, "VIEW"), (.index, "INDEX"), (.virtualTable, "TABLE"), (.table, "TABLE"),
        ]
        for (kind, word) in words {
            for object in objects where object.kind == kind {
                try writer.line("DROP \(word) \(SQLLiteral.name(object.name))")
            }
        }
    }

    private func writeTables(_ isChanged: (SchemaObject) -> Bool) throws {
        for object in second.objects where object.kind == .table {
            if isChanged(object) {
                try writer.write(object)
                try writer.writeRows(of: TableContents(object.name, in: second.database), in: second.database)
            } else {
                try writeRows(of: object)
            }
        }
    }

    /// Removes all rows that are not to be there any more before it inserts others: a value that has to be unique may have
    /// gone from one row to another.
    private func writeRows(of object: SchemaObject) throws {
        guard
            differences.contains(where: { $0.hasOtherRows && ExactText(name: $0.name) == ExactText(name: object.name) }
            ),
            let own = first.counterpart(of: object), let rows = try comparison.rows(of: own, object)
        else { return }
        try rows.forEachDifference(ofFirst: true) { row, _ in
            try writer.requireWritable(row, object.name)
            try writer.line("DELETE FROM \(SQLLiteral.name(object.name)) WHERE \(rows.condition(of: row))")
        }
        let start = writer.insertion(into: rows.contents)
        try rows.forEachDifference(ofFirst: false) { row, _ in
            try writer.write(row, after: start, of: rows.contents)
        }
    }

    private func writeVirtualTables(_ isChanged: (SchemaObject) -> Bool, tablesChange: Bool) throws {
        for object in second.objects {
            guard let text = object.virtualTable else { continue }
            let table = try VirtualTable(object, text, in: second.database)
            if isChanged(object) {
                try writer.write(object)
                try writer.write(table, in: second.database)
            } else if case .own = table.source {
                try writeRows(of: object)
            } else if case .otherTable = table.source, tablesChange {
                try writer.line(VirtualTable.command("rebuild", table.name))
            }
        }
    }

    private func writeCounters(isNeeded: Bool) throws {
        guard isNeeded || differences.contains(where: { $0.kind == .counter }) else { return }
        let counters = try second.counters()
        for object in second.objects where object.kind == .table && object.counts {
            guard counters[ExactText(name: object.name)] == nil else { continue }
            try writer.line("DELETE FROM sqlite_sequence WHERE name = \(SQLLiteral.text(of: .text(object.name)))")
        }
        try writer.writeCounters(second.objects, in: second.database)
    }
}
