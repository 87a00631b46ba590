extension Statement {
    func bind(_ values: [any Bindable]) throws(DatabaseError) {
        let round = try beginBinding(values.count)
        var slot = ParameterSlot(statement: self)
        for value in values {
            slot.position += 1
            try value.bind(to: slot)
        }
        try endBinding(round)
    }

    /// Binds the values of an interpolated literal. Returns false if it has none, so that others must be bound.
    /// - Parameter given: how many others there are. The two cannot be mixed.
    func bindValues(of sql: SQL, given: Int) throws(DatabaseError) -> Bool {
        guard !sql.values.isEmpty else { return false }
        guard given == 0 else {
            throw SQL.unusable("it has values of its own, so that others cannot be added.", sql: self.sql)
        }
        try bind(sql.values)
        return true
    }
}
