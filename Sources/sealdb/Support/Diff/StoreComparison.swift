import SealedDB

/// Compares what two stores hold: schemas, rows, counters of row ids, and the numbers that belong to their users.
struct StoreComparison {
    private(set) var first: ComparedStore
    private(set) var second: ComparedStore
    let comparesRows: Bool

    init(first: ComparedStore, second: ComparedStore, comparesRows: Bool) {
        (self.first, self.second, self.comparesRows) = (first, second, comparesRows)
    }

    /// Leaves only these tables and views, with what belongs to them; all if there are no names.
    /// - Throws: ``Failure`` if neither store has one of them.
    mutating func restrict(to names: [String]) throws(Failure) {
        guard !names.isEmpty else { return }
        for name in names
        where first.table(named: name) == nil && second.table(named: name) == nil {
            throw Failure(.data, "Neither store has a table or view \"\(name)\".")
        }
        let names = Set(names.map { ExactText(name: $0) })
        first.restrict(to: names)
        second.restrict(to: names)
    }

    func differences() throws -> [StoreDifference] {
        var differences: [StoreDifference] = []
        for object in first.objects {
            guard let other = second.counterpart(of: object) else {
                differences.append(StoreDifference(object, .first))
                continue
            }
            if let difference = try difference(object, other) { differences.append(difference) }
        }
        for object in second.objects where first.counterpart(of: object) == nil {
            differences.append(StoreDifference(object, .second))
        }
        return try differences + settings()
    }

    private func difference(_ object: SchemaObject, _ other: SchemaObject) throws -> StoreDifference? {
        var difference = StoreDifference(object, .both)
        difference.hasOtherStatement = try !hasSameForm(object, other)
        if let counts = try rows(of: object, other)?.counts() {
            difference.rowsOnlyInFirst = counts.onlyInFirst
            difference.rowsOnlyInSecond = counts.onlyInSecond
            difference.rowsThatDiffer = counts.different
        }
        return difference.hasOtherStatement || difference.hasOtherRows ? difference : nil
    }

    /// Whether both were made by the same statement, and are set up alike.
    func hasSameForm(_ object: SchemaObject, _ other: SchemaObject) throws -> Bool {
        guard object.kind == other.kind, try object.statement().isSame(as: other.statement()) else { return false }
        // Options are kept in rows.
        return try !comparesRows || first.options(of: object) == second.options(of: other)
    }

    /// - Returns: `nil` if there are no rows that could be compared.
    func rows(of object: SchemaObject, _ other: SchemaObject) throws -> RowComparison? {
        guard comparesRows, object.kind == other.kind, let contents = try first.contents(of: object),
            let otherContents = try second.contents(of: other)
        else { return nil }
        return try RowComparison(contents, first.database, otherContents, second.database)
    }

    private func settings() throws -> [StoreDifference] {
        var differences: [StoreDifference] = []
        func add(_ kind: StoreDifference.Kind, _ name: String, _ value: String?, _ other: String?) {
            guard value != other else { return }
            var difference = StoreDifference(kind, name)
            (difference.valueInFirst, difference.valueInSecond) = (value, other)
            differences.append(difference)
        }
        // They belong to no table.
        for pragma in first.isRestricted ? [] : ["encoding"] + SQLScriptWriter.numbers {
            add(.setting, pragma, try first.value(of: pragma), try second.value(of: pragma))
        }
        guard comparesRows else { return differences }
        let (counters, others) = (try first.counters(), try second.counters())
        for object in first.objects where object.kind == .table && second.counterpart(of: object)?.kind == .table {
            let name = ExactText(name: object.name)
            add(
                .counter,
                object.name,
                counters[name].map { SQLLiteral.text(of: $0) },
                others[name].map { SQLLiteral.text(of: $0) }
            )
        }
        return differences
    }
}
