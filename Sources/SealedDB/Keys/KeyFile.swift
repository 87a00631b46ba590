import Foundation

/// Files that hold a key.
public enum KeyFile {
    /// Writes a new random raw key as 64 hex digits and a newline, readable and writable by the owner alone, synced
    /// to disk. An existing file is never overwritten.
    /// - Throws: ``DatabaseError/Reason/alreadyExists``, ``DatabaseError/Reason/cannotCreate``, or an I/O error, after
    ///   which no file is left.
    public static func create(atPath path: String) throws(DatabaseError) {
        let key = try Key.random()
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            throw .system(
                "Cannot create the key file \(path)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
        do throws(DatabaseError) {
            defer { Glibc.close(descriptor) }
            try key.withHexadecimalLine { line throws(DatabaseError) in
                guard fchmod(descriptor, 0o600) == 0, write(descriptor, line.baseAddress, line.count) == line.count,
                    fsync(descriptor) == 0
                else { throw .system("Cannot write the key file \(path); it was removed", reason: .ioError) }
            }
            try FileSystem.synchronizeDirectory(of: path)
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Reads 64 hex digits with an optional newline, or exactly 32 bytes.
    static func rawKey(atPath path: String) throws(DatabaseError) -> Key {
        let contents = try secureContents(atPath: path)
        let bytes = contents.bytes
        if bytes.count == Key.rawByteCount { return try Key.raw(bytes) }
        let digits = bytes.last == UInt8(ascii: "\n") ? bytes.count - 1 : bytes.count
        guard digits == Key.rawByteCount * 2 else {
            throw .malformedKey(
                "The key file \(path) holds \(bytes.count) bytes, neither 64 hex digits with an optional newline nor 32 raw bytes."
            )
        }
        let key = try Hexadecimal.decode(UnsafeRawBufferPointer(rebasing: bytes[..<digits]))
        return try Key.raw(key.bytes)
    }

    static func passphrase(atPath path: String) throws(DatabaseError) -> Key {
        try passphrase(lineOf: secureContents(atPath: path))
    }

    /// The contents without one newline at their end.
    static func passphrase(lineOf contents: SecretBytes) throws(DatabaseError) -> Key {
        let bytes = contents.bytes
        let count = bytes.last == UInt8(ascii: "\n") ? bytes.count - 1 : bytes.count
        return try Key.passphrase(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }

    static let sizeLimit = 4096

    private static func secureContents(atPath path: String) throws(DatabaseError) -> SecretBytes {
        // O_NONBLOCK: a pipe in place of the file must not make the program wait.
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let number = errno
            let reason: DatabaseError.Reason = number == ELOOP ? .unsafeKeyFile : .noSuchFile
            let hint = number == ELOOP ? " (symbolic links are not followed)" : ""
            throw .system("Cannot read the key file \(path)\(hint)", reason: reason, number: number)
        }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("Cannot examine \(path)", reason: .ioError) }
        var problem: String?
        if status.st_mode & S_IFMT != S_IFREG {
            problem = "is not a regular file"
        } else if status.st_uid != geteuid(), status.st_uid != 0 {
            problem = "belongs to another user; chown it"
        } else if status.st_mode & 0o077 != 0 {
            problem = "is open to group or others; chmod 600 it, and consider the key known"
        }
        if let problem {
            throw DatabaseError(
                extendedCode: SQLITE_PERM,
                reason: .unsafeKeyFile,
                message: "The key file \(path) \(problem). It was not used."
            )
        }
        return try contents(of: descriptor, name: path)
    }

    /// Reads to the end, at most ``sizeLimit`` bytes.
    static func contents(of descriptor: Int32, name: String) throws(DatabaseError) -> SecretBytes {
        try SecretBytes(capacity: sizeLimit + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                let got = read(descriptor, target.baseAddress! + count, target.count - count)
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { throw .system("Cannot read the key from \(name)", reason: .noSuchFile) }
                if got == 0 { break }
                count += got
            }
            guard count <= sizeLimit else { throw .malformedKey("\(name) holds more than \(sizeLimit) bytes.") }
            return count
        }
    }
}
