import Foundation

/// Where a key was read, if it can be read again from there without asking anybody.
indirect enum KeyProvenance: Sendable {
    case source(KeySource)
    /// The key of this id in a ring file.
    case ring(path: String, id: String)

    /// `nil` for a source that can be read only once: a descriptor or the terminal.
    init?(_ source: KeySource) {
        guard source.isRepeatable else { return nil }
        self = .source(source)
    }

    /// Whether reading runs code outside of this library, which may take any time.
    fileprivate var isOthersWork: Bool {
        switch self {
        case .source(.keyCommand), .source(.passphraseCommand), .source(.closure), .source(.asyncClosure): true
        case .source, .ring: false
        }
    }

    fileprivate var name: String {
        switch self {
        case .source(let source): "the \(source)"
        case .ring(let path, let id): "the key \(id) of the key ring \(path)"
        }
    }

    /// Reads the key again. If it is in a file, the file is first synced to disk.
    /// - Parameters:
    ///   - hold: what keeps a ring from being changed after that.
    ///   - isBrief: whether others are waiting meanwhile.
    fileprivate func durableKey(_ hold: KeyHold?, isBrief: Bool) throws(DatabaseError) -> Key {
        switch self {
        case .source(.keyFile(let path)):
            return try KeyFile.rawKey(in: SecretFile.durableContents(atPath: path, what: "key file"), name: name)
        case .source(.passphraseFile(let path)):
            let contents = try SecretFile.durableContents(atPath: path, what: "passphrase file")
            return try KeyFile.passphrase(in: contents, name: name)
        case .source(let source):
            return try source.keyAsGiven()
        case .ring(let path, let id):
            try hold?.add(ring: path, timeout: isBrief ? 1 : 10)
            let contents = try SecretFile.durableContents(atPath: path, what: "key ring", limit: KeyRing.sizeLimit)
            let ring = try contents.withBytes { bytes throws(DatabaseError) in
                try KeyRing(parsing: bytes, path: path)
            }
            return try ring.keyAsGiven(id)
        }
    }
}

extension Key {
    /// Makes sure that the key can be read again after this process has ended, for whatever reason it ends.
    ///
    /// If the key was read from a file or a key ring, that file and its directory are synced to disk. If it came from a
    /// source that can be read again without asking anybody (a file, a ring, a credential, a command, a closure), it is
    /// read again, and must be the same key. A file on a read-only or virtual file system is as durable as its owner
    /// made it. If the key was made in memory, read from a descriptor or typed in, keeping it is up to the caller.
    ///
    /// Operations after which the key is the only one of some data call this by themselves at the last moment: the
    /// creation of a store, a rotation, an encryption, a migration to another key, a restore, and a backup under a key
    /// of its own.
    /// - Throws: ``DatabaseError/Reason/keySourceFailed`` if another key was read; ``DatabaseError/Reason/ioError`` if
    ///   the file cannot be synced; or as ``KeySource/key()``.
    public func confirm() throws(DatabaseError) {
        _ = try confirmed()
    }

    /// The same key without its origin: it is used without being read again from where it came. Use it for a key whose
    /// source is gone by now, and which the caller keeps elsewhere.
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

    /// Keeps a key that was read from a ring in it until the hold is released. Others wait meanwhile.
    /// - Throws: if the ring has it no more.
    func keepInRing(_ hold: KeyHold) throws(DatabaseError) {
        guard case .ring = provenance else { return }
        _ = try confirmed(isBrief: true, keptBy: hold)
    }

    /// The same for a key that is about to be replaced. If it has left its ring, or the ring cannot be read, the new key is
    /// what saves the store, so nothing is thrown.
    /// - Throws: if somebody changes the ring at this moment.
    func keepInRingIfThere(_ hold: KeyHold) throws(DatabaseError) {
        do throws(DatabaseError) {
            try keepInRing(hold)
        } catch {
            guard error.reason != .busy else { throw error }
        }
    }

    /// Like ``confirm()``.
    /// - Parameters:
    ///   - isBrief: whether to skip commands and closures, because others are waiting meanwhile.
    ///   - hold: what keeps the key in its ring until it is released.
    /// - Returns: the key as it was read again; `nil` if it was not read again.
    func confirmed(isBrief: Bool = false, keptBy hold: KeyHold? = nil) throws(DatabaseError) -> Key? {
        guard let provenance, !isBrief || !provenance.isOthersWork else { return nil }
        let again: Key
        do throws(DatabaseError) {
            again = try provenance.durableKey(hold, isBrief: isBrief)
            // The ring may name a file, and the closure may have read one: confirm that too.
            _ = try again.confirmed(isBrief: isBrief, keptBy: hold)
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
