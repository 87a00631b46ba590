public import Foundation

// How text and bytes are bound and read.

extension String: Bindable, ColumnReadable {
    /// Binds TEXT, including NUL characters.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(self) }

    /// Reads a TEXT.
    public init(column: borrowing Column) throws(DatabaseError) { self = try column.text(for: Self.self) }
}

extension Substring: Bindable, ColumnReadable {
    /// Binds TEXT, including NUL characters.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(String(self)) }

    /// Reads a TEXT.
    public init(column: borrowing Column) throws(DatabaseError) { self = Substring(try column.text(for: Self.self)) }
}

extension Data: Bindable, ColumnReadable {
    /// Binds a BLOB. Empty data is an empty blob, not NULL.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        try slot.statement.bind(self, at: slot.index)
    }

    /// Reads a BLOB, as a copy.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let data = column.data() else { throw column.mismatch(Self.self) }
        self = data
    }
}

extension [UInt8]: Bindable, ColumnReadable {
    /// Binds a BLOB. An empty array is an empty blob, not NULL.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        try slot.statement.bind(self, at: slot.index)
    }

    /// Reads a BLOB, as a copy.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard column.type == .blob else { throw column.mismatch(Self.self) }
        self = column.withUnsafeBytes { [UInt8]($0) }
    }
}

extension NSNull: Bindable {
    /// Binds NULL.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bindNull() }
}

extension Bindable where Self == NSNull {
    /// NULL, for calls in which `nil` has no type:
    /// `try db.executeUpdate("UPDATE t SET a = ? WHERE id = ?", .null, id)`.
    public static var null: NSNull { NSNull() }
}

extension Column {
    func text(for type: Any.Type) throws(DatabaseError) -> String {
        guard let text = self.text() else {
            throw mismatch(type, self.type == .text ? "that is not valid UTF-8" : "")
        }
        return text
    }
}
