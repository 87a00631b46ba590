internal import CSealedDBSystem
import Foundation

/// A file that this process created, identified by device, inode and the time of its creation. Renaming another file to
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
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let number = errno
            // The file is empty. If it cannot be removed, the next cleanup of leftovers removes it.
            unlink(path)
            throw .system("Cannot examine \(path)", reason: .ioError, number: number)
        }
        self.status = status
        self.path = path
        birthTime = BirthTime(descriptor: descriptor)
    }

    /// Whether this process has a descriptor for the file.
    func isOpenInThisProcess() throws(DatabaseError) -> Bool {
        try FileSystem.ownDescriptors(of: status, path).contains { BirthTime(descriptor: $0) == birthTime }
    }

    /// Whether the path names this file.
    func isNamed(_ path: String) throws(DatabaseError) -> Bool {
        var found = stat()
        guard lstat(path, &found) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return found.isSameFile(as: status) && BirthTime(path) == birthTime
    }
}

/// When a file was created.
private struct BirthTime: Equatable {
    private var seconds: Int64 = 0
    private var nanoseconds: UInt32 = 0

    /// - Returns: `nil` if the file system does not tell it. It does so for all its files.
    init?(_ path: String) {
        guard sealeddb_birth_time(AT_FDCWD, path, &seconds, &nanoseconds) != 0 else { return nil }
    }

    init?(descriptor: Int32) {
        guard sealeddb_birth_time(descriptor, "", &seconds, &nanoseconds) != 0 else { return nil }
    }
}
