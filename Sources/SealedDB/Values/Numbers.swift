// How numbers are bound and read.

extension FixedWidthInteger where Self: Bindable {
    /// Binds an INTEGER. A `UInt64` beyond `Int64.max` keeps its bits, as in FMDB, and is negative in SQL.
    /// - Throws: ``DatabaseError/Reason/typeMismatch`` for types of more than 64 bits.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        guard Self.bitWidth <= 64 else { throw slot.mismatch(Self.self, "is wider than 64 bits") }
        try slot.bind(Int64(truncatingIfNeeded: self))
    }
}

extension FixedWidthInteger where Self: ColumnReadable {
    /// Reads an INTEGER that fits. An unsigned 64-bit type takes the bits of the `Int64`.
    /// - Throws: ``DatabaseError/Reason/typeMismatch`` for another type than INTEGER, and for a number that does not
    ///   fit.
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
    /// Binds a REAL. NaN becomes NULL, because SQLite has no NaN.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(self) }

    /// Reads a REAL, or an INTEGER rounded to the nearest value.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.number() else { throw column.mismatch(Self.self) }
        self = stored
    }
}

extension Float: Bindable, ColumnReadable {
    /// Binds a REAL. NaN becomes NULL, because SQLite has no NaN.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(Double(self)) }

    /// Reads a REAL or an INTEGER, rounded to the nearest value. It is an error if a finite value would become
    /// infinite.
    public init(column: borrowing Column) throws(DatabaseError) {
        // By way of a Double an INTEGER would be rounded twice.
        if let stored = column.integer() {
            self = Float(stored)
            return
        }
        guard let stored = column.number() else { throw column.mismatch(Self.self) }
        let value = Float(stored)
        guard value.isFinite || !stored.isFinite else { throw column.mismatch(Self.self, "that does not fit") }
        self = value
    }
}

extension Bool: Bindable, ColumnReadable {
    /// Binds an INTEGER, 0 or 1.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(self ? 1 : 0 as Int64) }

    /// Reads an INTEGER. Every value except 0 is true, as in SQLite.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let stored = column.integer() else { throw column.mismatch(Self.self) }
        self = stored != 0
    }
}
