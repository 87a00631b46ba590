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
        return FileSystem.waitForClock(toPass: state.modified.time) ? state : nil
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
private struct Moment: Equatable {
    let seconds: Int
    let nanoseconds: Int

    var time: timespec { timespec(tv_sec: seconds, tv_nsec: nanoseconds) }

    init(_ time: timespec) {
        seconds = time.tv_sec
        nanoseconds = time.tv_nsec
    }
}
