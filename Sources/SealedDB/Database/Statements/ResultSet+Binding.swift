/// Typed binding for some usual numbers of values.
///
/// The compiler (6.3) calls what is in a parameter pack through its witnesses, value by value, and copies it first. It
/// specialises these for the types that they are called with.
extension ResultSet {
    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable>(_ a: A) throws(DatabaseError) {
        var slot = try startBinding(1)
        try bind(a, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable>(_ a: A, _ b: B) throws(DatabaseError) {
        var slot = try startBinding(2)
        try bind(a, &slot)
        try bind(b, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable>(_ a: A, _ b: B, _ c: C) throws(DatabaseError) {
        var slot = try startBinding(3)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable, D: Bindable>(
        _ a: A,
        _ b: B,
        _ c: C,
        _ d: D
    ) throws(DatabaseError) {
        var slot = try startBinding(4)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try bind(d, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable, D: Bindable, E: Bindable>(
        _ a: A,
        _ b: B,
        _ c: C,
        _ d: D,
        _ e: E
    ) throws(DatabaseError) {
        var slot = try startBinding(5)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try bind(d, &slot)
        try bind(e, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable, D: Bindable, E: Bindable, F: Bindable>(
        _ a: A,
        _ b: B,
        _ c: C,
        _ d: D,
        _ e: E,
        _ f: F
    ) throws(DatabaseError) {
        var slot = try startBinding(6)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try bind(d, &slot)
        try bind(e, &slot)
        try bind(f, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable, D: Bindable, E: Bindable, F: Bindable, G: Bindable>(
        _ a: A,
        _ b: B,
        _ c: C,
        _ d: D,
        _ e: E,
        _ f: F,
        _ g: G
    ) throws(DatabaseError) {
        var slot = try startBinding(7)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try bind(d, &slot)
        try bind(e, &slot)
        try bind(f, &slot)
        try bind(g, &slot)
        try endBinding(slot)
    }

    /// As ``bind(_:)``.
    @inlinable
    public func bind<
        A: Bindable,
        B: Bindable,
        C: Bindable,
        D: Bindable,
        E: Bindable,
        F: Bindable,
        G: Bindable,
        H: Bindable
    >(
        _ a: A,
        _ b: B,
        _ c: C,
        _ d: D,
        _ e: E,
        _ f: F,
        _ g: G,
        _ h: H
    ) throws(DatabaseError) {
        var slot = try startBinding(8)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try bind(d, &slot)
        try bind(e, &slot)
        try bind(f, &slot)
        try bind(g, &slot)
        try bind(h, &slot)
        try endBinding(slot)
    }

    @inlinable
    @inline(__always)
    func bind<Value: Bindable>(_ value: Value, _ slot: inout ParameterSlot) throws(DatabaseError) {
        do throws(DatabaseError) {
            try slot.bindNext(value)
        } catch {
            throw recorded(error)
        }
    }
}
