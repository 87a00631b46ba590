import SealedDB

/// Writes the SQL that makes the first of two stores hold what the second one holds.
struct DifferenceScript {
    let comparison: StoreComparison
    let differences: [StoreDifference]
    let writer: SQLScriptWriter

    private let changed: Set<SchemaObject.Identity>
    private let withOtherRows: Set<SchemaObject.Identity>
    private let changesRows: Bool
    /// Whether a full-text table could find other texts where it takes them from.
    private let changesTexts: Bool

    private var first: ComparedStore { comparison.first }
    private var second: ComparedStore { comparison.second }

    /// - Throws: ``Failure`` if SQL cannot make the stores hold the same.
    init(_ comparison: StoreComparison, _ differences: [StoreDifference], output: ResultOutput) throws {
        (self.comparison, self.differences) = (comparison, differences)
        writer = SQLScriptWriter(output: output, encoding: try TextEncoding(of: comparison.second.database))
        guard try TextEncoding(of: comparison.first.database) == writer.encoding else {
            throw Failure(
                .data,
                "The stores keep their texts in different encodings, and no SQL changes that of a store. Use: sealdb dump"
            )
        }
        let objects = differences.filter { ![.setting, .counter].contains($0.kind) }
        let (first, second) = (comparison.first, comparison.second)
        // What is made anew, or is no more.
        changed = Set(objects.filter { !$0.isOfRowsAlone }.map(\.identity))
        withOtherRows = Set(objects.filter(\.hasOtherRows).map(\.identity))
        // Of one name there may be a table in one store, and something else in the other.
        changesRows = objects.contains { difference in
            [first, second].contains { store in
                store.object(difference.identity).map { [.table, .virtualTable].contains($0.kind) } ?? false
            }
        }
        changesTexts = changesRows || objects.contains { $0.kind == .view }
    }

    /// Without differences, the script changes nothing, and is one all the same: an empty one is that of a failure.
    func write() throws {
        try requireSameIndexes()
        try writer.transaction {
            try drop(first.objects.filter(isChanged))
            try writeTables()
            for object in second.objects where object.kind == .view && isChanged(object) { try writer.write(object) }
            try writeVirtualTables()
            try writeCounters()
            for object in second.objects where object.isOfTable && isChanged(object) { try writer.write(object) }
            for difference in differences where difference.kind == .setting {
                guard SQLScriptWriter.numbers.contains(difference.name) else { continue }
                try writer.line("PRAGMA \(difference.name) = \(difference.valueInSecond ?? "0")")
            }
        }
    }

    /// What "rebuild" would make another index of, and what cannot be dropped, is told before anything is written.
    private func requireSameIndexes() throws {
        for object in first.objects where isChanged(object) { try VirtualTable.trial(of: object) }
        for object in second.objects where isChanged(object) {
            guard let text = object.virtualTable else { continue }
            try VirtualTable(object, text, in: second.database).requireSameIndex(in: second.database)
        }
        for object in indexesOfOtherTexts {
            // What is compared will hold what the second store holds.
            let (own, database) =
                second.counterpart(of: object).map { ($0, second.database) } ?? (object, first.database)
            guard let text = own.virtualTable else { continue }
            try VirtualTable(own, text, in: database).requireSameIndex(in: database)
        }
    }

    /// The full-text tables of the first store that are not made anew, and whose text, which is elsewhere, may become another.
    /// Also those that are not compared: triggers that kept them up to date did not act on the rows that were written.
    private var indexesOfOtherTexts: [SchemaObject] {
        guard changesTexts else { return [] }
        return first.all.filter { object in
            // One that cannot be read takes its text from no other table.
            guard !isChanged(object), let text = object.virtualTable,
                case .otherTable? = try? VirtualTable(object, text, in: first.database).source
            else { return false }
            return true
        }
    }

    private func isChanged(_ object: SchemaObject) -> Bool {
        if changed.contains(object.identity) { return true }
        let table = SchemaObject.Identity(name: ExactText(name: object.table), isTrigger: false)
        // What belongs to a table or view goes with it. A trigger would also act on the rows that are written here.
        return object.isOfTable && changed.contains(table) || object.kind == .trigger && changesRows
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

    private func writeTables() throws {
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
        guard withOtherRows.contains(object.identity), let own = first.counterpart(of: object),
            let rows = try comparison.rows(of: own, object)
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

    private func writeVirtualTables() throws {
        var tables: [VirtualTable] = []
        for object in second.objects {
            guard let text = object.virtualTable else { continue }
            let table = try VirtualTable(object, text, in: second.database)
            if isChanged(object) {
                try writer.write(object)
                tables.append(table)
            } else if case .own = table.source {
                try writeRows(of: object)
            }
        }
        try writer.write(tables, in: second.database)
        for object in indexesOfOtherTexts { try writer.line(VirtualTable.command("rebuild", object.name)) }
    }

    private func writeCounters() throws {
        guard changesRows || differences.contains(where: { $0.kind == .counter }) else { return }
        let counters = try second.counters()
        for object in second.objects where object.kind == .table && object.counts {
            guard counters[ExactText(name: object.name)] == nil else { continue }
            try writer.line("DELETE FROM sqlite_sequence WHERE name = \(SQLLiteral.text(of: .text(object.name)))")
        }
        try writer.writeCounters(second.objects, in: second.database)
    }
}
