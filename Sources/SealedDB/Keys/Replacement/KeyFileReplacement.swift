internal import CSealedDBSystem
import Foundation

/// Puts a new key file in the place of an old one, after the stores have the new key. The old key is kept beside it.
///
/// First the old file gets a second name. Then a copy of the new file, with the owner and mode of the old one, takes the
/// old one's first name in one step. Last the new file loses its own name. Each step is on disk before the next begins. So
/// at any moment each of the two keys is in a file whose name the user knows, and the files tell where to go on.
package struct KeyFileReplacement: Sendable {
    /// The key file of the stores. Absolute, with symbolic links of its directory followed, as are the others.
    package let file: String
    /// The file with the new key.
    package let newFile: String
    /// Where the old key is kept.
    package private(set) var formerFile: String
    private let isPassphrase: Bool

    /// How far a replacement is, as the files tell it.
    package enum Stage: Sendable {
        /// Both files exist, with different keys. The old one may have its second name already.
        case pending
        /// Both files hold the new key.
        case copied
        /// The new file is gone, and there is a former key. This may also be so after an earlier replacement.
        case complete
    }

    /// - Parameter ending: what is appended to the name of the old file for the name under which it is kept.
    /// - Throws: ``DatabaseError/Reason/notAllowed`` unless both are files of the same kind.
    package init(_ old: KeySource, by new: KeySource, ending: String) throws(DatabaseError) {
        let files: (old: String, new: String)
        switch (old, new) {
        case (.keyFile(let old), .keyFile(let new)):
            files = (old, new)
            isPassphrase = false
        case (.passphraseFile(let old), .passphraseFile(let new)):
            files = (old, new)
            isPassphrase = true
        default:
            throw KeyFileReplacement.refusal(
                "The \(new) cannot take the place of the \(old): only a key file can replace a key file, and a passphrase file a passphrase file"
            )
        }
        file = try KeyFileReplacement.absolute(files.old)
        newFile = try KeyFileReplacement.absolute(files.new)
        formerFile = file + ending
        guard !file.isSame(as: newFile) else {
            throw KeyFileReplacement.refusal("\(files.new) is both the old and the new key file")
        }
        guard !formerFile.isSame(as: newFile) else {
            throw KeyFileReplacement.refusal("\(files.new) is the name under which the old key is to be kept")
        }
    }

    /// The same with the name under which an earlier run keeps the old key.
    /// - Returns: `nil` if no run can have given the old key this name.
    package func keeping(formerFile: String) -> KeyFileReplacement? {
        let isEnded = formerFile.utf8.count > file.utf8.count && formerFile.begins(with: file)
        let isBeside = FileSystem.directory(of: formerFile).isSame(as: FileSystem.directory(of: file))
        guard isEnded, isBeside, !formerFile.isSame(as: newFile) else { return nil }
        var replacement = self
        replacement.formerFile = formerFile
        return replacement
    }

    private static func refusal(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_MISUSE, reason: .notAllowed, message: "\(message). Nothing was changed.")
    }

    private static func absolute(_ path: String) throws(DatabaseError) -> String {
        try Key.requireName(path, of: "key file")
        let directory = FileSystem.directory(of: path)
        guard let resolved = FileSystem.resolve(directory) else {
            throw .system("Cannot find the directory of the key file \(path)", reason: .noSuchFile)
        }
        return (resolved == "/" ? "" : resolved) + "/" + FileSystem.name(of: path)
    }

    var what: String { isPassphrase ? "passphrase file" : "key file" }

    /// Where the key of the stores is after the replacement.
    package var source: KeySource { isPassphrase ? .passphraseFile(file) : .keyFile(file) }

    // MARK: The stage

    /// - Throws: if a file is missing, is not safe, or holds no key; ``DatabaseError/Reason/alreadyExists`` if another key
    ///   has the name under which the old one is to be kept.
    package func stage() throws(DatabaseError) -> Stage {
        let key = try key(in: file)
        guard FileSystem.mayExist(newFile) else {
            let number = errno
            // What has that name and is no key is no former key either.
            guard let former = try? formerKey(), former != key else {
                throw .system("Cannot read the \(what) \(newFile)", reason: .noSuchFile, number: number)
            }
            return .complete
        }
        guard try self.key(in: newFile) != key else {
            guard let former = try formerKey(), former != key else {
                throw KeyFileReplacement.refusal(
                    "\(newFile) holds the same key as \(file). If an earlier run was interrupted that was to keep the old "
                        + "key under another name than \(formerFile), give that ending again"
                )
            }
            return .copied
        }
        try requireNoOtherFormerKey(than: key)
        return .pending
    }

    private func requireNoOtherFormerKey(than key: Key) throws(DatabaseError) {
        var problem = ""
        do throws(DatabaseError) {
            guard let former = try formerKey(), former != key else { return }
        } catch {
            problem = " (\(error.message))"
        }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .alreadyExists,
            message: """
                \(formerFile) exists, and does not hold the key that \(file) holds\(problem). The old key would be kept under \
                that name, and nothing is overwritten. Move it away, or choose another ending.
                """
        )
    }

    /// Makes the file durable, because another file with that key goes.
    /// - Returns: `nil` if there is no such file.
    private func formerKey() throws(DatabaseError) -> Key? {
        guard FileSystem.mayExist(formerFile) else { return nil }
        return try key(in: SecretFile.durableContents(atPath: formerFile, what: what), formerFile)
    }

    private func key(in path: String) throws(DatabaseError) -> Key {
        try key(in: try SecretFile.contents(atPath: path, what: what), path)
    }

    private func key(in contents: SecretBytes, _ path: String) throws(DatabaseError) -> Key {
        let name = "The \(what) \(path)"
        return isPassphrase
            ? try KeyFile.passphrase(in: contents, name: name) : try KeyFile.rawKey(in: contents, name: name)
    }

    // MARK: The replacement

    /// Replaces the file, or finishes what an earlier run began.
    /// - Parameters:
    ///   - key: the key that the stores have now.
    ///   - old: the one that they had before; `nil` if that is not known.
    /// - Throws: ``DatabaseError``. Whatever fails, the old and the new key each are in one of the three files.
    package func run(_ key: Key, replacing old: Key? = nil) throws(DatabaseError) {
        while try !attempt(key, replacing: old) {}
    }

    /// - Returns: false if another process replaced the file while this one waited for its lock.
    private func attempt(_ key: Key, replacing old: Key?) throws(DatabaseError) -> Bool {
        try SecretFile.reading(file, what: what) { descriptor throws(DatabaseError) in
            while flock(descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else { throw .system("Cannot lock the \(what) \(file)", reason: .ioError) }
            }
            guard try SecretFile.isCurrent(descriptor, path: file) else { return false }
            switch try stage() {
            case .pending:
                if let old, try self.key(in: file) != old {
                    throw KeyFileReplacement.otherKey(
                        "The \(what) \(file) holds another key by now than the stores had, as after another run, and is "
                            + "unchanged. Other stores may have the key that it holds."
                    )
                }
                try keepFormerKey()
                try putNewKey(key)
                try removeNewFile(key)
            case .copied:
                try removeNewFile(key)
            case .complete:
                try requireInPlace(key)
                try FileSystem.synchronizeDirectory(of: newFile)
            }
            // A killed run may have left a second name of the old file, or a copy of the new one.
            for file in [file, formerFile] { TemporaryFile.removeLeftovers(of: file) }
            return true
        }
    }

    private func keepFormerKey() throws(DatabaseError) {
        let contents = try SecretFile.durableContents(atPath: file, what: what)
        if !FileSystem.mayExist(formerFile) {
            do throws(DatabaseError) {
                try addFormerName(contents)
            } catch {
                throw error.adding(context: "The \(what) \(file) is unchanged")
            }
        }
        try FileSystem.synchronizeDirectory(of: file)
        let key = try key(in: contents, file)
        try requireNoOtherFormerKey(than: key)
        // Whether a file exists may have been answered wrongly by a failed call. Only a key that was read is kept.
        guard try formerKey() == key else {
            throw DatabaseError(
                extendedCode: SQLITE_IOERR,
                reason: .ioError,
                message: "The old key could not be kept as \(formerFile). The \(what) \(file) is unchanged."
            )
        }
    }

    private func addFormerName(_ contents: SecretBytes) throws(DatabaseError) {
        guard link(file, formerFile) != 0 else { return }
        let number = errno
        guard [EPERM, ENOTSUP, ENOSYS, EMLINK].contains(number) else {
            throw .system(
                "Cannot keep the old key as \(formerFile)",
                reason: number == EEXIST ? .alreadyExists : .cannotCreate,
                number: number
            )
        }
        // The file system has no hard links.
        try contents.withBytes { bytes throws(DatabaseError) in
            try SecretFile.create(atPath: formerFile, what: what, bytes)
        }
        try FileSystem.copyAttributes(from: file, to: formerFile)
    }

    private func putNewKey(_ key: Key) throws(DatabaseError) {
        let contents = try SecretFile.durableContents(atPath: newFile, what: what)
        guard try self.key(in: contents, newFile) == key else {
            throw KeyFileReplacement.otherKey(
                "The \(what) \(newFile) does not hold the key that the stores got: it was changed meanwhile. "
                    + "\(file) is unchanged."
            )
        }
        try contents.withBytes { bytes throws(DatabaseError) in try SecretFile.replace(file, what: what, bytes) }
    }

    private func removeNewFile(_ key: Key) throws(DatabaseError) {
        try requireInPlace(key)
        try requireNoOtherNewKey(than: key)
        guard unlink(newFile) == 0 || errno == ENOENT else {
            throw .system(
                "\(file) holds the new key, but \(newFile), which holds it too, cannot be removed",
                reason: .ioError
            )
        }
        try FileSystem.synchronizeDirectory(of: newFile)
    }

    /// Makes sure that nobody has put another key there meanwhile, of which this may be the only copy.
    private func requireNoOtherNewKey(than key: Key) throws(DatabaseError) {
        do throws(DatabaseError) {
            guard try self.key(in: newFile) != key else { return }
        } catch {
            // What is gone cannot be lost.
            guard FileSystem.mayExist(newFile) else { return }
            throw error
        }
        throw KeyFileReplacement.otherKey(
            "\(newFile) holds another key by now, so it is not removed. \(file) holds the key that the stores have."
        )
    }

    /// Makes sure that the file holds the key for good.
    private func requireInPlace(_ key: Key) throws(DatabaseError) {
        let contents = try SecretFile.durableContents(atPath: file, what: what)
        guard try self.key(in: contents, file) == key else {
            throw KeyFileReplacement.otherKey("The \(what) \(file) does not hold the key that the stores have now.")
        }
    }

    /// Not by `keySourceFailed`, which says that nothing was changed: the stores have the new key.
    private static func otherKey(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_ERROR, reason: .keySourceFailed, message: message)
    }
}
