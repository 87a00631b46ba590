/// Finds columns by name: first in the exact spelling, then without regard to case. Of columns with equal names, the
/// last one counts.
///
/// The names of a prepared statement are read once, and again only after SQLite has prepared it again.
struct ColumnNames {
    /// The names as they are spelled, in the order of the columns.
    private let names: [String]
    /// What rows become as dictionaries, once that is asked for.
    private(set) lazy var objects = RowDictionary<AnyHashable, Any>(names.map { AnyHashable($0) }, placeholder: ())
    private(set) lazy var values = RowDictionary<String, SQLValue>(names, placeholder: .null)
    /// Column indexes by name, as spelled and in lower case.
    private let indexes: [ExactText: Int32]
    /// Earlier lookups, in the order of their first time. Each row usually repeats this order.
    private var asked: [(name: String, index: Int32)] = []
    private var position = 0
    /// How many lookups are remembered. Further names are looked up each time.
    private static let capacity = 64

    init(_ names: [String]) {
        var exact: [ExactText: Int32] = [:]
        var folded: [ExactText: Int32] = [:]
        for (index, name) in names.enumerated() {
            exact[ExactText(name)] = Int32(index)
            folded[ExactText(name.lowercased())] = Int32(index)
        }
        self.names = names
        indexes = exact.merging(folded) { exact, _ in exact }
    }

    /// Returns the index of a column; -1 if there is none.
    mutating func index(of name: String) -> Int32 {
        for _ in 0..<asked.count {
            if position >= asked.count { position = 0 }
            defer { position += 1 }
            if asked[position].name.isSame(as: name) { return asked[position].index }
        }
        let index = indexes[ExactText(name)] ?? indexes[ExactText(name.lowercased())] ?? -1
        if asked.count < ColumnNames.capacity { asked.append((name, index)) }
        return index
    }
}
