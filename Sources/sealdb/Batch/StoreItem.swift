import Foundation
import SealedDB

/// One of the stores that a command works on.
struct StoreItem: Sendable {
    /// The name by which the user gave it.
    let name: String
    /// The path by which it is opened.
    let path: String
    /// Absolute path, with symbolic links followed as far as files exist. Two names with the same identity mean the
    /// same store.
    let identity: String

    init(_ name: String) throws(Failure) {
        self.name = name
        path = try Store.literalPath(name)
        identity = StoreItem.identity(of: path)
    }

    /// Size of the file in bytes; 0 if it cannot be examined.
    var size: Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }

    static func identity(of path: String) -> String {
        if let resolved = realpath(path, nil) {
            defer { free(resolved) }
            return String(cString: resolved)
        }
        let directory = path.directoryOfPath
        guard let resolved = realpath(directory, nil) else {
            return path.begins(with: "/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        }
        defer { free(resolved) }
        let known = String(cString: resolved)
        return (known == "/" ? "" : known) + "/" + path.nameOfPath
    }
}
