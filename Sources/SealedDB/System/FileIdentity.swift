import Foundation

/// A file of this process's own, known by what does not change when somebody renames another one to its name.
struct FileIdentity {
    private let status: stat
    private let path: String

    /// Creates the file, empty and for its owner alone. An existing one is an error.
    init(creating path: String) throws(DatabaseError) {
        let descriptor = try FileSystem.openExclusively(path)
        // Nothing is written by it.
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let number = errno
            // Nothing is in it. What stays is a leftover, which the next one removes.
            unlink(path)
            throw .system("Cannot examine \(path)", reason: .ioError, number: number)
        }
        self.status = status
        self.path = path
    }

    /// Whether a descriptor of this process is open on it.
    func isOpenInThisProcess() throws(DatabaseError) -> Bool {
        try !FileSystem.ownDescriptors(of: status, path).isEmpty
    }

    /// Whether this is its name.
    func isNamed(_ path: String) throws(DatabaseError) -> Bool {
        var found = stat()
        guard lstat(path, &found) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return found.isSameFile(as: status)
    }
}
