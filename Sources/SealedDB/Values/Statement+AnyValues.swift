import Foundation

extension Statement {
    /// Binds the values to the parameters in order, one value each.
    func bind(all values: [Any]?) throws(DatabaseError) {
        let round = try beginBinding(values?.count ?? 0)
        try values?.withUnsafeBufferPointer { values throws(DatabaseError) in
            guard let first = values.baseAddress else { return }
            for index in 0..<values.count { try bind(at: first + index, to: Int32(truncatingIfNeeded: index) + 1) }
        }
        try endBinding(round)
    }

    /// Binds the values to the parameters of the form `:name`. Keys have no colon. Keys without a parameter are
    /// ignored.
    func bind(named values: [AnyHashable: Any]) throws(DatabaseError) {
        let round = try beginBinding(Int(parameterCount))
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
            guard let value = key.value(in: values) else {
                throw DatabaseError(
                    extendedCode: SQLITE_RANGE,
                    reason: .misuse,
                    message: "The dictionary has no value for the parameter :\(key.key). Nothing was executed.",
                    sql: sql
                )
            }
            try bind(any: value, at: index)
        }
        try endBinding(round)
    }

    /// Binds a value by its dynamic type. A type without a meaning in SQL is an error; FMDB would store its
    /// description.
    func bind(any value: Any, at index: Int32) throws(DatabaseError) {
        try withUnsafePointer(to: value) { place throws(DatabaseError) in try bind(at: place, to: index) }
    }

    @inline(__always)
    private func bind(at place: UnsafePointer<Any>, to index: Int32) throws(DatabaseError) {
        guard let isBound = bind(usual: place, to: index) else {
            return try bind(unusual: place.pointee, at: index)
        }
        if !isBound { throw bindingFailure }
    }

    /// Binds a value of a usual type without copying the `Any`: copying, and casting to one type after another, take
    /// many times longer. Returns false on failure, and `nil` for any other type.
    ///
    /// An `Any` consists of three words and a type. A value of no more than three words is stored directly in them.
    /// https://github.com/swiftlang/swift/blob/main/docs/ABI/TypeLayout.rst
    @inline(__always)
    private func bind(usual place: UnsafePointer<Any>, to index: Int32) -> Bool? {
        let start = UnsafeRawPointer(place)
        let type = start.load(fromByteOffset: 3 * MemoryLayout<Int>.stride, as: Any.Type.self)
        return if type == String.self {
            bind(start.assumingMemoryBound(to: String.self).pointee, to: index)
        } else if type == Int.self || type == Int64.self {
            bind(start.load(as: Int64.self), to: index)
        } else if type == Double.self {
            bind(start.load(as: Double.self), to: index)
        } else if type == Bool.self {
            bind(start.load(as: Bool.self) ? 1 : 0 as Int64, to: index)
        } else if type == Data.self {
            start.assumingMemoryBound(to: Data.self).pointee.withUnsafeBytes { bind($0, to: index) }
        } else if type == NSNull.self {
            bindNull(to: index)
        } else {
            nil
        }
    }

    private func bind(unusual value: Any, at index: Int32) throws(DatabaseError) {
        switch value {
        // Of the types left, only `Date` is usual too.
        case let value as Date: try bind(bindable: value, at: index)
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
