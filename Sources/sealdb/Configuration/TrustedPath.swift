import Foundation
import SealedDB

/// Paths of files that decide what this user's commands do: nobody but root and this user may be able to change what such a
/// path leads to.
enum TrustedPath {
    /// What a path leads to, with all links followed.
    enum Target {
        case nothing
        case file(String, stat)
        case directory(String)
    }

    /// Follows the path from the root, and checks every directory and link on the way. A directory such as /tmp, where
    /// others may not rename the files of this user, may lie on the way, but not hold the target.
    static func target(of path: String) throws(Failure) -> Target {
        var names = components(of: path)
        if !path.begins(with: "/") {
            let working = FileManager.default.currentDirectoryPath
            guard working.begins(with: "/") else { throw failure("The working directory", "is gone") }
            names = components(of: working) + names
        }
        var rest = names[...]
        var directory = "/"
        var isShared = try isShared(directory)
        var linkCount = 0
        while let name = rest.popFirst() {
            if name == ".." {
                // All links in it are followed, so its parent is the one by name.
                directory = directory.directoryOfPath
                isShared = try self.isShared(directory)
                continue
            }
            let place = (directory == "/" ? "" : directory) + "/" + name
            guard let status = try status(of: place) else { return .nothing }
            switch status.st_mode & S_IFMT {
            case S_IFLNK:
                linkCount += 1
                guard linkCount <= 40 else { throw failure(path, "leads through too many links") }
                try requireOwner(status, place)
                // In a directory that others may write to, they could have put a link of this user to another use.
                guard !isShared else { throw failure(place, "is a link in a directory that other users may write to") }
                let target = try destination(of: place)
                if target.begins(with: "/") {
                    directory = "/"
                    isShared = try self.isShared(directory)
                }
                rest = (components(of: target) + rest)[...]
            case S_IFDIR:
                directory = place
                isShared = try self.isShared(directory)
            default:
                guard rest.isEmpty else { return .nothing }
                guard !isShared else { throw failure(place, "lies in a directory that other users may write to") }
                try requireOwner(status, place)
                return .file(place, status)
            }
        }
        guard !isShared else { throw failure(directory, "may be written to by other users; chmod go-w it") }
        return .directory(directory)
    }

    private static func components(of path: String) -> [String] {
        path.parts(between: "/").map(String.init).filter { !$0.isEmpty && !$0.isSame(as: ".") }
    }

    /// - Returns: `nil` if there is nothing.
    private static func status(of place: String) throws(Failure) -> stat? {
        var status = stat()
        if lstat(place, &status) == 0 { return status }
        let number = errno
        if number == ENOENT || number == ENOTDIR { return nil }
        throw failure(place, "cannot be examined: \(String(cString: strerror(number)))")
    }

    /// Whether others may write to a directory, although they may not rename what is not theirs.
    /// - Throws: if others may rename everything in it.
    private static func isShared(_ directory: String) throws(Failure) -> Bool {
        guard let status = try status(of: directory) else { throw failure(directory, "is gone") }
        try requireOwner(status, directory)
        guard status.st_mode & 0o022 != 0 else { return false }
        guard status.st_mode & S_ISVTX != 0 else {
            throw failure(directory, "may be written to by other users; chmod go-w it")
        }
        return true
    }

    private static func requireOwner(_ status: stat, _ place: String) throws(Failure) {
        guard [0, geteuid()].contains(status.st_uid) else {
            throw failure(place, "belongs to another user; take a file of yours, or of root")
        }
    }

    private static func destination(of link: String) throws(Failure) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &buffer, buffer.count)
        guard count >= 0 else {
            throw failure(link, "cannot be followed: \(String(cString: strerror(errno)))")
        }
        guard let target = String(validating: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) else {
            throw failure(link, "leads to a name that is not UTF-8")
        }
        return target
    }

    private static func failure(_ place: String, _ problem: String) -> Failure {
        Failure(.configuration, "\(place) \(problem).")
    }
}
