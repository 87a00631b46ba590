import Foundation
internal import SQLiteEngine

/// Knows for which file each connection of this process uses a log. The locks of a process do not tell: it has them by its files,
/// and not by its connections.
enum OpenLogs {
    private struct Log {
        /// SQLite's file of the store.
        let main: UnsafeMutablePointer<sqlite3_file>
        /// The file that the connection has open; `nil` if the path was that of another one already when the log was opened.
        let store: stat?
        let log: stat?
        /// The index, once the connection has it.
        var index: stat?
    }

    private struct Logs {
        /// By SQLite's files of the logs.
        var all: [UnsafeMutablePointer<sqlite3_file>: Log] = [:]
        /// The files of the logs whose index is not known, by the main files.
        var withoutIndex: [UnsafeMutablePointer<sqlite3_file>: UnsafeMutablePointer<sqlite3_file>] = [:]
    }

    private static let logs = Guarded(Logs())

    /// Call this when SQLite has opened a log.
    /// - Parameter name: as SQLite has given it to the VFS.
    static func add(_ log: UnsafeMutablePointer<sqlite3_file>, _ name: sqlite3_filename) {
        // The name of a log always has these two.
        guard let path = sqlite3_filename_database(name), let main = sqlite3_database_file_object(name) else { return }
        var store = status(path)
        var hasMoved: Int32 = 0
        // SQLite's own file was at the path before and after it was looked at, so that was it.
        if let methods = main.pointee.pMethods,
            methods.pointee.xFileControl(main, SQLITE_FCNTL_HAS_MOVED, &hasMoved) != SQLITE_OK || hasMoved != 0
        {
            store = nil
        }
        let new = Log(main: main, store: store, log: status(name), index: nil)
        logs.withLock { logs in
            logs.all[log] = new
            logs.withoutIndex[main] = log
        }
    }

    /// Call this when SQLite has mapped the index of a store's log.
    static func noteIndex(of main: UnsafeMutablePointer<sqlite3_file>, _ path: String) {
        logs.withLock { logs in
            guard let log = logs.withoutIndex[main] else { return }
            // SQLite has one index for all connections to the same file, whatever has its name now.
            let store = logs.all[log]?.store
            let shared = logs.all.values.first { $0.index != nil && isSame($0.store, store) }
            guard let index = shared?.index ?? status(path + "-shm") else { return }
            logs.all[log]?.index = index
            logs.withoutIndex[main] = nil
        }
    }

    static func remove(_ log: UnsafeMutablePointer<sqlite3_file>) {
        logs.withLock { logs in
            guard let main = logs.all.removeValue(forKey: log)?.main, logs.withoutIndex[main] == log else { return }
            logs.withoutIndex[main] = nil
        }
    }

    /// Whether connections of this process use a log or index for a file.
    /// - Returns: false if one of them uses it for another file; `nil` if none uses it.
    static func use(ofLog log: stat?, _ index: stat?, for store: stat) -> Bool? {
        logs.withLock { logs in
            var isUsed: Bool?
            for use in logs.all.values where isSame(use.log, log) || isSame(use.index, index) {
                guard isSame(use.store, store) else { return false }
                isUsed = true
            }
            return isUsed
        }
    }

    private static func isSame(_ first: stat?, _ second: stat?) -> Bool {
        guard let first, let second else { return false }
        return first.isSameFile(as: second)
    }

    private static func status(_ path: UnsafePointer<CChar>) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }
}
