/// A promise that was broken.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What a block throws that is to fail.
struct Unwanted: Error {}
