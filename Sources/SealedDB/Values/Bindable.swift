import Foundation

/// A value that can be bound to a parameter of a statement.
///
/// The standard integers, `Double`, `Float`, `Bool`, `String`, `Substring`, `Data`, `[UInt8]`, `Date`, `UUID`, `URL`,
/// `Decimal`, `NSNull`, ``JSON``, ``SQLValue`` and optionals of these conform. An enum with a raw value only has to
/// declare the conformance. Another type binds the value that it consists of:
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
    /// Binds one value to the parameter. It is called once for each execution. If it throws or binds nothing, nothing
    /// is executed. If it binds several values, the last one counts.
    /// - Throws: ``DatabaseError`` if the value cannot be stored; see ``ParameterSlot/mismatch(_:_:)``. The call that
    ///   executes the statement throws it.
    func bind(to slot: borrowing ParameterSlot) throws(DatabaseError)
}

/// One parameter of a statement, while a value is being bound to it. It cannot be kept.
/// https://www.sqlite.org/c3ref/bind_blob.html
public struct ParameterSlot: ~Copyable {
    // Not retained: the caller of `bind(to:)` keeps the statement alive, and the slot cannot outlive that call.
    private let reference: Unmanaged<Statement>
    @usableFromInline var position: Int32
    /// The round of binding all parameters to which this slot belongs.
    @usableFromInline let round: Int32

    @usableFromInline
    init(statement: Statement, position: Int32 = 0) {
        reference = .passUnretained(statement)
        self.position = position
        round = statement.bindingRound
    }

    var statement: Statement { reference._withUnsafeGuaranteedRef { $0 } }

    /// The number of the parameter, from 1.
    public var index: Int32 { position }

    /// Binds NULL.
    /// - Throws: ``DatabaseError`` with what SQLite reports.
    public func bindNull() throws(DatabaseError) {
        guard reference._withUnsafeGuaranteedRef({ $0.bindNull(to: position) }) else { throw failure }
    }

    /// Binds the value as INTEGER.
    /// - Throws: ``DatabaseError`` with what SQLite reports.
    public func bind(_ value: Int64) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// Binds the value as REAL. NaN becomes NULL.
    /// - Throws: ``DatabaseError`` with what SQLite reports.
    public func bind(_ value: Double) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// Binds the value as TEXT, including NUL characters.
    /// - Throws: ``DatabaseError`` with what SQLite reports, such as `SQLITE_TOOBIG` for a value that is too long.
    public func bind(_ value: String) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// Binds a copy of the bytes as BLOB. Empty bytes are an empty blob, not NULL.
    /// - Throws: ``DatabaseError`` with what SQLite reports, such as `SQLITE_TOOBIG` for a value that is too long.
    public func bind(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) {
        guard reference._withUnsafeGuaranteedRef({ $0.bind(bytes, to: position) }) else { throw failure }
    }

    // These calls for the usual types return whether the value is bound, because a throwing call takes longer.

    @usableFromInline
    func accepts(_ value: Int64) -> Bool { reference._withUnsafeGuaranteedRef { $0.bind(value, to: position) } }

    @usableFromInline
    func accepts(_ value: Double) -> Bool { reference._withUnsafeGuaranteedRef { $0.bind(value, to: position) } }

    @usableFromInline
    func accepts(_ value: String) -> Bool { reference._withUnsafeGuaranteedRef { $0.bind(value, to: position) } }

    @usableFromInline
    var failure: DatabaseError {
        @inline(never) get { statement.bindingFailure }
    }

    /// Returns an error that says why a value of this type cannot be bound. Throw it from ``Bindable/bind(to:)``.
    public func mismatch(_ type: Any.Type, _ detail: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISMATCH,
            reason: .typeMismatch,
            message: "The \(type) for parameter \(index) \(detail). Nothing was executed.",
            sql: statement.sql
        )
    }
}

extension ParameterSlot {
    /// Binds the value to the next parameter. If the compiler knows the type, only the comparison that is true remains.
    /// The comparisons avoid `bind(to:)` for the usual types: the compiler (6.3) would not inline a protocol witness
    /// that throws a typed error, even if it knows the type.
    @inlinable
    @inline(__always)
    mutating func bindNext<Value: Bindable>(_ value: Value) throws(DatabaseError) {
        position &+= 1
        if Value.self == Int64.self || Value.self == Int.self {
            guard accepts(unsafeBitCast(value, to: Int64.self)) else { throw failure }
        } else if Value.self == Double.self {
            guard accepts(unsafeBitCast(value, to: Double.self)) else { throw failure }
        } else if Value.self == String.self {
            guard accepts(unsafeBitCast(value, to: String.self)) else { throw failure }
        } else {
            try value.bind(to: self)
        }
    }
}

extension Optional: Bindable where Wrapped: Bindable {
    /// Binds `nil` as NULL.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        if let self { try self.bind(to: slot) } else { try slot.bindNull() }
    }
}

extension RawRepresentable where Self: Bindable, RawValue: Bindable {
    /// Binds the raw value.
    /// - Throws: as the raw value does.
    @inlinable
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try rawValue.bind(to: slot) }
}
