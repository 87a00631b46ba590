import Foundation

extension Statement {
    /// Binds the values to the parameters in order, one each.
    func bind(all values: [Any]?) throws(DatabaseError) {
        let values = values ?? []
        try beginBinding(values.count)
        var position: Int32 = 0
        for value in values {
            position += 1
            try bind(any: value, at: position)
        }
        endBinding()
    }

    /// Binds the values to the parameters of the form `:name`; keys are without the colon, surplus keys are ignored.
    func bind(named values: [AnyHashable: Any]) throws(DatabaseError) {
        try beginBinding(Int(parameterCount))
        var index: Int32 = 0
        for key in parameterKeys {
            index += 1
            guard let key else {
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
            guard let value = values[key] else {
                throw DatabaseError(
                    extendedCode: SQLITE_RANGE,
                    reason: .misuse,
                    message: "The dictionary has no value for the parameter :\(key). Nothing was executed.",
                    sql: sql
                )
            }
            try bind(any: value, at: index)
        }
        endBinding()
    }

    /// Binds by dynamic type. A type without a meaning in SQL is an error; FMDB would store its description.
    func bind(any value: Any, at index: Int32) throws(DatabaseError) {
        func bind<Value>(_ value: Value) -> Bool? { self.bind(usual: value, at: index) }
        guard let isBound = _openExistential(value, do: bind) else { return try self.bind(unusual: value, at: index) }
        if !isBound { throw bindingFailure }
    }

    /// Comparing types is many times faster than casting to one after the other. `nil` for a type that is none of the
    /// usual ones, false on failure.
    @inline(__always)
    private func bind<Value>(usual value: Value, at index: Int32) -> Bool? {
        if Value.self == String.self {
            bind(unsafeBitCast(value, to: String.self), to: index)
        } else if Value.self == Int.self || Value.self == Int64.self {
            bind(unsafeBitCast(value, to: Int64.self), to: index)
        } else if Value.self == Double.self {
            bind(unsafeBitCast(value, to: Double.self), to: index)
        } else if Value.self == Bool.self {
            bind(unsafeBitCast(value, to: Bool.self) ? 1 : 0 as Int64, to: index)
        } else if Value.self == Data.self {
            unsafeBitCast(value, to: Data.self).withUnsafeBytes { bind($0, to: index) }
        } else if Value.self == NSNull.self {
            bindNull(to: index)
        } else {
            nil
        }
    }

    private func bind(unusual value: Any, at index: Int32) throws(DatabaseError) {
        switch value {
        case let value as any Bindable: try bind(bindable: value, at: index)
        case let value as NSNumber: try bind(number: value, at: index)
        case let value as NSString: try bind(value as String, at: index)
        case let value as NSData: try bind(value as Data, at: index)
        case let value as NSDate: try bind(bindable: value as Date, at: index)
        default:
            let mirror = Mirror(reflecting: value)
            guard mirror.displayStyle == .optional else { throw unbindable(value, at: index) }
            if let wrapped = mirror.children.first?.value {
                try bind(any: wrapped, at: index)
            } else {
                try bindNull(at: index)
            }
        }
    }

    private func bind(
        bindable value: any Bindable,
        at index: Int32
    ) throws(DatabaseError) {
        try value.bind(to: ParameterSlot(statement: self, position: index))
    }

    private func bind(number value: NSNumber, at index: Int32) throws(DatabaseError) {
        if let decimal = value as? NSDecimalNumber {
            try bind(bindable: decimal.decimalValue, at: index)
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
                Convert it to a number, String, Data or Date, or make it Bindable; for a list write one placeholder \
                for each element.
                """,
            sql: sql
        )
    }
}
