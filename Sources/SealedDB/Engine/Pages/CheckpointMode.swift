/// How far a checkpoint goes, with SQLite's numbers. https://www.sqlite.org/c3ref/wal_checkpoint_v2.html
public enum CheckpointMode: Int32, Sendable {
    /// As much as is possible without waiting.
    case passive = 0
    /// Waits for writers and readers, so that everything is moved.
    case full = 1
    /// As full, and the next writer begins the log anew.
    case restart = 2
    /// As restart, and the log is cut to nothing.
    case truncate = 3
}
