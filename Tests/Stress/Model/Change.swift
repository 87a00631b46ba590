/// What a step does to the rows of its client.
enum Change: Sendable {
    case put(Table, key: Int, Value)
    case remove(Table, key: Int)
    case removeRange(Table, Range<Int>)
    /// The table ``Table/own``.
    case create, drop

    var table: Table {
        switch self {
        case .put(let table, _, _), .remove(let table, _), .removeRange(let table, _): table
        case .create, .drop: .own
        }
    }
}

extension Change: CustomStringConvertible {
    var description: String {
        switch self {
        case .put(let table, let key, let value): "\(table) \(key) = \(value)"
        case .remove(let table, let key): "no \(table) \(key)"
        case .removeRange(let table, let range): "no \(table) \(range)"
        case .create: "own table"
        case .drop: "no own table"
        }
    }
}
