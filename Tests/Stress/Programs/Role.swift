/// What kinds of operations a client does.
enum Role: String, Codable, CaseIterable, Sendable {
    // On the queue or pool of a service, several at a time.

    /// Changes rows.
    case writer
    /// Reads what others have written.
    case reader
    /// Compacts, checkpoints, sets pragmas, backs up.
    case janitor
    /// Lets the store grow and shrink.
    case tide
    /// Gives the store new keys while it is used.
    case keeper

    // In a process beside the service.

    /// Uses the store with a `Database` of its own.
    case peer
    /// Uses it by the command and SQLCipher's shell.
    case visitor

    // Alone.

    /// Does everything that a `Database` can, one after the other.
    case soloist
    /// Does everything that needs the store for itself, by the command and the library.
    case custodian
}
