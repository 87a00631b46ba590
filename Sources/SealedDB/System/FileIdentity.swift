import Foundation

/// A file that this process created, identified by device and inode. Renaming another file to its name does not change
/// them.
struct FileIdentity {
    private let status: stat
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
    }

    /// Whether this process has a descriptor for the file.
    func isOpenInThisProcess() throws(DatabaseError) -> Bool {
        try !FileSystem.ownDescriptors(of: status, path).isEmpty
    }

    /// Whether the path names this file.
    func isNamed(_ path: String) throws(DatabaseError) -> Bool {
        var found = stat()
        guard lstat(path, &found) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return found.isSameFile(as: status)
    }
}
