import SealedDB

/// An error of one statement of a script, with its place.
struct LocatedError: Error {
    let error: DatabaseError
    /// The number of the statement, from 1.
    let number: Int
    let line: Int
    let column: Int

    var message: String { "Statement \(number), line \(line), column \(column): \(error.message)" }
}
