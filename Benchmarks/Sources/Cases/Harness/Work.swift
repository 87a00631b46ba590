/// A piece of work that can be repeated: what one subject does in one case. Its files and connections live as long as
/// the closures that hold them.
struct Work {
    /// How many units of the case one pass does.
    let units: Double
    /// Whether every pass costs the same, so that one that took longer was interrupted by something else. Otherwise
    /// some passes pay for others, as the commit does that moves a write-ahead log into the store.
    let isUniform: Bool
    /// Makes the next pass possible; not measured.
    let before: () throws -> Void
    /// The work. What it returns is the same for all subjects of a case, which shows that they did the same.
    let pass: () throws -> UInt64

    init(
        units: Int,
        isUniform: Bool = true,
        before: @escaping () throws -> Void = {},
        pass: @escaping () throws -> UInt64
    ) {
        self.units = Double(units)
        self.isUniform = isUniform
        self.before = before
        self.pass = pass
    }
}

/// Makes a subject's work for a case.
typealias Maker = (Fixtures) throws -> Work

/// What a benchmark cannot go on from.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
