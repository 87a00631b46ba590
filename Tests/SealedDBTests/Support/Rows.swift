import SealedDB

extension Database {
    /// All rows as values; for short results.
    func rows(_ sql: String, _ values: [Any] = []) throws -> [[SQLValue]] {
        let set = try executeQuery(sql, values: values)
        var rows: [[SQLValue]] = []
        while try set.nextWithError() {
            rows.append(
                (0..<set.columnCount).map { index in
                    switch set.type(forColumnIndex: index) {
                    case .null: .null
                    case .integer: .integer(set.longLongInt(forColumnIndex: index))
                    case .float: .real(set.double(forColumnIndex: index))
                    case .text: SQLValue(set.string(forColumnIndex: index))
                    case .blob: SQLValue(set.data(forColumnIndex: index))
                    }
                }
            )
        }
        return rows
    }

    /// The first value of the first row.
    func value(_ sql: String, _ values: [Any] = []) throws -> SQLValue? { try rows(sql, values).first?.first }

    func run(_ sql: String, _ values: [Any] = []) throws { try executeUpdate(sql, values: values) }
}

/// Something whose life can be watched from outside.
final class Token {}

/// The value that a closure captures strongly, and a watch on it.
struct Watched {
    private(set) weak var token: Token?
    var isAlive: Bool { token != nil }
    init(_ token: Token) { self.token = token }
}
