import Foundation

/// One store of those that a command works on.
struct StoreItem: Sendable {
    /// As the user named it.
    let name: String
    /// What it is opened by.
    let path: String
    /// Absolute, and symbolic links followed as far as there are files: tells whether two names mean one store.
    let identity: String

    init(_ name: String) throws(Failure) {
        self.name = name
        path = try Store.literalPath(name)
        identity = StoreItem.identity(of: path)
    }

    /// Bytes of the file; 0 if it cannot be examined.
    var size: Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }

    static func identity(of path: String) -> String {
        if let resolved = realpath(path, nil) {
            defer { free(resolved) }
            return String(cString: resolved)
        }
        let url = URL(fileURLWithPath: path)
        let directory = url.deletingLastPathComponent().resolvingSymlinksInPath().path
        return (directory == "/" ? "" : directory) + "/" + url.lastPathComponent
    }
}
