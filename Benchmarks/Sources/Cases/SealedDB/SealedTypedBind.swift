import Foundation
import SealedDB

/// Typed values: parameter packs, and literals that bind.
extension SealedMakers {
    static var typedBind: [String: Maker] {
        var result: [String: Maker] = [:]
        let values = Values.shared
        add("integer", values.integers, to: &result)
        add("real", values.reals, to: &result)
        add("text", values.texts, to: &result)
        add("blob", values.blobs, to: &result)
        add("null", values.nulls, to: &result)
        add("date", values.dates, to: &result)
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
        result["bind.mixed.named-typed"] = { fixtures in
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    let index = Values.index(row)
                    try db.executeUpdate(
                        BindCases.insertNamed,
                        [
                            "a": values.integers[index], "b": values.texts[index], "c": values.reals[index],
                            "d": values.blobs[index], "e": nil,
                        ]
                    )
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

    /// Five values of one type. Specialised for each, so that nothing but the library's own work is measured.
    @inline(__always)
    private static func add<Value: Bindable>(_ kind: String, _ values: [Value], to result: inout [String: Maker]) {
        result["bind.\(kind).prepared"] = { fixtures in
            try inserting(fixtures) { db in
                let statement = try db.prepare(BindCases.insert)
                for row in 0..<BindCases.rows {
                    let first = row * 5
                    try statement.bind(
                        values[Values.index(first)],
                        values[Values.index(first + 1)],
                        values[Values.index(first + 2)],
                        values[Values.index(first + 3)],
                        values[Values.index(first + 4)]
                    )
                    try statement.stepWithError()
                }
            }
        }
        result["bind.\(kind).cached"] = { fixtures in
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    let first = row * 5
                    try db.executeUpdate(
                        BindCases.insert,
                        values[Values.index(first)],
                        values[Values.index(first + 1)],
                        values[Values.index(first + 2)],
                        values[Values.index(first + 3)],
                        values[Values.index(first + 4)]
                    )
                }
            }
        }
    }
}
