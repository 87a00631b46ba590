// How numbers are bound and read.

extension FixedWidthInteger where Self: Bindable {
    /// As INTEGER. A `UInt64` beyond `Int64.max` keeps its bits, as in FMDB, and is negative to SQL.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        guard Self.bitWidth <= 64 else { throw slot.mismatch(Self.self, "is wider than 64 bits") }
        try slot.bind(Int64(truncatingIfNeeded: self))
    }
}

extension FixedWidthInteger where Self: ColumnReadable {
    /// Reads an INTEGER that fits; for 64 unsigned bits the bits of the `Int64`.
    @inlinable
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.integer() else { throw column.mismatch(Self.self) }
        if Self.bitWidth == 64 {
            self = Self(truncatingIfNeeded: stored)
        } else if let value = Self(exactly: stored) {
            self = value
        } else {
            throw column.mismatch(Self.self, "that does not fit")
        }
    }
}

extension Int: Bindable, ColumnReadable {}
extension Int8: Bindable, ColumnReadable {}
extension Int16: Bindable, ColumnReadable {}
extension Int32: Bindable, ColumnReadable {}
extension Int64: Bindable, ColumnReadable {}
extension UInt: Bindable, ColumnReadable {}
extension UInt8: Bindable, ColumnReadable {}
extension UInt16: Bindable, ColumnReadable {}
extension UInt32: Bindable, ColumnReadable {}
extension UInt64: Bindable, ColumnReadable {}

extension Double: Bindable, ColumnReadable {
    /// As REAL; NaN becomes NULL, because SQLite has none.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(self) }

    /// Reads a REAL, or an INTEGER rounded to the nearest.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.number() else { throw column.mismatch(Self.self) }
        self = stored
    }
}

extension Float: Bindable, ColumnReadable {
    /// As REAL; NaN becomes NULL, because SQLite has none.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(Double(self)) }

    /// Reads a REAL or an INTEGER, rounded to the nearest; one that only infinity could stand for is an error.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.number() else { throw column.mismatch(Self.self) }
        let value = Float(stored)
        guard value.isFinite || !stored.isFinite else { throw column.mismatch(Self.self, "that does not fit") }
        self = value
    }
}

extension Bool: Bindable, ColumnReadable {
    /// As INTEGER 0 or 1.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(self ? 1 : 0 as Int64) }

    /// Reads an INTEGER; all but 0 is true, as in SQLite.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.integer() else { throw column.mismatch(Self.self) }
        self = stored != 0
    }
}
