import Foundation

extension SQLValue: Bindable, ColumnReadable {
    /// Binds the value as its own type.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        switch self {
        case .null: try slot.bindNull()
        case .integer(let value): try slot.bind(value)
        case .real(let value): try slot.bind(value)
        case .text(let value): try slot.bind(value)
        case .blob(let value): try value.bind(to: slot)
        }
    }

    /// Reads a value of any type. Only a TEXT that is not valid UTF-8 is an error.
    public init(column: borrowing Column) throws(DatabaseError) {
        switch column.type {
        case .null: self = .null
        case .integer: self = .integer(try Int64(column: column))
        case .float: self = .real(try Double(column: column))
        case .text: self = .text(try String(column: column))
        case .blob: self = .blob(try Data(column: column))
        }
    }
}
