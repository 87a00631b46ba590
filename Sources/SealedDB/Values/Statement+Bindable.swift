extension Statement {
    func bind(_ values: [any Bindable]) throws(DatabaseError) {
        try beginBinding(values.count)
        var slot = ParameterSlot(statement: self)
        for value in values {
            slot.position += 1
            try value.bind(to: slot)
        }
        endBinding()
    }
}
