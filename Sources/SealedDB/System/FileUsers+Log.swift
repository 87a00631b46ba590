import Foundation

extension FileUsers {
    /// What a process that may use the log beside a path has to do with the file at that path.
    enum LogUse: Equatable {
        case ofThisFile, ofAnother, unknown
        /// It has ended, or only reads the log, as a program does that copies files.
        case none
    }

    /// A store, and the files that lie beside it at this moment, as the table of locks names them.
    struct Place {
        let path: String
        let store: String
        let log: String?
        let index: String?
    }

    /// Tells from the locks and descriptors of a process whose log it uses.
    ///
    /// SQLite has the log of a store beside the name that the store had when the log was opened, and a lock on the store as long
    /// as it uses the log. So a locked file that now has another name than its log is looked for.
    static func logUse(of place: Place, by process: Int32, _ table: LockTable) -> LogUse {
        let locked = table.files(lockedBy: process)
        // Who has no other store in use needs no further look.
        if locked == .init(stores: [place.store], indexes: place.index.map { [$0] } ?? []) { return .ofThisFile }
        // Who may not be looked at, and has a lock on the store, is taken for one who uses it with its log.
        let unknown: LogUse = locked.stores.contains(place.store) ? .ofThisFile : .unknown
        guard let numbers = FileSystem.names(in: "/proc/\(process)/fd") else {
            return [ENOENT, ESRCH].contains(errno) ? .none : unknown
        }
        var files: [OpenFile] = []
        for number in numbers {
            switch OpenFile.at("/proc/\(process)/fd/\(number)") {
            case .file(let file): files.append(file)
            case .noFile: continue
            case .unknown: return unknown
            }
        }
        return LogUser(place: place, locked: locked, files: files).use
    }

    /// What a descriptor of another process leads to.
    private struct OpenFile {
        enum Answer { case file(OpenFile), noFile, unknown }

        let id: String
        /// Its name now, as that process sees it, or the last one that it had.
        let name: String
        let isDeleted: Bool
        let isForWriting: Bool

        static func at(_ link: String) -> Answer {
            var found = stat()
            var own = stat()
            var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX) + 16)
            let count = readlink(link, &buffer, buffer.count)
            // What has no path is a pipe or the like. If this fails, it was closed meanwhile, or may not be looked at.
            if count > 0, buffer[0] != UInt8(ascii: "/") { return .noFile }
            guard count > 0, stat(link, &found) == 0, lstat(link, &own) == 0 else {
                return [EACCES, EPERM, ENOMEM].contains(errno) ? .unknown : .noFile
            }
            let name = String(decoding: buffer.prefix(count), as: UTF8.self)
            let mark = " (deleted)"
            let isDeleted = name.ends(with: mark)
            return .file(
                OpenFile(
                    id: LockTable.name(of: found),
                    name: isDeleted ? name.withoutLast(bytes: mark.utf8.count) : name,
                    isDeleted: isDeleted,
                    // The link of a descriptor has the permissions of that.
                    isForWriting: own.st_mode & S_IWUSR != 0
                )
            )
        }
    }

    private struct LogUser {
        let place: Place
        let locked: LockTable.SQLiteFiles
        let files: [OpenFile]

        var use: LogUse {
            let usesIndex = place.index.map { locked.indexes.contains($0) } ?? false || has { $0.id == place.index }
            guard usesIndex || has({ $0.id == place.log && $0.isForWriting }) else { return .none }
            guard has({ $0.id == place.store }) || locked.stores.contains(place.store) else { return .ofAnother }
            let name = storeName
            let lost = files.filter { locked.stores.contains($0.id) && $0.id != place.store && !hasFilesBeside($0) }
            // In a rollback mode a store has no log. So one that has none may be a store of its own, if this one has a lock.
            guard locked.stores.contains(place.store) else {
                // Who reads the new file for another purpose has the former one open all the same.
                return lost.isEmpty && !has { $0.isDeleted && $0.name.isSame(as: name) } ? .ofThisFile : .ofAnother
            }
            let wasHere = lost.contains { $0.isDeleted && $0.name.isSame(as: name) }
            return wasHere || (!lost.isEmpty && hasLostIndex) ? .ofAnother : .ofThisFile
        }

        /// The path, as the process sees it.
        private var storeName: String {
            for file in files where !file.isDeleted {
                for (id, suffix) in [(place.index, "-shm"), (place.log, "-wal")]
                where file.id == id && file.name.ends(with: suffix) {
                    return file.name.withoutLast(bytes: suffix.utf8.count)
                }
            }
            return place.path
        }

        /// Whether a store has a log or journal of its own by its present name.
        private func hasFilesBeside(_ store: OpenFile) -> Bool {
            has { file in
                file.id != place.log && file.id != place.index
                    && ["-shm", "-wal", "-journal"].contains { file.name.isSame(as: store.name + $0) }
            }
        }

        /// Whether the index of another log is in use that has no store by its name. Then it is that of a store that was renamed:
        /// this one, or an unknown one.
        private var hasLostIndex: Bool {
            let name = storeName
            return has { index in
                guard locked.indexes.contains(index.id), index.id != place.index, index.name.ends(with: "-shm") else {
                    return false
                }
                let store = index.name.withoutLast(bytes: 4)
                // A former index of this path belongs to a former file.
                return !store.isSame(as: name) && !has { $0.name.isSame(as: store) }
            }
        }

        private func has(_ isWanted: (OpenFile) -> Bool) -> Bool { files.contains(where: isWanted) }
    }
}
