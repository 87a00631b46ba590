import Foundation

/// The attributes of a store's file and of its log that show whether anybody has written to the store.
struct StoreState: Equatable {
    private let device: dev_t
    private let inode: ino_t
    private let size: off_t
    private let modified: Moment
    /// Whether the log beside the file holds any bytes. If it does, it may hold something that the file does not.
    private let hasLog: Bool

    /// The state of a store to which no connection of this process is writing now.
    /// - Returns: `nil` if a later write might leave the state as it is, or if the log is not empty.
    static func settled(_ path: String) throws(DatabaseError) -> StoreState? {
        guard let state = try settledFile(path), !state.hasLog else { return nil }
        return state
    }

    /// The same for the file alone, whatever is in the log.
    static func settledFile(_ path: String) throws(DatabaseError) -> StoreState? {
        let state = try StoreState(of: path)
        // On file systems that only count whole seconds, two writes can have the same time. Their times have no
        // nanoseconds.
        guard state.modified.nanoseconds != 0 else { return nil }
        // The kernel dates writes by a clock that ticks only a few hundred times a second. Wait for its next tick.
        for _ in 0..<50 {
            var now = timespec()
            // The result does not matter: this clock always exists.
            clock_gettime(CLOCK_REALTIME_COARSE, &now)
            if state.modified < Moment(now) { return state }
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            // A signal may end the pause early.
            nanosleep(&pause, nil)
        }
        return nil
    }

    /// Whether the files are the same one, and nobody has written to it between the two. What is in the logs does not count.
    func hasSameFile(as other: StoreState) -> Bool {
        device == other.device && inode == other.inode && size == other.size && modified == other.modified
    }

    init(of path: String) throws(DatabaseError) {
        let status = try FileSystem.status(path)
        device = status.st_dev
        inode = status.st_ino
        size = status.st_size
        modified = Moment(status.st_mtim)
        var log = stat()
        hasLog = stat(path + "-wal", &log) == 0 && log.st_size > 0
    }
}

/// A time of modification. It is not a single number, because files may have dates that 64 bits of nanoseconds cannot
/// hold.
private struct Moment: Comparable {
    let seconds: Int
    let nanoseconds: Int

    init(_ time: timespec) {
        seconds = time.tv_sec
        nanoseconds = time.tv_nsec
    }

    static func < (first: Moment, second: Moment) -> Bool {
        (first.seconds, first.nanoseconds) < (second.seconds, second.nanoseconds)
    }
}
