internal import CSealedDBSystem
import Foundation

/// File-system calls, mainly those that make a new file durable and give it the attributes of the old one.
package enum FileSystem {
    /// Returns the absolute path with symbolic links followed; `nil`, with `errno` set, if the file does not exist, or if
    /// that path is not UTF-8. A `String` would repair it, and so name another file.
    static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        guard let text = String(validatingCString: resolved) else {
            errno = EILSEQ
            return nil
        }
        return text
    }

    /// Throws if the system would take the path for another one.
    static func requireNoNUL(_ path: String) throws(DatabaseError) {
        guard path.utf8.contains(0) else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .misuse,
            message: "The path holds a NUL byte, at which the system would cut it off. Nothing was opened."
        )
    }

    /// Puts the working directory before a relative path, which may name nothing yet.
    static func absolute(_ path: String) -> String {
        let directory = FileManager.default.currentDirectoryPath
        // Without a working directory nothing has a relative path.
        guard !path.begins(with: "/"), !directory.isEmpty else { return path }
        return directory + "/" + path
    }

    static func directory(of path: String) -> String { path.directoryOfPath }

    static func name(of path: String) -> String { path.nameOfPath }

    /// Syncs a file or directory. A failed fsync is never repeated: the kernel may have dropped the pages.
    static func synchronize(_ path: String, flags: Int32 = O_RDONLY) throws(DatabaseError) {
        let descriptor = sealeddb_open(path, flags, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(path) to sync it", reason: .ioError) }
        // Nothing is written through this descriptor, so closing it loses nothing.
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(path) to disk", reason: .ioError) }
    }

    /// Syncs an open file or directory, unless its file system does not support that, such as a read-only or virtual
    /// one.
    static func synchronizeIfPossible(_ descriptor: Int32, _ path: String) throws(DatabaseError) {
        guard fsync(descriptor) != 0, ![EROFS, EINVAL, ENOTSUP].contains(errno) else { return }
        throw .system("Cannot sync \(path) to disk", reason: .ioError)
    }

    /// Makes names that were added to the directory of the file, or removed from it, durable.
    package static func synchronizeDirectory(of path: String) throws(DatabaseError) {
        try synchronize(directory(of: path), flags: O_RDONLY | O_DIRECTORY)
    }

    /// Creates an empty file that only its owner may access. Throws if the path exists.
    static func createExclusively(_ path: String) throws(DatabaseError) {
        // Nothing was written through this descriptor, so closing it loses nothing.
        close(try openExclusively(path))
    }

    /// Creates the file as ``createExclusively(_:)`` does, and leaves it open for reading and writing.
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

    /// Waits until a write gets a later time than this one, which an earlier write has: the kernel dates writes by a clock
    /// that ticks only a few hundred times a second.
    /// - Returns: false if that does not happen soon, as when the clock was put back.
    static func waitForClock(toPass time: timespec) -> Bool {
        for _ in 0..<50 {
            var now = timespec()
            // The result does not matter: this clock always exists.
            clock_gettime(CLOCK_REALTIME_COARSE, &now)
            if (time.tv_sec, time.tv_nsec) < (now.tv_sec, now.tv_nsec) { return true }
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            // A signal may end the pause early.
            nanosleep(&pause, nil)
        }
        return false
    }

    /// Gives `copy` the owner, mode and extended attributes of `original`.
    static func copyAttributes(from original: String, to copy: String) throws(DatabaseError) {
        let descriptor = sealeddb_open(copy, O_RDWR | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { throw .system("Cannot open \(copy)", reason: .ioError) }
        // Attributes are written at once, and the sync of the copy includes them.
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

    /// The status of what has this name, without following a symbolic link; `nil` if certainly nothing has it.
    /// - Throws: if that cannot be known.
    package static func statusIfPresent(_ path: String) throws(DatabaseError) -> stat? {
        var status = stat()
        guard lstat(path, &status) != 0 else { return status }
        let number = errno
        guard number == ENOENT || number == ENOTDIR else {
            throw .system("Cannot examine \(path)", reason: .ioError, number: number)
        }
        return nil
    }

    /// Whether the file can be seen. False also if it cannot be examined: see ``mayExist(_:)`` and
    /// ``statusIfPresent(_:)`` for when something depends on its absence.
    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// Whether the file may exist. False only if it certainly does not.
    static func mayExist(_ path: String) -> Bool {
        exists(path) || (errno != ENOENT && errno != ENOTDIR)
    }

    /// The same for a name of bytes, which need not be UTF-8.
    static func mayExist(bytes name: [UInt8]) -> Bool {
        var status = stat()
        let result = (name + [0]).withUnsafeBytes { lstat($0.bindMemory(to: CChar.self).baseAddress!, &status) }
        return result == 0 || (errno != ENOENT && errno != ENOTDIR)
    }

    /// Whether nobody can write to the file: the file system itself is mounted read-only, not just this mount of it,
    /// and it is not one that another machine can share.
    static func isOnReadOnlyMedium(_ path: String) -> Bool {
        var status = statvfs()
        guard statvfs(path, &status) == 0, status.f_flag & UInt(ST_RDONLY) != 0,
            // If this cannot be determined, the answer is false.
            let mount = MountTable()?.mount(of: path)
        else { return false }
        return mount.isReadOnly && !mount.mayBeShared
    }

    /// Returns the names in a directory; `nil`, with `errno` set, if the directory cannot be read.
    /// - Parameter beginning: only names that begin with these bytes. In a directory of many stores that is much faster than
    ///   to look at all of them.
    package static func names(in directory: String, beginning: String = "") -> [String]? {
        guard let stream = opendir(directory) else { return nil }
        defer { closedir(stream) }  // Only read from.
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { return errno == 0 ? names : nil }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    strncmp(name, beginning, beginning.utf8.count) == 0 ? String(cString: name) : nil
                }
            }
            if let name, name != ".", name != ".." { names.append(name) }
        }
    }

    /// Whether this process has the file open.
    /// - Throws: if this cannot be determined: without `/proc`, or without memory or descriptors.
    static func isOpenInThisProcess(_ path: String) throws(DatabaseError) -> Bool {
        var wanted = stat()
        guard stat(path, &wanted) == 0 else {
            let number = errno
            guard number != ENOENT, number != ENOTDIR else { return false }
            throw .system("Cannot examine \(path)", reason: .ioError, number: number)
        }
        return try !ownDescriptors(of: wanted, path).isEmpty
    }

    /// Returns the descriptors that this process has for the file.
    /// - Throws: if `/proc/self/fd` cannot be read.
    static func ownDescriptors(of file: stat, _ path: String) throws(DatabaseError) -> [Int32] {
        guard let descriptors = names(in: "/proc/self/fd") else {
            throw .system("Cannot tell from /proc/self/fd whether this process has \(path) open", reason: .ioError)
        }
        return descriptors.compactMap { Int32($0) }.filter { descriptor in
            var found = stat()
            // Not by fstat: most descriptors belong to other threads. What counts or fails the calls on their files should not
            // meet this one. If it fails, the descriptor was closed in the meantime.
            return stat("/proc/self/fd/\(descriptor)", &found) == 0 && found.isSameFile(as: file)
        }
    }

    /// Reads a text that the kernel generates on reading; `nil` if it cannot be read.
    ///
    /// Such files report no size. Foundation takes the first read for the whole file, but a read of `/proc/locks`
    /// returns one page.
    static func kernelText(_ path: String) -> String? {
        let descriptor = sealeddb_open(path, O_RDONLY, 0)
        guard descriptor >= 0 else { return nil }
        // Nothing is written through this descriptor, so closing it loses nothing.
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

    /// Opens what is at a path by `O_PATH`, neither to read nor to write it. To close that takes no lock from this process.
    /// - Returns: the descriptor; negative, with `errno` set, without one.
    static func keep(_ path: String) -> Int32 { sealeddb_open(path, 0o10_000_000 | O_NOFOLLOW, 0) }

    /// Returns 16 random hexadecimal digits.
    static func randomName() throws(DatabaseError) -> String {
        var number: UInt64 = 0
        guard sealeddb_random(&number, MemoryLayout<UInt64>.size) == 0 else {
            throw .system("No random bytes for a file name", reason: .ioError)
        }
        return hexDigits(number, count: 16)
    }

    /// Returns the last `count` hexadecimal digits of a number, padded with zeros.
    static func hexDigits(_ number: UInt64, count: Int) -> String {
        let digits = String(number, radix: 16)
        return String((String(repeating: "0", count: count) + digits).suffix(count))
    }
}

