/// Makes a dictionary of each row of a statement.
///
/// The names are hashed once: a row is a copy of a dictionary that has them all, with each value put at its place. The row of
/// the benchmarks is `read.mixed.dictionary`.
struct RowDictionary<Key: Hashable, Value> {
    private let template: [Key: Value]
    /// The place of each column's value. It is the same in every copy.
    private let places: [Dictionary<Key, Value>.Index]

    /// - Parameters:
    ///   - names: the name of each column. Of columns with the same name, the last one is used.
    ///   - placeholder: any value.
    init(_ names: [Key], placeholder: Value) {
        let template = Dictionary(names.map { ($0, placeholder) }, uniquingKeysWith: { first, _ in first })
        // Each name is in it.
        places = names.map { template.index(forKey: $0)! }
        self.template = template
    }

    /// - Parameter value: gets the index of a column.
    func row<Failure: Error>(_ value: (Int32) throws(Failure) -> Value) throws(Failure) -> [Key: Value] {
        var row = template
        var column: Int32 = 0
        for place in places {
            row.values[place] = try value(column)
            column += 1
        }
        return row
    }
}
