import Foundation
import SealedDB

/// Typed values: parameter packs, and literals that bind.
extension SealedMakers {
    static var typedBind: [String: Maker] {
        var result: [String: Maker] = [:]
        let values = Values.shared
        add("integer", to: &result) { values.integers[$0] }
        add("real", to: &result) { values.reals[$0] }
        add("text", to: &result) { values.texts[$0] }
        add("blob", to: &result) { values.blobs[$0] }
        add("null", to: &result) { _ in Int64?.none }
        add("date", to: &result) { Date(timeIntervalSince1970: values.reals[$0]) }
        result["bind.mixed.prepared"] = { fixtures in
            try inserting(fixtures) { db in
                let statement = try db.prepare(BindCases.insert)
                for row in 0..<BindCases.rows {
                    let index = Values.index(row)
                    try statement.bind(
                        values.integers[index],
                        values.texts[index],
                        values.reals[index],
                        values.blobs[index],
                        Int64?.none
                    )
                    try statement.stepWithError()
                }
            }
        }
        result["bind.mixed.cached"] = { fixtures in
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    let index = Values.index(row)
                    try db.executeUpdate(
                        BindCases.insert,
                        values.integers[index],
                        values.texts[index],
                        values.reals[index],
                        values.blobs[index],
                        Int64?.none
                    )
                }
            }
        }
        result["bind.mixed.interpolated"] = { fixtures in
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    let index = Values.index(row)
                    try db.executeUpdate(
                        """
                        INSERT INTO bound VALUES (\(values.integers[index]), \(values.texts[index]), \
                        \(values.reals[index]), \(values.blobs[index]), \(Int64?.none))
                        """
                    )
                }
            }
        }
        return result
    }

    /// Five values of one type.
    @inline(__always)
    private static func add<Value: Bindable>(
        _ kind: String,
        to result: inout [String: Maker],
        _ value: @escaping (Int) -> Value
    ) {
        result["bind.\(kind).prepared"] = { fixtures in
            try inserting(fixtures) { db in
                let statement = try db.prepare(BindCases.insert)
                for row in 0..<BindCases.rows {
                    let at = { value(Values.index(row * 5 + $0)) }
                    try statement.bind(at(0), at(1), at(2), at(3), at(4))
                    try statement.stepWithError()
                }
            }
        }
        result["bind.\(kind).cached"] = { fixtures in
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    let at = { value(Values.index(row * 5 + $0)) }
                    try db.executeUpdate(BindCases.insert, at(0), at(1), at(2), at(3), at(4))
                }
            }
        }
    }
}
