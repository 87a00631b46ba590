/// Finds columns by name: the exact spelling first, then without regard to case; of equal names the last counts.
///
/// Learned once for a prepared statement, until SQLite prepares it anew.
struct ColumnNames {
    /// The names in their spelling, in the order of the columns.
    let keys: [AnyHashable]
    /// Names in their spelling and lower-cased.
    private let indexes: [String: Int32]
    /// What was asked before, in the order of the first time, which is that of every row.
    private var asked: [(name: String, index: Int32)] = []
    private var position = 0
    /// Names beyond these are looked up each time.
    private static let capacity = 64

    init(_ names: [String]) {
        var exact: [String: Int32] = [:]
        var folded: [String: Int32] = [:]
        for (index, name) in names.enumerated() {
            exact[name] = Int32(index)
            folded[name.lowercased()] = Int32(index)
        }
        keys = names.map { AnyHashable($0) }
        indexes = exact.merging(folded) { exact, _ in exact }
    }

    /// -1 if there is none.
    mutating func index(of name: String) -> Int32 {
        for _ in 0..<asked.count {
            if position >= asked.count { position = 0 }
            defer { position += 1 }
            if asked[position].name == name { return asked[position].index }
        }
        let index = indexes[name] ?? indexes[name.lowercased()] ?? -1
        if asked.count < ColumnNames.capacity { asked.append((name, index)) }
        return index
    }
}
