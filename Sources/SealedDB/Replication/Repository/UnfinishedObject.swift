internal import CSealedDBSystem
import Foundation

/// A file of a repository that has not got its name yet.
final class UnfinishedObject {
    /// The name that it is to get.
    let target: String
    let file: NewFile
    /// The name that it has until then.
    private var path: String?

    /// Creates an empty file.
    init(_ path: String, target: String) throws(DatabaseError) {
        self.target = target
        do throws(DatabaseError) {
            let identity = try FileIdentity(creating: path)
            guard let file = try NewFile(identity, path: path) else {
                throw DatabaseError(
                    extendedCode: SQLITE_CANTOPEN,
                    reason: .unverified,
                    message: "Somebody else put a file in the place of \(path). Nothing was shipped."
                )
            }
            (self.file, self.path) = (file, path)
        } catch {
            // What cannot be removed, here and below, is removed by the next lease.
            unlink(path)
            throw error.naming(target, insteadOf: path)
        }
    }

    var isNamed: Bool { path == nil }

    func synchronize() throws(DatabaseError) {
        do throws(DatabaseError) {
            try file.synchronize()
        } catch {
            throw error.naming(target, insteadOf: file.path)
        }
    }

    /// Gives it its name, which is not durable by that.
    /// - Returns: false if something has the name, which is not to be replaced.
    func takeName(replaces: Bool) throws(DatabaseError) -> Bool {
        let result = replaces ? rename(file.path, target) : sealeddb_rename_exclusively(file.path, target)
        guard result == 0 else {
            let number = errno
            guard number == EEXIST, !replaces else {
                throw .system("Cannot create \(target)", reason: .cannotCreate, number: number)
            }
            return false
        }
        path = nil
        return true
    }

    /// Removes it, if it has not got its name.
    func discard() {
        guard let path else { return }
        // See above.
        unlink(path)
        self.path = nil
    }
}

extension DatabaseError {
    /// The same error, with another name of a file in its message: the other is another one at each attempt, and nobody knows
    /// it.
    func naming(_ name: String, insteadOf other: String) -> DatabaseError {
        DatabaseError(
            extendedCode: extendedCode,
            reason: reason,
            message: message.replacingOccurrences(of: other, with: name, options: .literal),
            underlyingError: underlyingError
        )
    }
}
