import Foundation

extension Statement {
    /// Binds the values to the parameters in order, one each.
    func bind(all values: [Any]?, dateFormat: DateFormatter?) throws(DatabaseError) {
        let count = Int(parameterCount)
        let given = values?.count ?? 0
        guard given == count else {
            throw DatabaseError(
                extendedCode: SQLITE_RANGE,
                reason: .misuse,
                message: "The statement has \(count) parameters, but \(given) values were given. Nothing was executed.",
                sql: sql
            )
        }
        for (position, value) in (values ?? []).enumerated() {
            try bind(any: value, at: Int32(position + 1), dateFormat: dateFormat)
        }
    }

    /// Binds the values to the parameters of the form `:name`; keys are without the colon, surplus keys are ignored.
    func bind(named values: [AnyHashable: Any], dateFormat: DateFormatter?) throws(DatabaseError) {
        for index in 1..<max(1, parameterCount + 1) {
            guard let name = parameterName(at: index), name.hasPrefix(":") else {
                throw DatabaseError(
                    extendedCode: SQLITE_RANGE,
                    reason: .misuse,
                    message: """
                        Parameter \(index) is not of the form :name, so a dictionary has no value for it. Nothing was \
                        executed.
                        """,
                    sql: sql
                )
            }
            guard let value = values[AnyHashable(String(name.dropFirst()))] else {
                throw DatabaseError(
                    extendedCode: SQLITE_RANGE,
                    reason: .misuse,
                    message: "The dictionary has no value for the parameter \(name). Nothing was executed.",
                    sql: sql
                )
            }
            try bind(any: value, at: index, dateFormat: dateFormat)
        }
    }

    /// Binds by dynamic type. A type without a meaning in SQL is an error; FMDB would store its description.
    func bind(any value: Any, at index: Int32, dateFormat: DateFormatter?) throws(DatabaseError) {
        switch value {
        case let value as String: try bind(value, at: index)
        case let value as Int: try bind(Int64(value), at: index)
        case let value as Double: try bind(value, at: index)
        case let value as Bool: try bind(value ? 1 : 0 as Int64, at: index)
        case let value as Int64: try bind(value, at: index)
        case let value as Int32: try bind(Int64(value), at: index)
        case let value as Data: try bind(value, at: index)
        case is NSNull: try bindNull(at: index)
        case let value as Date: try bind(date: value, at: index, dateFormat: dateFormat)
        case let value as any FixedWidthInteger: try bind(integer: value, at: index)
        case let value as Float: try bind(Double(value), at: index)
        case let value as [UInt8]: try bind(value, at: index)
        case let value as Decimal: try bind(value.description, at: index)
        case let value as any StringProtocol: try bind(String(value), at: index)
        case let value as UUID: try bind(value.uuidString, at: index)
        case let value as URL: try bind(value.absoluteString, at: index)
        case let value as NSNumber: try bind(number: value, at: index)
        case let value as NSString: try bind(value as String, at: index)
        case let value as NSData: try bind(any: value as Data, at: index, dateFormat: dateFormat)
        case let value as NSDate: try bind(any: value as Date, at: index, dateFormat: dateFormat)
        default:
            let mirror = Mirror(reflecting: value)
            guard mirror.displayStyle == .optional else { throw unbindable(value, at: index) }
            if let wrapped = mirror.children.first?.value {
                try bind(any: wrapped, at: index, dateFormat: dateFormat)
            } else {
                try bindNull(at: index)
            }
        }
    }

    /// With a format as its text, else as seconds since 1970.
    private func bind(date: Date, at index: Int32, dateFormat: DateFormatter?) throws(DatabaseError) {
        if let dateFormat {
            try bind(dateFormat.string(from: date), at: index)
        } else {
            try bind(date.timeIntervalSince1970, at: index)
        }
    }

    /// A `UInt64` beyond `Int64.max` keeps its bits, as in FMDB, and is read back with `unsignedLongLongInt`.
    private func bind(integer value: any FixedWidthInteger, at index: Int32) throws(DatabaseError) {
        guard value.bitWidth <= 64 else { throw unbindable(value, at: index) }
        try bind(Int64(truncatingIfNeeded: value), at: index)
    }

    private func bind(number value: NSNumber, at index: Int32) throws(DatabaseError) {
        if let decimal = value as? NSDecimalNumber {
            try bind(decimal.decimalValue.description, at: index)
        } else if ["f", "d"].contains(String(cString: value.objCType)) {
            try bind(value.doubleValue, at: index)
        } else {
            try bind(Int64(truncatingIfNeeded: value.uint64Value), at: index)
        }
    }

    private func unbindable(_ value: Any, at index: Int32) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISMATCH,
            reason: .misuse,
            message: """
                A value of type \(Swift.type(of: value)) cannot be bound to parameter \(index). Nothing was executed. \
                Convert it to a number, String, Data or Date; for a list write one placeholder for each element.
                """,
            sql: sql
        )
    }
}
