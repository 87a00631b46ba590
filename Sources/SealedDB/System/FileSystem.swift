internal import CSealedDBSystem
import Foundation

/// The calls that make a new file durable and like the old one.
enum FileSystem {
    /// Absolute path with symbolic links followed; `nil` with `errno` if there is no such file.
    static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func name(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// A failed fsync is never repeated: the kernel may have dropped the pages.
    static func synchronize(_ path: String, flags: Int32 = O_RDONLY) throws(DatabaseError) {
        let descriptor = sealeddb_open(path, flags, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(path) to sync it", reason: .ioError) }
        // Nothing is written by it.
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(path) to disk", reason: .ioError) }
    }

    /// Syncs an open file or directory, unless it is on a file system that cannot: a read-only or a virtual one.
    static func synchronizeIfPossible(_ descriptor: Int32, _ path: String) throws(DatabaseError) {
        guard fsync(descriptor) != 0, ![EROFS, EINVAL, ENOTSUP].contains(errno) else { return }
        throw .system("Cannot sync \(path) to disk", reason: .ioError)
    }

    static func synchronizeDirectory(of path: String) throws(DatabaseError) {
        try synchronize(directory(of: path), flags: O_RDONLY | O_DIRECTORY)
    }

    /// Creates an empty file for the owner alone; an existing one is an error.
    static func createExclusively(_ path: String) throws(DatabaseError) {
        // Nothing is written yet.
        close(try openExclusively(path))
    }

    /// As above, open to be read and written.
    static func openExclusively(_ path: String) throws(DatabaseError) -> Int32 {
        let descriptor = sealeddb_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            throw .system(
                "Cannot create \(path)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
        return descriptor
    }

    /// Gives `copy` the owner, mode and extended attributes of `original`.
    static func copyAttributes(from original: String, to copy: String) throws(DatabaseError) {
        let descriptor = sealeddb_open(copy, O_RDWR | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(copy)", reason: .ioError) }
        // Attributes do not wait to be written, and are synced with the copy.
        defer { close(descriptor) }
        var step: UnsafePointer<CChar>?
        guard sealeddb_copy_attributes(original, descriptor, &step) == 0 else {
            let number = errno
            let name = step.map { String(cString: $0) } ?? "?"
            throw .system(
                "The new file cannot get the owner, mode and attributes of \(original) (\(name))",
                reason: .ownershipNotKept,
                number: number
            )
        }
    }

    static func freeSpace(at path: String) throws(DatabaseError) -> Int64 {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
    }

    static func status(_ path: String) throws(DatabaseError) -> stat {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw .system("Cannot examine \(path)", reason: .noSuchFile)
        }
        return status
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// False only if there certainly is none.
    static func mayExist(_ path: String) -> Bool {
        exists(path) || (errno != ENOENT && errno != ENOTDIR)
    }

    /// Whether nobody can write to the file: its file system itself is mounted without the right to, and not only this
    /// mount of it, and no other machine has it.
    static func isOnReadOnlyMedium(_ path: String) -> Bool {
        var status = statvfs()
        var file = stat()
        guard statvfs(path, &status) == 0, status.f_flag & UInt(ST_RDONLY) != 0, stat(path, &file) == 0,
            // What cannot be told is no.
            let mounts = kernelText("/proc/self/mountinfo")
        else { return false }
        // https://man7.org/linux/man-pages/man3/makedev.3.html
        let number = UInt64(file.st_dev)
        let (major, minor) = (number >> 8 & 0xfff | number >> 32 & ~0xfff, number & 0xff | number >> 12 & ~0xff)
        let device = "\(major):\(minor)"
        let shared = ["nfs", "cifs", "smb", "9p", "virtiofs", "ceph", "fuse", "afs", "gfs", "ocfs", "overlay"]
        // 36 35 98:0 /root /mount ro,noatime shared:1 - ext4 /dev/sda1 ro,errors=continue
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2, fields[2] == device, let dash = fields.firstIndex(of: "-"), fields.count > dash + 3
            else { continue }
            let kind = fields[dash + 1]
            return fields[dash + 3].split(separator: ",").contains("ro") && !shared.contains { kind.hasPrefix($0) }
        }
        return false
    }

    /// What is in a directory; `nil`, with `errno`, if that cannot be read.
    static func names(in directory: String) -> [String]? {
        guard let stream = opendir(directory) else { return nil }
        defer { closedir(stream) }  // Only read from.
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { return errno == 0 ? names : nil }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    /// Whether one of this process's descriptors is that file.
    /// - Throws: if that cannot be known: without `/proc`, without memory or descriptors.
    static func isOpenInThisProcess(_ path: String) throws(DatabaseError) -> Bool {
        var wanted = stat()
        guard stat(path, &wanted) == 0 else {
            let number = errno
            guard number != ENOENT, number != ENOTDIR else { return false }
            throw .system("Cannot examine \(path)", reason: .ioError, number: number)
        }
        return try !ownDescriptors(of: wanted, path).isEmpty
    }

    /// The descriptors of this process that are that file.
    /// - Throws: as above.
    static func ownDescriptors(of file: stat, _ path: String) throws(DatabaseError) -> [Int32] {
        guard let descriptors = names(in: "/proc/self/fd") else {
            throw .system("Cannot tell from /proc/self/fd whether this process has \(path) open", reason: .ioError)
        }
        return descriptors.compactMap { Int32($0) }.filter { descriptor in
            var found = stat()
            // It was closed meanwhile.
            return fstat(descriptor, &found) == 0 && found.isSameFile(as: file)
        }
    }

    /// All of a text that the kernel makes as it is read; `nil` if it cannot be read.
    ///
    /// Such files have no size, and Foundation takes the first read for all there is, which of `/proc/locks` is one page.
    static func kernelText(_ path: String) -> String? {
        let descriptor = sealeddb_open(path, O_RDONLY, 0)
        guard descriptor >= 0 else { return nil }
        // Nothing is written by it.
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return String(decoding: text, as: UTF8.self) }
            text += buffer.prefix(count)
        }
    }

    /// 16 hex digits.
    static func randomName() throws(DatabaseError) -> String {
        var number: UInt64 = 0
        guard sealeddb_random(&number, MemoryLayout<UInt64>.size) == 0 else {
            throw .system("No random bytes for a file name", reason: .ioError)
        }
        return hexDigits(number, count: 16)
    }

    /// The last digits of a number, with zeros in front.
    static func hexDigits(_ number: UInt64, count: Int) -> String {
        let digits = String(number, radix: 16)
        return String((String(repeating: "0", count: count) + digits).suffix(count))
    }
}

extension stat {
    /// Whether both are of one file, whatever its names.
    func isSameFile(as other: stat) -> Bool { st_ino == other.st_ino && st_dev == other.st_dev }
}

extension DatabaseError {
    /// A failed system call, told by `errno`.
    static func system(_ message: String, reason: Reason, number: Int32 = errno) -> DatabaseError {
        let reason = number == ENOSPC || number == EDQUOT ? Reason.noSpace : reason
        return DatabaseError(
            extendedCode: reason == .noSpace ? SQLITE_FULL : SQLITE_IOERR,
            reason: reason,
            message: "\(message): \(String(cString: strerror(number)))."
        )
    }
}
