/// Reading and binding for programs that pass many values on as they are.
extension ResultSet {
    /// The value of a column in the current row; NULL if there is none.
    ///
    /// Its bytes are SQLite's own, and valid until the result set is stepped, reset or closed, or the column is read in
    /// another way.
    package func heldValue(forColumnIndex index: Int32) -> HeldValue { prepared.heldValue(at: index) }

    /// Binds a value to each parameter of a statement from ``Database/prepare(_:)-(SQL)``, and makes it ready to run. The
    /// bytes are copied.
    /// - Throws: ``DatabaseError``, such as for missing or surplus values. The statement does not run until values are
    ///   bound.
    package func bind(_ values: [HeldValue]) throws(DatabaseError) {
        let slot = try startBinding(values.count)
        var index: Int32 = 0
        for value in values {
            index += 1
            guard prepared.bind(value, to: index) else { throw recorded(prepared.bindingFailure) }
        }
        try endBinding(slot)
    }
}

extension Statement {
    @inline(__always)
    fileprivate func bind(_ value: HeldValue, to index: Int32) -> Bool {
        switch value {
        case .null: bindNull(to: index)
        case .integer(let value): bind(value, to: index)
        case .real(let value): bind(value, to: index)
        case .text(let bytes): bindText(bytes, to: index)
        case .blob(let bytes): bind(bytes, to: index)
        }
    }
}
