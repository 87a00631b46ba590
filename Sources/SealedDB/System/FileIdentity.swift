internal import CSealedDBSystem
import Foundation

/// A file that this process created, or has found, identified by device, inode and the time of its creation. Renaming another file to
/// its name does not change them. The number of an inode is given to another file once the file is removed.
struct FileIdentity {
    private let status: stat
    private let birthTime: BirthTime?
    private let path: String

    /// Creates an empty file that only its owner may access. Throws if the path exists.
    init(creating path: String) throws(DatabaseError) {
        let descriptor = try FileSystem.openExclusively(path)
        // Nothing is written through this descriptor, so closing it loses nothing.
        defer { close(descriptor) }
        do throws(DatabaseError) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .unexamined(path) }
            self.status = status
            birthTime = try BirthTime.of(descriptor, path)
        } catch {
            // The file is empty. If it cannot be removed, the next cleanup of leftovers removes it.
            unlink(path)
            throw error
        }
        self.path = path
    }

    /// A file that another process of this user has left.
    /// - Returns: `nil` if it is none that this process could have made: not a regular file, somebody else's, or one with
    ///   another name.
    init?(ofLeftover path: String) throws(DatabaseError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .unexamined(path) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_nlink == 1 else { return nil }
        self.status = status
        birthTime = try BirthTime.of(path)
        self.path = path
    }

    /// What is at a path now, be it a file or a directory, or a link to one.
    /// - Returns: `nil` if nothing is.
    init?(ofExisting path: String) throws(DatabaseError) {
        guard let status = try FileSystem.statusIfPresent(path) else { return nil }
        self.status = status
        birthTime = try BirthTime.of(path)
        self.path = path
    }

    /// Whether this process has a descriptor for the file.
    func isOpenInThisProcess() throws(DatabaseError) -> Bool {
        for descriptor in try FileSystem.ownDescriptors(of: status, path) {
            if try BirthTime.of(descriptor, path) == birthTime { return true }
        }
        return false
    }

    /// Opens the file again, for reading and writing.
    /// - Returns: `nil` if the path names another file now.
    func open() throws(DatabaseError) -> Int32? {
        let descriptor = sealeddb_open(path, O_RDWR | O_NOFOLLOW, 0)
        guard descriptor >= 0 else {
            let number = errno
            throw .system("Cannot open \(path)", reason: number == EACCES ? .notPermitted : .ioError, number: number)
        }
        do throws(DatabaseError) {
            var found = stat()
            guard fstat(descriptor, &found) == 0 else { throw .unexamined(path) }
            if found.isSameFile(as: status), try BirthTime.of(descriptor, path) == birthTime { return descriptor }
        } catch {
            close(descriptor)  // Nothing was written.
            throw error
        }
        close(descriptor)  // Nothing was written.
        return nil
    }

    /// Whether both are the same file, and not one that got the inode of the other.
    func isSame(as other: FileIdentity) -> Bool {
        status.isSameFile(as: other.status) && birthTime == other.birthTime
    }

    /// Whether the path names this file.
    func isNamed(_ path: String) throws(DatabaseError) -> Bool {
        var found = stat()
        guard lstat(path, &found) == 0 else { throw .unexamined(path) }
        guard found.isSameFile(as: status) else { return false }
        return try BirthTime.of(path) == birthTime
    }
}

/// When a file was created.
private struct BirthTime: Equatable {
    private var seconds: Int64 = 0
    private var nanoseconds: UInt32 = 0

    /// - Returns: `nil` if the system does not tell it. It does so for all files of a file system.
    static func of(_ path: String) throws(DatabaseError) -> BirthTime? {
        try read(AT_FDCWD, path, name: path)
    }

    static func of(_ descriptor: Int32, _ path: String) throws(DatabaseError) -> BirthTime? {
        try read(descriptor, "", name: path)
    }

    private static func read(
        _ descriptor: Int32,
        _ path: String,
        name: String
    ) throws(DatabaseError) -> BirthTime? {
        var time = BirthTime()
        switch sealeddb_birth_time(descriptor, path, &time.seconds, &time.nanoseconds) {
        case 0: return nil
        case 1: return time
        default: throw .unexamined(name)
        }
    }
}

extension DatabaseError {
    fileprivate static func unexamined(_ path: String) -> DatabaseError {
        .system("Cannot examine \(path)", reason: .ioError)
    }
}