extension stat {
    /// Whether both describe the same file, whatever its names.
    func isSameFile(as other: stat) -> Bool { st_ino == other.st_ino && st_dev == other.st_dev }

    /// The two numbers of the file's device, as the kernel writes them. https://man7.org/linux/man-pages/man3/makedev.3.html
    var deviceNumbers: (major: UInt64, minor: UInt64) {
        let number = UInt64(st_dev)
        return (number >> 8 & 0xfff | number >> 32 & ~0xfff, number & 0xff | number >> 12 & ~0xff)
    }
}

extension DatabaseError {
    /// The error for a system call that failed with `errno`.
    static func system(
        _ message: String,
        reason: Reason,
        number: Int32 = errno,
        extendedCode: Int32 = SQLITE_IOERR
    ) -> DatabaseError {
        let reason =
            switch number {
            case ENOSPC, EDQUOT: Reason.noSpace
            default: reason == .noSuchFile ? .unopened(number) : reason
            }
        return DatabaseError(
            extendedCode: reason == .noSpace ? SQLITE_FULL : extendedCode,
            reason: reason,
            message: "\(message): \(String(cString: strerror(number)))."
        )
    }
}

extension DatabaseError.Reason {
    /// The reason why a file cannot be opened or examined. A file is only said to be missing if that is known: who
    /// believes it makes a new one.
    static func unopened(_ number: Int32) -> DatabaseError.Reason {
        switch number {
        case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, ENXIO, ENODEV, EBADF: .noSuchFile
        case EACCES, EPERM: .notPermitted
        default: .ioError
        }
    }
}
