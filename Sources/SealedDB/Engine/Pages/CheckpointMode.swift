/// How far a checkpoint goes. The raw values are SQLite's. https://www.sqlite.org/c3ref/wal_checkpoint_v2.html
public enum CheckpointMode: Int32, Sendable {
    /// Moves as many frames as possible without waiting.
    case passive = 0
    /// Waits for writers and readers, so that all frames are moved.
    case full = 1
    /// Does the same as ``full``, and the next writer restarts the log from the beginning.
    case restart = 2
    /// Does the same as ``restart``, and truncates the log to zero bytes.
    case truncate = 3
}
