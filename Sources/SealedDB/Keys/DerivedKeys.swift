internal import CSealedDBSystem

/// What one passphrase became: a key for each salt, derived once, however many connections and threads ask for it.
final class DerivedKeys: Sendable {
    private struct Input: Hashable {
        let salt: [UInt8]
        let derivation: KeyDerivation
    }

    /// Whoever comes while the key is being derived waits for it here.
    private final class Slot: Sendable {
        let key = Guarded<Key?>(nil)
    }

    private struct State {
        var slots: [Input: Slot] = [:]
        var inputs: [Input] = []
        var newSalts: [String: [UInt8]] = [:]
        var derivationCount = 0
    }

    private let state = Guarded(State())

    /// Each key takes two locked pages, so a passphrase that opens thousands of stores keeps those of the last ones.
    private static let limit = 256

    /// How often a key was derived. For tests.
    var derivationCount: Int { state.withLock { $0.derivationCount } }

    func key(
        of passphrase: SecretBytes,
        salt: [UInt8],
        derivation: KeyDerivation
    ) throws(DatabaseError) -> Key {
        let slot = slot(for: Input(salt: salt, derivation: derivation))
        let result = slot.key.withLock { key -> Result<Key, DatabaseError> in
            if let key { return .success(key) }
            state.withLock { $0.derivationCount += 1 }
            return Result { () throws(DatabaseError) in
                let derived = Key(form: .raw, secret: try derivation.key(from: passphrase, salt: salt))
                key = derived
                return derived
            }
        }
        return try result.get()
    }

    private func slot(for input: Input) -> Slot {
        state.withLock { state in
            if let slot = state.slots[input] { return slot }
            if state.inputs.count == DerivedKeys.limit { state.slots[state.inputs.removeFirst()] = nil }
            let slot = Slot()
            state.slots[input] = slot
            state.inputs.append(input)
            return slot
        }
    }

    // MARK: New stores

    /// The salt for a store that does not exist yet: the same for all who want to create it at the same time.
    func saltOfNewStore(_ path: String) throws(DatabaseError) -> [UInt8] {
        var salt = [UInt8](repeating: 0, count: Key.saltByteCount)
        guard sealeddb_random(&salt, salt.count) == 0 else {
            throw .system("No random bytes for a salt", reason: .ioError)
        }
        let fresh = salt
        return state.withLock { state in
            if let known = state.newSalts[path] { return known }
            state.newSalts[path] = fresh
            return fresh
        }
    }

    /// The store exists now, and has its salt in it.
    func storeExists(_ path: String) {
        state.withLock { $0.newSalts[path] = nil }
    }
}
