import Foundation

extension Statement {
    /// Binds the values of the text, or else those that the caller gives, one to each parameter.
    /// - Parameter bind: binds all `given` values.
    func bind(
        _ sql: SQL,
        given: Int,
        dateFormat: DateFormatter?,
        _ bind: (inout ParameterSlot) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard sql.values.isEmpty else {
            guard given == 0 else {
                throw SQL.unusable("it has values of its own, so that others cannot be added.", sql: self.sql)
            }
            return try self.bind(sql.values, dateFormat: dateFormat)
        }
        try self.bind(given: given, dateFormat: dateFormat, bind)
    }

    func bind(
        given: Int,
        dateFormat: DateFormatter?,
        _ bind: (inout ParameterSlot) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        lacksValues = true
        try checkCount(given)
        var slot = ParameterSlot(statement: self, dateFormat: dateFormat)
        try bind(&slot)
        lacksValues = false
    }

    func bind(_ values: [any Bindable], dateFormat: DateFormatter?) throws(DatabaseError) {
        try checkCount(values.count)
        var slot = ParameterSlot(statement: self, dateFormat: dateFormat)
        for value in values {
            slot.position += 1
            try value.bind(to: slot)
        }
    }

    func checkCount(_ given: Int) throws(DatabaseError) {
        let count = Int(parameterCount)
        guard given == count else {
            throw DatabaseError(
                extendedCode: SQLITE_RANGE,
                reason: .misuse,
                message: """
                    The statement has \(count) parameters, but \(given) values were given. Nothing was executed. \
                    A placeholder inside of quotes is no parameter.
                    """,
                sql: sql
            )
        }
    }
}
