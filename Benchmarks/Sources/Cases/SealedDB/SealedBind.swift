import Foundation
import SealedDB

extension SealedMakers {
    static var bind: [String: Maker] {
        var result: [String: Maker] = [:]
        let values = Values.shared
        addAny("integer", values.integers, to: &result)
        addAny("real", values.reals, to: &result)
        addAny("text", values.texts, to: &result)
        addAny("blob", values.blobs, to: &result)
        addAny("null", values.nulls.map { _ in NSNull() }, to: &result)
        addAny("date", values.dates, to: &result)
        result["bind.mixed.prepared-any"] = { try prepared($0, mixed) }
        result["bind.mixed.cached-any"] = { try cached($0, mixed) }
        result["bind.mixed.named"] = { try named($0) }
        return result
    }

    /// Five values of one type.
    @inline(__always)
    private static func addAny<Value>(_ kind: String, _ values: [Value], to result: inout [String: Maker]) {
        let five = { (row: Int) -> [Any] in
            let first = row * 5
            return [
                values[Values.index(first)], values[Values.index(first + 1)], values[Values.index(first + 2)],
                values[Values.index(first + 3)], values[Values.index(first + 4)],
            ]
        }
        result["bind.\(kind).prepared-any"] = { try prepared($0, five) }
        result["bind.\(kind).cached-any"] = { try cached($0, five) }
    }

    private static func mixed(_ row: Int) -> [Any] {
        let values = Values.shared
        let index = Values.index(row)
        return [values.integers[index], values.texts[index], values.reals[index], values.blobs[index], NSNull()]
    }

    private static func prepared(_ fixtures: Fixtures, _ values: @escaping (Int) -> [Any]) throws -> Work {
        try inserting(fixtures) { db in
            let statement = try db.prepare(BindCases.insert)
            for row in 0..<BindCases.rows {
                guard statement.bind(with: values(row)), try statement.stepWithError() else { throw db.lastError() }
            }
        }
    }

    private static func cached(_ fixtures: Fixtures, _ values: @escaping (Int) -> [Any]) throws -> Work {
        try inserting(fixtures) { db in
            for row in 0..<BindCases.rows { try db.executeUpdate(BindCases.insert, values: values(row)) }
        }
    }

    private static func named(_ fixtures: Fixtures) throws -> Work {
        try inserting(fixtures) { db in
            let values = Values.shared
            for row in 0..<BindCases.rows {
                let index = Values.index(row)
                let arguments: [AnyHashable: Any] = [
                    "a": values.integers[index], "b": values.texts[index], "c": values.reals[index],
                    "d": values.blobs[index], "e": NSNull(),
                ]
                guard db.executeUpdate(BindCases.insertNamed, withParameterDictionary: arguments) else {
                    throw db.lastError()
                }
            }
        }
    }

    static func inserting(_ fixtures: Fixtures, _ insert: @escaping (Database) throws -> Void) throws -> Work {
        let queue = try StoreOptions().queue(fixtures.newPath())
        try queue.inDatabase { db in try db.executeUpdate(BindCases.createTable, values: nil) }
        return Work(units: BindCases.rows) {
            try queue.inDatabase { db in
                guard db.beginTransaction() else { throw db.lastError() }
                try insert(db)
                guard db.rollback() else { throw db.lastError() }
            }
            return UInt64(BindCases.rows)
        }
    }
}
