import Foundation

/// What tells whether anybody has written to a store: its file, and the log beside it.
struct StoreState: Equatable {
    private let device: dev_t
    private let inode: ino_t
    private let size: off_t
    private let modified: Moment
    /// Whether nothing is in the log that is not in the file.
    private let hasLog: Bool

    /// Of a store of which no connection of this process writes now.
    /// - Returns: `nil` if a later write might not show.
    static func settled(_ path: String) throws(DatabaseError) -> StoreState? {
        let state = try StoreState(of: path)
        // File systems that count whole seconds do not tell two writes apart.
        guard !state.hasLog, state.modified.nanoseconds != 0 else { return nil }
        // The kernel dates writes by a clock that ticks a few hundred times a second.
        for _ in 0..<50 {
            var now = timespec()
            // This clock is always there.
            clock_gettime(CLOCK_REALTIME_COARSE, &now)
            if state.modified < Moment(now) { return state }
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            // A signal may end it early.
            nanosleep(&pause, nil)
        }
        return nil
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

/// Not a sum: files may be dated further than 64 bits of nanoseconds go.
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
