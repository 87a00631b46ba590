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
            // A path that is not UTF-8 would be repaired, and could then be that of another store.
            if let path = String(validatingCString: resolved) { return path }
        }
        // "." and "/" always exist, unless the working directory was removed.
        let directory = path.directoryOfPath
        let known =
            switch directory {
            case ".": FileManager.default.currentDirectoryPath
            case "/": directory
            default: identity(of: directory)
            }
        return (known == "/" ? "" : known) + "/" + path.nameOfPath
    }
}
