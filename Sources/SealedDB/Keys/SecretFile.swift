internal import CSealedDBSystem
import Foundation

/// Files that hold secrets: read only if nobody else could have read or written them, written for the owner alone.
enum SecretFile {
    /// Whose bits may be set.
    enum Rule {
        /// This user's or root's, closed to group and others.
        case closed
        /// As systemd hands over a credential: if it is root's, the group bits are the mask of the access control list
        /// by which the service may read it. https://systemd.io/CREDENTIALS/
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

    /// Calls `body` with the open file, once it has passed the checks.
    static func reading<T>(
        _ path: String,
        what: String,
        rule: Rule = .closed,
        _ body: (Int32) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        guard !path.utf8.contains(0) else {
            throw .malformedKey("The path of the \(what) holds a NUL byte, at which the system would cut it off.")
        }
        // Whoever uses that store might remove it, be it by opening the store with this very key.
        try StoreName.requireOwn(path, reason: .unsafeKeyFile)
        // O_NONBLOCK: a pipe in place of the file must not make the program wait.
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            let number = errno
            // A socket cannot be opened at all.
            let isUnsafe = number == ELOOP || number == ENXIO
            let hint = number == ELOOP ? " (symbolic links are not followed)" : ""
            throw .system(
                "Cannot read the \(what) \(path)\(hint)",
                reason: isUnsafe ? .unsafeKeyFile : .noSuchFile,
                number: number
            )
        }
        // Nothing is written by it.
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

    /// Reads to the end.
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

    /// The contents, once a power failure cannot take them away any more.
    ///
    /// What is on a read-only or virtual file system is as durable as its owner made it.
    /// - Throws: as ``contents(atPath:what:rule:limit:)``, and if the file cannot be synced, or has its name no more.
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
            // Nothing is written by it.
            defer { close(directory) }
            return try FileSystem.synchronizeIfPossible(directory, name)
        }
        // Who may enter a directory need not be allowed to list it; the whole file system has it in it.
        guard errno == EACCES, sealeddb_sync_file_system(descriptor) == 0 else {
            throw .system("Cannot sync \(name)", reason: .ioError)
        }
    }

    /// Whether the path names the open file.
    static func isCurrent(_ descriptor: Int32, path: String) throws(DatabaseError) -> Bool {
        var own = stat()
        guard fstat(descriptor, &own) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        let named = try FileSystem.status(path)
        return own.isSameFile(as: named)
    }

    // MARK: Writing

    /// Creates the file with mode 0600, whole, and syncs it and its directory; an existing file is never overwritten.
    static func create(
        atPath path: String,
        what: String,
        _ contents: UnsafeRawBufferPointer
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            guard !FileSystem.mayExist(path) else {
                throw .system("Cannot create \(path)", reason: .alreadyExists, number: EEXIST)
            }
            let (copy, descriptor) = try temporary(for: path)
            // What was written has been synced, or the failure is known.
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
                // What cannot be looked at is not taken for another file: the sync of the directory, next, tells of it.
                if (try? isCurrent(descriptor, path: path)) == false { throw exchanged(path, what: what) }
            } catch {
                // One that stays is removed by the next run.
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

    /// An empty file beside that of the path, open to be written. Others that were left by a process that was killed are
    /// removed: they may hold keys.
    ///
    /// It is written through its descriptor, and never opened by its name: whoever may rename files in the directory could
    /// put one under that name that they can read.
    private static func temporary(for path: String) throws(DatabaseError) -> (path: String, descriptor: Int32) {
        TemporaryFile.removeLeftovers(of: path)
        let temporary = try TemporaryFile.path(beside: path)
        return (temporary, try FileSystem.openExclusively(temporary))
    }

    /// Makes sure that the path names what was written, and not a file that somebody put there meanwhile.
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

    /// Replaces the file in one step by one of the same owner and mode, synced to disk.
    static func replace(
        _ path: String,
        what: String,
        _ contents: UnsafeRawBufferPointer
    ) throws(DatabaseError) {
        let (copy, descriptor) = try temporary(for: path)
        // As in `create`.
        defer { close(descriptor) }
        let old: String?
        do throws(DatabaseError) {
            try FileSystem.copyAttributes(from: path, to: copy)
            try requireName(copy, of: descriptor, what: what)
            try write(contents, to: descriptor, copy, what: what)
            try requireName(copy, of: descriptor, what: what)
            old = try swap(copy, descriptor, for: path, what: what)
        } catch {
            // One that stays is removed by the next run.
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

    /// Renames, and keeps the old file by a second name until the new one is seen in its place: who may rename files there can
    /// put another one in the new one's place at the last moment.
    /// - Returns: that name; `nil` where there are no hard links, and so no other users either who could rename.
    private static func swap(
        _ copy: String,
        _ descriptor: Int32,
        for path: String,
        what: String
    ) throws(DatabaseError) -> String? {
        // Who waits to change it too gets the new file when it is seen in its place.
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw .system("Cannot lock the \(what) \(copy)", reason: .ioError) }
        }
        let old = try TemporaryFile.path(beside: path)
        let isKept = link(path, old) == 0
        guard rename(copy, path) == 0 else {
            let number = errno
            // As below.
            unlink(old)
            throw .system("The new \(what) could not take the place of \(path)", reason: .ioError, number: number)
        }
        return isKept ? old : nil
    }

    /// Puts the old file back unless the new one is seen in its place.
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
                // One that stays is removed by the next run.
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
        var count = 0
        while count < contents.count {
            let written = Glibc.write(descriptor, contents.baseAddress! + count, contents.count - count)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw .system("Cannot write the \(what) \(path)", reason: .ioError) }
            count += written
        }
        guard fsync(descriptor) == 0 else { throw .system("Cannot sync the \(what) \(path)", reason: .ioError) }
    }
}
