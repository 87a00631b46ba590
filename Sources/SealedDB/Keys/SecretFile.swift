internal import CSealedDBSystem
import Foundation

/// Files that hold secrets. They are read only if no other user could have read or written them, and are written with
/// mode 0600.
enum SecretFile {
    /// Which owners and permissions a file may have.
    enum Rule {
        /// The file belongs to this user or to root, and has no permissions for group and others.
        case closed
        /// The file is a credential from systemd. If it belongs to root, it may be readable by the group: these bits
        /// are the mask of the access control list through which the service may read it.
        /// https://systemd.io/CREDENTIALS/
        case credential
    }

    static func contents(
        atPath path: String,
        what: String = "key file",
        rule: Rule = .closed,
        limit: Int = KeyFile.sizeLimit
    ) throws(DatabaseError) -> SecretBytes {
        try reading(path, what: what, rule: rule) { descriptor throws(DatabaseError) in
            try contents(of: descriptor, name: "The \(what) \(path)", limit: limit)
        }
    }

    /// Opens the file, checks it, and calls `body` with its descriptor.
    static func reading<T>(
        _ path: String,
        what: String,
        rule: Rule = .closed,
        _ body: (Int32) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard !path.utf8.contains(0) else {
            throw .malformedKey("The path of the \(what) holds a NUL byte, at which the system would cut it off.")
        }
        try Key.requireName(path, of: what)
        // Other users of a store might remove a file with such a name, even by opening the store with this very key.
        try StoreName.requireOwn(path, reason: .unsafeKeyFile)
        // Because of O_NONBLOCK, a pipe in place of the file does not make the program wait.
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            let number = errno
            // ENXIO: a socket cannot be opened.
            let isUnsafe = number == ELOOP || number == ENXIO
            let hint = number == ELOOP ? " (symbolic links are not followed)" : ""
            throw .system(
                "Cannot read the \(what) \(path)\(hint)",
                reason: isUnsafe ? .unsafeKeyFile : .noSuchFile,
                number: number
            )
        }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        if let problem = problem(with: status, rule: rule) {
            throw DatabaseError(
                extendedCode: SQLITE_PERM,
                reason: .unsafeKeyFile,
                message: "The \(what) \(path) \(problem). It was not used."
            )
        }
        for (output, name) in [(STDOUT_FILENO, "standard output"), (STDERR_FILENO, "standard error")] {
            var stream = stat()
            // What the process prints would be written over the key, or behind it.
            guard fstat(output, &stream) == 0, stream.isSameFile(as: status) else { continue }
            throw DatabaseError(
                extendedCode: SQLITE_PERM,
                reason: .unsafeKeyFile,
                message:
                    "The \(what) \(path) is the \(name) of this process, too. It was not used. Direct that to another file."
            )
        }
        return try body(descriptor)
    }

    private static func problem(with status: stat, rule: Rule) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "is not a regular file" }
        if status.st_uid != geteuid(), status.st_uid != 0 { return "belongs to another user; chown it" }
        let isByRoot = rule == .credential && status.st_uid == 0
        if status.st_mode & (isByRoot ? 0o037 : 0o077) != 0 {
            return "is open to group or others; chmod 600 it, and consider the key known"
        }
        return nil
    }

    /// Reads the descriptor to its end.
    static func contents(
        of descriptor: Int32,
        name: String,
        limit: Int = KeyFile.sizeLimit
    ) throws(DatabaseError) -> SecretBytes {
        try SecretBytes(capacity: limit + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                let got = read(descriptor, target.baseAddress! + count, target.count - count)
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { throw .system("\(name) cannot be read", reason: .noSuchFile) }
                if got == 0 { break }
                count += got
            }
            guard count <= limit else { throw .malformedKey("\(name) holds more than \(limit) bytes.") }
            return count
        }
    }

    // MARK: Durability

    /// Reads the file after syncing it, so that a power failure cannot take its contents away any more.
    ///
    /// A file on a read-only or virtual file system is as durable as its owner made it.
    /// - Throws: as ``contents(atPath:what:rule:limit:)``, and if the file cannot be synced, or if another file has its
    ///   name now.
    static func durableContents(
        atPath path: String,
        what: String,
        limit: Int = KeyFile.sizeLimit
    ) throws(DatabaseError) -> SecretBytes {
        try reading(path, what: what) { descriptor throws(DatabaseError) in
            let name = "The \(what) \(path)"
            do throws(DatabaseError) {
                try FileSystem.synchronizeIfPossible(descriptor, path)
            } catch {
                throw error.adding(context: "\(name) may not be on the disk, so write it anew")
            }
            let contents = try contents(of: descriptor, name: name, limit: limit)
            try synchronizeName(of: descriptor, path)
            guard try isCurrent(descriptor, path: path) else {
                throw .keySourceFailed("\(name) was replaced while it was read.")
            }
            return contents
        }
    }

    private static func synchronizeName(of descriptor: Int32, _ path: String) throws(DatabaseError) {
        let name = FileSystem.directory(of: path)
        let directory = sealeddb_open(name, O_RDONLY | O_DIRECTORY, 0)
        guard directory < 0 else {
            // The result does not matter: nothing was written through this descriptor.
            defer { close(directory) }
            return try FileSystem.synchronizeIfPossible(directory, name)
        }
        // A user who may enter a directory may not be allowed to read it. Then the whole file system is synced.
        guard errno == EACCES, sealeddb_sync_file_system(descriptor) == 0 else {
            throw .system("Cannot sync \(name)", reason: .ioError)
        }
    }

    /// Whether the path still leads to the open file.
    static func isCurrent(_ descriptor: Int32, path: String) throws(DatabaseError) -> Bool {
        var own = stat()
        guard fstat(descriptor, &own) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        let named = try FileSystem.status(path)
        return own.isSameFile(as: named)
    }

    // MARK: Writing

    /// Creates the file with mode 0600 in one step, and syncs it and its directory. An existing file is never
    /// overwritten.
    static func create(
        atPath path: String,
        what: String,
        _ contents: UnsafeRawBufferPointer
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try Key.requireName(path, of: what)
            try StoreName.requireNoSlots(path)
            guard !FileSystem.mayExist(path) else {
                throw .system("Cannot create \(path)", reason: .alreadyExists, number: EEXIST)
            }
            let (copy, descriptor) = try temporary(for: path)
            // The result does not matter: the contents are synced by then, or a failure is already known.
            defer { close(descriptor) }
            do throws(DatabaseError) {
                try write(contents, to: descriptor, copy, what: what)
                guard sealeddb_rename_exclusively(copy, path) == 0 else {
                    let number = errno
                    throw .system(
                        "Cannot create \(path)",
                        reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                        number: number
                    )
                }
                // If the file cannot be examined, it does not count as another one: the sync of the directory below
                // reports the failure.
                if (try? isCurrent(descriptor, path: path)) == false { throw exchanged(path, what: what) }
            } catch {
                // A file that cannot be removed is removed by the next run.
                unlink(copy)
                throw error
            }
        } catch {
            throw error.adding(context: "The \(what) was not written")
        }
        do throws(DatabaseError) {
            try FileSystem.synchronizeDirectory(of: path)
        } catch {
            throw error.adding(context: "The \(what) \(path) is complete, but after a power failure may be missing")
        }
    }

    /// Creates an empty file beside the path, open for writing. Removes leftovers of killed processes first, because
    /// they may hold keys.
    ///
    /// The file is written through its descriptor and never opened by its name. Otherwise somebody who may rename files
    /// in the directory could put a file under this name that they can read.
    private static func temporary(for path: String) throws(DatabaseError) -> (path: String, descriptor: Int32) {
        TemporaryFile.removeLeftovers(of: path)
        let temporary = try TemporaryFile.path(beside: path)
        return (temporary, try FileSystem.openExclusively(temporary))
    }

    /// Makes sure that the path leads to the file that was written, and not to one that somebody put there meanwhile.
    private static func requireName(_ path: String, of descriptor: Int32, what: String) throws(DatabaseError) {
        guard try isCurrent(descriptor, path: path) else { throw exchanged(path, what: what) }
    }

    private static func exchanged(_ path: String, what: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unsafeKeyFile,
            message: """
                Somebody else put a file in the place of the new \(what) \(path), so it is not used. Make it in a directory \
                where nobody else may rename files.
                """
        )
    }

    private static func requireOneName(_ path: String) throws(DatabaseError) {
        let count = try FileSystem.status(path).st_nlink
        guard count > 1 else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .unsafeKeyFile,
            message: "It has \(count) hard links, of which the others would keep the old contents. Remove them."
        )
    }

    /// Replaces the file in one step by a new one with the same owner and mode, and syncs it to disk.
    /// - Parameter requiresOneName: whether a file with other names, which would keep the old contents, is refused.
    static func replace(
        _ path: String,
        what: String,
        requiresOneName: Bool = false,
        _ contents: UnsafeRawBufferPointer
    ) throws(DatabaseError) {
        let (copy, descriptor) = try temporary(for: path)
        // As in `create`: the contents are synced by then, or a failure is already known.
        defer { close(descriptor) }
        let old: String?
        do throws(DatabaseError) {
            // That which a killed process left is removed by now.
            if requiresOneName { try requireOneName(path) }
            try FileSystem.copyAttributes(from: path, to: copy)
            try requireName(copy, of: descriptor, what: what)
            try write(contents, to: descriptor, copy, what: what)
            try requireName(copy, of: descriptor, what: what)
            old = try swap(copy, descriptor, for: path, what: what)
        } catch {
            // A file that cannot be removed is removed by the next run.
            unlink(copy)
            throw error.adding(context: "The \(what) \(path) is unchanged")
        }
        try requireSwapped(descriptor, for: path, old, what: what)
        do throws(DatabaseError) {
            try FileSystem.synchronizeDirectory(of: path)
        } catch {
            throw error.adding(context: "The \(what) \(path) is changed, but after a power failure may be as before")
        }
    }

    /// Renames the new file over the old one. Keeps the old file under a second name until the new one is seen in its
    /// place, because somebody who may rename files there can put another file in the new one's place at the last
    /// moment.
    /// - Returns: that second name; `nil` if the file system has no hard links. It then has no other users who could
    ///   rename files either.
    private static func swap(
        _ copy: String,
        _ descriptor: Int32,
        for path: String,
        what: String
    ) throws(DatabaseError) -> String? {
        // Others who wait to change the file get the lock of the new one only after it is seen in its place.
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw .system("Cannot lock the \(what) \(copy)", reason: .ioError) }
        }
        let old = try TemporaryFile.path(beside: path)
        let isKept = link(path, old) == 0
        guard rename(copy, path) == 0 else {
            let number = errno
            // A second name that stays is removed by the next run.
            unlink(old)
            throw .system("The new \(what) could not take the place of \(path)", reason: .ioError, number: number)
        }
        return isKept ? old : nil
    }

    /// Puts the old file back, unless the new one is seen in its place.
    private static func requireSwapped(
        _ descriptor: Int32,
        for path: String,
        _ old: String?,
        what: String
    ) throws(DatabaseError) {
        let failure: DatabaseError
        var mayBeOurs = false
        do throws(DatabaseError) {
            if try isCurrent(descriptor, path: path) {
                // A second name that stays is removed by the next run.
                if let old { unlink(old) }
                return
            }
            failure = exchanged(path, what: what)
        } catch {
            failure = error
            mayBeOurs = true
        }
        if let old, rename(old, path) == 0 { throw failure.adding(context: "The \(what) \(path) is unchanged") }
        let whose = mayBeOurs ? "The \(what) \(path) is probably changed" : "Somebody else's file is \(path) now"
        throw failure.adding(context: old.map { "\(whose); the old \(what) is \($0)" } ?? whose)
    }

    private static func write(
        _ contents: UnsafeRawBufferPointer,
        to descriptor: Int32,
        _ path: String,
        what: String
    ) throws(DatabaseError) {
        try write(contents, toDescriptor: descriptor, path, what: what)
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync the \(what) \(path)", reason: .ioError) }
        try requireWritten(contents, descriptor, path, what: what)
    }

    /// Reads back what was written: it may become the only copy of a key.
    private static func requireWritten(
        _ contents: UnsafeRawBufferPointer,
        _ descriptor: Int32,
        _ path: String,
        what: String
    ) throws(DatabaseError) {
        let found = try SecretBytes(capacity: contents.count + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                let got = pread(descriptor, target.baseAddress! + count, target.count - count, off_t(count))
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { throw .system("Cannot read back the \(what) \(path)", reason: .ioError) }
                if got == 0 { break }
                count += got
            }
            return count
        }
        let isSame = try found.withBytes { bytes throws(DatabaseError) in
            bytes.count == contents.count && contents.hasSameBytes(as: bytes, count: bytes.count)
        }
        guard isSame else {
            throw DatabaseError(
                extendedCode: SQLITE_IOERR,
                reason: .ioError,
                message: "The \(what) \(path), read back, is not what was written. Look at the disk."
            )
        }
    }

    /// Writes everything, and syncs nothing.
    static func write(
        _ contents: UnsafeRawBufferPointer,
        toDescriptor descriptor: Int32,
        _ path: String,
        what: String
    ) throws(DatabaseError) {
        var count = 0
        while count < contents.count {
            let written = Glibc.write(descriptor, contents.baseAddress! + count, contents.count - count)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw .system("Cannot write the \(what) \(path)", reason: .ioError) }
            count += written
        }
    }
}
