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
    /// Binds one value to the parameter; called once for each execution. Nothing is executed if it throws, or binds nothing.
    /// Of several values the last one counts.
    func bind(to slot: borrowing ParameterSlot) throws(DatabaseError)
}

/// One parameter of a statement, for as long as a value is being bound to it. It cannot be kept.
/// https://www.sqlite.org/c3ref/bind_blob.html
public struct ParameterSlot: ~Copyable {
    // Kept alive by the caller of `bind(to:)`, which the slot cannot outlive.
    private let reference: Unmanaged<Statement>
    @usableFromInline var position: Int32
    /// Which binding of all parameters it is a part of.
    @usableFromInline let round: Int32

    @usableFromInline
    init(statement: Statement, position: Int32 = 0) {
        reference = .passUnretained(statement)
        self.position = position
        round = statement.bindingRound
    }

    var statement: Statement { reference._withUnsafeGuaranteedRef { $0 } }

    /// Number of the parameter, from 1.
    public var index: Int32 { position }

    public func bindNull() throws(DatabaseError) {
        guard reference._withUnsafeGuaranteedRef({ $0.bindNull(to: position) }) else { throw failure }
    }

    /// As INTEGER.
    public func bind(_ value: Int64) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// As REAL; NaN becomes NULL.
    public func bind(_ value: Double) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// As TEXT, with its embedded NULs.
    public func bind(_ value: String) throws(DatabaseError) {
        guard accepts(value) else { throw failure }
    }

    /// As BLOB, copied; no bytes are an empty blob, not NULL.
    public func bind(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) {
        guard reference._withUnsafeGuaranteedRef({ $0.bind(bytes, to: position) }) else { throw failure }
    }

    // For the usual types, whether it is bound: a call that throws takes longer.

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

extension ParameterSlot {
    /// Binds the value to the next parameter. Of the comparisons the one that holds remains, where the type is known:
    /// the compiler (6.3) would call even then a witness that throws a typed error, and could not see into it.
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
