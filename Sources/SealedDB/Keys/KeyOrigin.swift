/// What a configuration has its keys from. Copies share what was read, so that many connections read and derive once.
enum KeyOrigin: Sendable {
    case key(Key)
    case source(SourcedKey)
    case ring(RingHolder)

    /// A key ring as last read.
    final class RingHolder: Sendable {
        private let ring: Guarded<KeyRing>

        init(_ ring: KeyRing) {
            self.ring = Guarded(ring)
        }

        var ringAsRead: KeyRing { ring.withLock { $0 } }

        /// The ring, from its file if it has one.
        func current() throws(DatabaseError) -> KeyRing {
            guard let path = ringAsRead.path else { return ringAsRead }
            let read = try KeyRing(contentsOfFile: path)
            return ring.withLock { ring in
                ring = read.keeping(ring)
                return ring
            }
        }
    }

    /// Calls `body` with one key after the other until it does not throw ``DatabaseError/Reason/wrongKey``.
    /// - Parameter adopted: a key that the store was given meanwhile, tried first.
    func open<T>(
        _ name: String,
        adopted: Key?,
        _ body: (Key) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> (T, FittingKey) {
        // Before a key is read or asked for.
        try Engine.requireCodec()
        if let adopted {
            do throws(DatabaseError) {
                return (try body(adopted), try fitting(adopted))
            } catch {
                guard error.reason == .wrongKey else { throw error }
            }
        }
        switch self {
        case .key(let key):
            return (try body(key), FittingKey(key: key))
        case .source(let source):
            switch try source.attempt(body) {
            case .opened(let result, let key): return (result, FittingKey(key: key))
            case .wrongKey(let error):
                throw source.source.map { error.adding(context: "With the \($0)") } ?? error
            case .unreadable(let error): throw error
            }
        case .ring(let holder):
            let ring = try holder.current()
            let opened = try ring.open(name, wrap: { $0 }) { (key, _) throws(DatabaseError) in try body(key) }
            let needsRotation = opened.id != ring.activeID
            return (opened.result, FittingKey(key: opened.key, id: opened.id, needsRotation: needsRotation))
        }
    }

    /// What there is to say of a key that a rotation gave the store.
    func fitting(_ key: Key) throws(DatabaseError) -> FittingKey {
        guard case .ring(let holder) = self else { return FittingKey(key: key) }
        let ring = try holder.current()
        let id = ring.id(of: key)
        return FittingKey(key: key, id: id, needsRotation: id != ring.activeID)
    }
}

/// The key that opened a store.
struct FittingKey: Sendable {
    let key: Key
    /// In the key ring; `nil` without one, or for a key that is not in it.
    var id: String?
    var needsRotation = false
}

extension SourcedKey {
    /// What came of trying a key.
    enum Attempt<T, E: Error> {
        case opened(T, Key)
        case wrongKey(E)
        case unreadable(DatabaseError)
    }

    /// Calls `body` with the key as known, and if that is wrong with the one that the source has now.
    func attempt<T, E: Error>(_ body: (Key) throws(E) -> T) throws(E) -> Attempt<T, E> {
        let key: Key
        let mismatch: E
        switch Result(catching: { () throws(DatabaseError) in try self.key() }) {
        case .success(let known): key = known
        case .failure(let error): return .unreadable(error)
        }
        do throws(E) {
            return .opened(try body(key), key)
        } catch {
            guard (error as? DatabaseError)?.reason == .wrongKey else { throw error }
            mismatch = error
        }
        switch Result(catching: { () throws(DatabaseError) in try newKey(insteadOf: key) }) {
        case .success(nil): return .wrongKey(mismatch)
        case .success(let newKey?):
            do throws(E) {
                return .opened(try body(newKey), newKey)
            } catch {
                guard (error as? DatabaseError)?.reason == .wrongKey else { throw error }
                return .wrongKey(error)
            }
        case .failure(let error): return .unreadable(error)
        }
    }
}

extension KeyRing {
    /// Calls `body` with the active key and its id, then with the others, until it does not throw
    /// ``DatabaseError/Reason/wrongKey``.
    /// - Parameter name: of what is to be opened, for the error.
    /// - Returns: what `body` returned.
    /// - Throws: what `body` throws otherwise. If no key fits, ``DatabaseError/Reason/wrongKey`` with all ids; if none
    ///   could be read, the error of reading the active one.
    public func withKey<T>(toOpen name: String, _ body: (Key, String) throws -> T) throws -> T {
        try open(name, wrap: { $0 }, body).result
    }

    func open<T, E: Error>(
        _ name: String,
        wrap: (DatabaseError) -> E,
        _ body: (Key, String) throws(E) -> T
    ) throws(E) -> (result: T, id: String, key: Key) {
        var triedIDs: [String] = []
        var unreadable: [(id: String, error: DatabaseError)] = []
        for entry in entriesToTry {
            switch try entry.key.attempt({ key throws(E) in try body(ofRing(key, entry.id), entry.id) }) {
            case .opened(let result, let key): return (result, entry.id, ofRing(key, entry.id))
            case .wrongKey: triedIDs.append(entry.id)
            case .unreadable(let error): unreadable.append((entry.id, error))
            }
        }
        let complaints = unreadable.map { "\($0.id): \($0.error.message)" }
        guard !triedIDs.isEmpty else {
            let first = unreadable[0].error
            throw wrap(
                DatabaseError(
                    extendedCode: first.extendedCode,
                    reason: first.reason,
                    message: "No key of the ring could be read. \(complaints.joined(separator: " "))"
                )
            )
        }
        let others = complaints.isEmpty ? "" : " Not tried, because they could not be read: "
        throw wrap(
            DatabaseError(
                extendedCode: SQLITE_NOTADB,
                reason: .wrongKey,
                message: """
                    No key of the ring opens \(name); tried were \(triedIDs.joined(separator: ", ")) (the active key is \
                    \(activeID)). The file was not changed. Add the right key to the ring.\
                    \(others)\(complaints.joined(separator: " "))
                    """
            )
        )
    }

    /// The same ring, with the keys that another one has read from the same files.
    func keeping(_ old: KeyRing) -> KeyRing {
        let kept = entries.map { entry in
            guard let source = entry.key.source,
                let known = old.entries.first(where: { $0.key.source.map { $0.isSameFile(as: source) } ?? false })
            else { return entry }
            return Entry(id: entry.id, key: known.key)
        }
        return KeyRing(activeID: activeID, entries: kept, path: path)
    }
}

extension KeySource {
    fileprivate func isSameFile(as other: KeySource) -> Bool {
        switch (self, other) {
        case (.keyFile(let first), .keyFile(let second)), (.passphraseFile(let first), .passphraseFile(let second)),
            (.keyCredential(let first), .keyCredential(let second)),
            (.passphraseCredential(let first), .passphraseCredential(let second)):
            first == second
        default: false
        }
    }
}
