#if PlainSQLite
    import Foundation
    import GRDB

    extension GRDBMakers {
        static var bind: [String: Maker] {
            var result: [String: Maker] = [:]
            let values = Values.shared
            add("integer", values.integers, to: &result)
            add("real", values.reals, to: &result)
            add("text", values.texts, to: &result)
            add("blob", values.blobs, to: &result)
            add("null", values.nulls.map { _ in DatabaseValue.null }, to: &result)
            // Dates are left out: GRDB stores them as texts, which is other work.
            addForms("mixed", to: &result) { row in
                let index = Values.index(row)
                return [
                    values.integers[index], values.texts[index], values.reals[index], values.blobs[index],
                    DatabaseValue.null,
                ]
            } any: { row in
                let index = Values.index(row)
                return [
                    values.integers[index], values.texts[index], values.reals[index], values.blobs[index],
                    DatabaseValue.null,
                ]
            }
            let named: Maker = { fixtures in
                try inserting(fixtures) { db in
                    for row in 0..<BindCases.rows {
                        let index = Values.index(row)
                        try db.cachedStatement(sql: BindCases.insertNamed).execute(arguments: [
                            "a": values.integers[index], "b": values.texts[index], "c": values.reals[index],
                            "d": values.blobs[index], "e": nil,
                        ])
                    }
                }
            }
            result["bind.mixed.named"] = named
            result["bind.mixed.named-typed"] = named
            result["bind.mixed.interpolated"] = { fixtures in
                try inserting(fixtures) { db in
                    for row in 0..<BindCases.rows {
                        let index = Values.index(row)
                        try db.execute(
                            literal: """
                                INSERT INTO bound VALUES (\(values.integers[index]), \(values.texts[index]), \
                                \(values.reals[index]), \(values.blobs[index]), NULL)
                                """
                        )
                    }
                }
            }
            return result
        }

        /// Five values of one type.
        @inline(__always)
        private static func add<T: DatabaseValueConvertible>(
            _ kind: String,
            _ values: [T],
            to result: inout [String: Maker]
        ) {
            addForms(kind, to: &result) { row in
                let first = row * 5
                return [
                    values[Values.index(first)], values[Values.index(first + 1)], values[Values.index(first + 2)],
                    values[Values.index(first + 3)], values[Values.index(first + 4)],
                ]
            } any: { row in
                let first = row * 5
                return [
                    values[Values.index(first)], values[Values.index(first + 1)], values[Values.index(first + 2)],
                    values[Values.index(first + 3)], values[Values.index(first + 4)],
                ]
            }
        }

        private static func addForms(
            _ kind: String,
            to result: inout [String: Maker],
            _ typed: @escaping (Int) -> StatementArguments,
            any: @escaping (Int) -> [Any]
        ) {
            func arguments(_ row: Int) throws -> StatementArguments {
                guard let arguments = StatementArguments(any(row)) else { throw Failure("GRDB does not take these.") }
                return arguments
            }
            result["bind.\(kind).prepared"] = { try prepared($0, typed) }
            result["bind.\(kind).prepared-any"] = { try prepared($0, arguments) }
            result["bind.\(kind).cached"] = { try cached($0, typed) }
            result["bind.\(kind).cached-any"] = { try cached($0, arguments) }
        }

        private static func prepared(
            _ fixtures: Fixtures,
            _ arguments: @escaping (Int) throws -> StatementArguments
        ) throws -> Work {
            try inserting(fixtures) { db in
                let statement = try db.makeStatement(sql: BindCases.insert)
                for row in 0..<BindCases.rows { try statement.execute(arguments: arguments(row)) }
            }
        }

        private static func cached(
            _ fixtures: Fixtures,
            _ arguments: @escaping (Int) throws -> StatementArguments
        ) throws -> Work {
            try inserting(fixtures) { db in
                for row in 0..<BindCases.rows {
                    try db.cachedStatement(sql: BindCases.insert).execute(arguments: arguments(row))
                }
            }
        }

        private static func inserting(
            _ fixtures: Fixtures,
            _ insert: @escaping (Database) throws -> Void
        ) throws -> Work {
            let queue = try StoreOptions().grdbQueue(fixtures.newPath())
            try queue.inDatabase { db in try db.execute(sql: BindCases.createTable) }
            return Work(units: BindCases.rows) {
                try queue.inDatabase { db in
                    try db.beginTransaction(.immediate)
                    try insert(db)
                    try db.rollback()
                }
                return UInt64(BindCases.rows)
            }
        }
    }
#endif
