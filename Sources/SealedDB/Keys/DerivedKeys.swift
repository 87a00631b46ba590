internal import CSealedDBSystem

/// The keys that are derived from one passphrase, one for each salt. Each is derived once, however many connections and
/// threads ask for it.
final class DerivedKeys: Sendable {
    private struct Input: Hashable {
        let salt: [UInt8]
        let derivation: KeyDerivation
    }

    /// Holds one derived key. Others who ask for the key while it is derived wait for its lock.
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

    /// The most keys that are kept. Each takes two locked pages of memory, so for a passphrase that opens thousands of
    /// stores only the latest keys are kept.
    private static let limit = 256

    /// How many keys have been derived. For tests.
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

    /// The salt for a store that does not exist yet. All who want to create the store at the same time get the same
    /// salt.
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

    /// Forgets the salt of a new store. Call it when the store exists, because its file holds the salt then.
    func storeExists(_ path: String) {
        state.withLock { $0.newSalts[path] = nil }
    }
}
