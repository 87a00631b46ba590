import Foundation

/// Where a key was read, and can be read again without anybody being asked.
indirect enum KeyProvenance: Sendable {
    case source(KeySource)
    /// The key of this id in a ring file.
    case ring(path: String, id: String)

    /// `nil` for what is read once: a descriptor, the terminal.
    init?(_ source: KeySource) {
        guard source.isRepeatable else { return nil }
        self = .source(source)
    }

    /// Whether asking takes as long as others like.
    fileprivate var isOthersWork: Bool {
        switch self {
        case .source(.keyCommand), .source(.passphraseCommand), .source(.closure): true
        case .source, .ring: false
        }
    }

    fileprivate var name: String {
        switch self {
        case .source(let source): "the \(source)"
        case .ring(let path, let id): "the key \(id) of the key ring \(path)"
        }
    }

    /// Reads the key from where it is once that is synced to disk.
    fileprivate func durableKey() throws(DatabaseError) -> Key {
        switch self {
        case .source(.keyFile(let path)):
            return try KeyFile.rawKey(in: SecretFile.durableContents(atPath: path, what: "key file"), name: name)
        case .source(.passphraseFile(let path)):
            let contents = try SecretFile.durableContents(atPath: path, what: "passphrase file")
            return try KeyFile.passphrase(in: contents, name: name)
        case .source(let source):
            return try source.keyAsGiven()
        case .ring(let path, let id):
            let contents = try SecretFile.durableContents(atPath: path, what: "key ring", limit: KeyRing.sizeLimit)
            let ring = try contents.withBytes { bytes throws(DatabaseError) in
                try KeyRing(parsing: bytes, path: path)
            }
            return try ring.keyAsGiven(id)
        }
    }
}

extension Key {
    /// Makes sure that the key can be had again after this process has ended, whatever ends it.
    ///
    /// A key that was read from a file or a key ring has that synced to disk, with its directory. What can be read again
    /// without anybody being asked (a file, a ring, a credential, a command, a closure) is read again, and must give the
    /// same key. What is on a read-only or virtual file system is as durable as its owner made it. A key that was made in
    /// memory, read from a descriptor or typed in is the caller's to keep.
    ///
    /// Whatever makes a key the only one of some data does this by itself at the last moment: a new store, a rotation, an
    /// encryption, a migration to another key, a restore, a backup under a key of its own.
    /// - Throws: ``DatabaseError/Reason/keySourceFailed`` if another key was read; ``DatabaseError/Reason/ioError`` if the
    ///   file cannot be synced; or as ``KeySource/key()``.
    public func confirm() throws(DatabaseError) {
        _ = try confirmed()
    }

    /// The same key as one of the caller's own, which is used without a look at where it came from: for a key that was
    /// read from a place that is gone by now, and that the caller keeps elsewhere.
    public var detached: Key {
        var key = self
        key.provenance = nil
        return key
    }

    func read(from provenance: KeyProvenance?) -> Key {
        var key = self
        key.provenance = provenance
        return key
    }

    /// As ``confirm()``.
    /// - Parameter isBrief: for whoever keeps others waiting: what is not this library's own work is left out.
    /// - Returns: the key as it was read again; `nil` if it was not.
    func confirmed(isBrief: Bool = false) throws(DatabaseError) -> Key? {
        guard let provenance, !isBrief || !provenance.isOthersWork else { return nil }
        let again: Key
        do throws(DatabaseError) {
            again = try provenance.durableKey()
            // A ring may name a file, and a closure read one.
            _ = try again.confirmed(isBrief: isBrief)
        } catch {
            throw error.adding(context: "The key could not be read again from where it was read")
        }
        guard again == self else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .keySourceFailed,
                message: """
                    Another key was read the second time from \(provenance.name): it gives a new key each time, or was \
                    changed meanwhile. Data under the first key might never be read again, so it was not used.
                    """
            )
        }
        return again
    }
}
