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
}
