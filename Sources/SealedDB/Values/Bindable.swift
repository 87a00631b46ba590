import Foundation

/// A value that can be bound to a parameter of a statement.
///
/// The standard integers, `Double`, `Float`, `Bool`, `String`, `Substring`, `Data`, `[UInt8]`, `Date`, `UUID`, `URL`,
/// `Decimal`, `NSNull`, ``JSON``, ``SQLValue`` and optionals of these conform. An enum with a raw value needs no more than to declare
/// it; another type binds what it consists of:
///
/// ```swift
/// enum Colour: String, Bindable { case red, green }
///
/// struct Celsius: Bindable {
///     var degrees: Double
///     func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try degrees.bind(to: slot) }
/// }
/// ```
public protocol Bindable {
    /// Binds one value to the parameter; called once for each execution. An error stops it before anything is executed.
    func bind(to slot: borrowing ParameterSlot) throws(DatabaseError)
}

/// One parameter of a statement, for as long as a value is being bound to it. It cannot be kept.
/// https://www.sqlite.org/c3ref/bind_blob.html
public struct ParameterSlot: ~Copyable {
    // Kept alive by the caller of `bind(to:)`, which the slot cannot outlive.
    unowned(unsafe) let statement: Statement
    let dateFormat: DateFormatter?
    @usableFromInline var position: Int32 = 0

    init(statement: Statement, dateFormat: DateFormatter?) {
        self.statement = statement
        self.dateFormat = dateFormat
    }

    /// Number of the parameter, from 1.
    public var index: Int32 { position }

    public func bindNull() throws(DatabaseError) { try statement.bindNull(at: index) }

    /// As INTEGER.
    public func bind(_ value: Int64) throws(DatabaseError) { try statement.bind(value, at: index) }

    /// As REAL; NaN becomes NULL.
    public func bind(_ value: Double) throws(DatabaseError) { try statement.bind(value, at: index) }

    /// As TEXT, with its embedded NULs.
    public func bind(_ value: String) throws(DatabaseError) { try statement.bind(value, at: index) }

    /// As BLOB, copied; no bytes are an empty blob, not NULL.
    public func bind(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) { try statement.bind(bytes, at: index) }

    /// An error that says why a value of this type cannot be bound, to be thrown from ``Bindable/bind(to:)``.
    public func mismatch(_ type: Any.Type, _ detail: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISMATCH,
            reason: .typeMismatch,
            message: "The \(type) for parameter \(index) \(detail). Nothing was executed.",
            sql: statement.sql
        )
    }
}

extension Optional: Bindable where Wrapped: Bindable {
    /// `nil` as NULL.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        if let self { try self.bind(to: slot) } else { try slot.bindNull() }
    }
}

extension RawRepresentable where Self: Bindable, RawValue: Bindable {
    /// Binds the raw value.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try rawValue.bind(to: slot) }
}
