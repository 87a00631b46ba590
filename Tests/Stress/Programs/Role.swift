/// What kinds of operations a client does.
enum Role: String, Codable, CaseIterable, Sendable {
    /// Changes rows through the service's queue or pool.
    case writer
    /// Reads what others have written.
    case reader
    /// Compacts, checkpoints, sets pragmas.
    case janitor
    /// Gives the store new keys while it is used.
    case keeper
}
