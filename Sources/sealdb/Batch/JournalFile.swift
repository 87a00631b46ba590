import CSealedDBSystem
import Foundation

/// Opens and reads journals. Somebody else could have put the file there. So symbolic links are not followed, and the
/// file must belong to this user or to root and not be writable by others.
enum JournalFile {
    /// The most bytes that a journal may have: enough for some million records.
    private static let sizeLimit = 1 << 30

    /// - Returns: `nil` if the file does not exist.
    static func open(_ path: String, _ access: Int32) throws(Failure) -> Int32? {
        let descriptor = sealeddb_open(path, access | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT { return nil }
            let hint = number == ELOOP ? " (symbolic links are not followed)" : ""
            throw Failure(
                number == ELOOP ? .configuration : access == O_RDONLY ? .noInput : .cannotCreate,
                "Cannot open the journal \(path)\(hint): \(String(cString: strerror(number)))."
            )
        }
        do throws(Failure) {
            try check(descriptor, path)
        } catch {
            // The result does not matter: nothing was written through this descriptor.
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func check(_ descriptor: Int32, _ path: String) throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw Failure(.inputOutput, "Cannot examine \(path): \(String(cString: strerror(errno))).")
        }
        try StandardStreams.requireOther(than: path, status)
        let problem: String? =
            if status.st_mode & S_IFMT != S_IFREG {
                "is not a regular file"
            } else if ![0, geteuid()].contains(status.st_uid) {
                "belongs to another user"
            } else if status.st_mode & 0o022 != 0 {
                "may be changed by other users"
            } else if status.st_nlink > 1 {
                "has another name too"
            } else if status.st_size > sizeLimit {
                "is too large"
            } else {
                nil
            }
        guard let problem else { return }
        throw Failure(.configuration, "The journal \(path) \(problem). It was neither believed nor changed.")
    }

    /// The state that the journal records, and whether its last line is complete.
    /// - Throws: ``Failure`` if it is not a journal of this version of sealdb.
    static func read(_ descriptor: Int32, _ path: String) throws(Failure) -> (state: JournalState?, isWhole: Bool) {
        let contents = try InputFile(descriptor: descriptor, name: path).contents(upTo: sizeLimit)
        let records = contents.split(separator: 0x0a).compactMap { JournalRecord(line: $0) }
        let state: JournalState?
        do throws(JournalState.Malformed) {
            state = try JournalState(records)
        } catch {
            throw Failure(.data, "\(path) is not a journal that this sealdb wrote: \(error.what). It was not changed.")
        }
        // A file without the records of a journal belongs to somebody else and is not written to.
        guard contents.isEmpty || state != nil else {
            throw Failure(.data, "\(path) is not a journal of sealdb. It was not changed.")
        }
        return (state, contents.last.map { $0 == 0x0a } ?? true)
    }

    /// The state that the journal records, without opening it for writing.
    static func state(_ path: String) throws(Failure) -> JournalState? {
        guard let descriptor = try Self.open(path, O_RDONLY) else {
            throw Failure(.noInput, "Cannot read \(path): \(String(cString: strerror(ENOENT))).")
        }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        return try read(descriptor, path).state
    }

    /// Whether a run has the journal open and locked.
    static func isInUse(_ path: String) throws(Failure) -> Bool {
        guard let descriptor = try Self.open(path, O_RDONLY) else { return false }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        var type = Int32(F_RDLCK)
        var count: Int64 = 0
        // If the file system has no such locks, a run could not lock the journal either.
        return sealeddb_excluding_lock(descriptor, &type, 0, &count) == 0 && type != F_UNLCK
    }
}
