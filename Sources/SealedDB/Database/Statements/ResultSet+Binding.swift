/// Typed binding for the usual numbers of values.
///
/// For a parameter pack, the compiler (6.3) copies each value and calls it through its protocol witness. It specializes
/// these methods for the types of their arguments.
extension ResultSet {
    /// Like ``bind(_:)-(Value)``, for one value.
    @inlinable
    public func bind<A: Bindable>(_ a: A) throws(DatabaseError) {
        var slot = try startBinding(1)
        try bind(a, &slot)
        try endBinding(slot)
    }

    /// Like ``bind(_:)-(Value)``, for two values.
    @inlinable
    public func bind<A: Bindable, B: Bindable>(_ a: A, _ b: B) throws(DatabaseError) {
        var slot = try startBinding(2)
        try bind(a, &slot)
        try bind(b, &slot)
        try endBinding(slot)
    }

    /// Like ``bind(_:)-(Value)``, for three values.
    @inlinable
    public func bind<A: Bindable, B: Bindable, C: Bindable>(_ a: A, _ b: B, _ c: C) throws(DatabaseError) {
        var slot = try startBinding(3)
        try bind(a, &slot)
        try bind(b, &slot)
        try bind(c, &slot)
        try endBinding(slot)
    }

    /// Like ``bind(_:)-(Value)``, for four values.
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

    /// Like ``bind(_:)-(Value)``, for five values.
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

    /// Like ``bind(_:)-(Value)``, for six values.
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

    /// Like ``bind(_:)-(Value)``, for seven values.
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

    /// Like ``bind(_:)-(Value)``, for eight values.
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
