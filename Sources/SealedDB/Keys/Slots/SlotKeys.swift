/// What one key has been worth in stores with slots. All copies of the key share it, so that a passphrase is derived, and a
/// program run, once for each slot, however many connections open the store.
///
/// Only what a derivation or a program gave is kept. The slots themselves are read at each opening, so a slot that was
/// removed opens nothing from then on.
final class SlotKeys: Sendable {
    private struct Input: Hashable {
        /// The salt of a derivation, or what a program is to unwrap.
        let bytes: [UInt8]
        let cost: Int
    }

    /// Holds one result. Others who ask for it meanwhile wait for its lock.
    private final class Entry: Sendable {
        let secret = Guarded<SecretBytes?>(nil)
    }

    private struct State {
        var entries: [Input: Entry] = [:]
        var inputs: [Input] = []
        var dataKeys: [[UInt8]: Key] = [:]
        var salts: [[UInt8]] = []
        var derivationCount = 0
    }

    private let state = Guarded(State())

    /// The most results that are kept, as of ``DerivedKeys``.
    private static let limit = 256

    /// How many passphrases were derived and programs run. For tests.
    var derivationCount: Int { state.withLock { $0.derivationCount } }

    // MARK: Data keys

    /// The data key of the store whose file begins with this salt, if this key was found to open its slots. That is true
    /// for good: a salt is made with its data key, and never changes.
    func dataKey(salt: [UInt8]) -> Key? { state.withLock { $0.dataKeys[salt] } }

    func note(_ dataKey: SecretBytes, salt: [UInt8]) {
        let key = Key(form: .raw, secret: dataKey)
        state.withLock { state in
            if state.dataKeys.updateValue(key, forKey: salt) == nil {
                state.salts.append(salt)
                if state.salts.count > SlotKeys.limit { state.dataKeys[state.salts.removeFirst()] = nil }
            }
        }
    }

    // MARK: Derivations

    /// The key with which the data key is wrapped.
    func wrappingKey(
        of key: Key,
        _ derivation: SlotTable.Derivation,
        salt: [UInt8]
    ) throws(DatabaseError) -> SecretBytes {
        switch derivation {
        case .hkdf:
            // This takes microseconds.
            return try SecretBytes(capacity: KeyWrapping.keyByteCount) { target throws(DatabaseError) in
                try key.withSecret { bytes throws(DatabaseError) in
                    try KeyWrapping.expand(bytes, salt: salt, info: "\(SlotTable.header) wrap", into: target)
                }
                return target.count
            }
        case .scrypt(let scrypt):
            return try once(Input(bytes: salt, cost: scrypt.cost)) { () throws(DatabaseError) in
                try SecretBytes(capacity: KeyWrapping.keyByteCount) { target throws(DatabaseError) in
                    try key.withSecret { bytes throws(DatabaseError) in
                        try KeyWrapping.stretch(
                            bytes,
                            salt: salt,
                            cost: scrypt.cost,
                            blockSize: scrypt.blockSize,
                            lanes: scrypt.lanes,
                            into: target
                        )
                    }
                    return target.count
                }
            }
        }
    }

    /// The data key that the program of the key makes of what another one had wrapped.
    func unwrapped(_ bytes: [UInt8], by key: Key) throws(DatabaseError) -> SecretBytes {
        guard let command = key.unwrapCommand else { preconditionFailure("The slot of a program needs a program.") }
        return try once(Input(bytes: bytes, cost: 0)) { () throws(DatabaseError) in
            let output = try command.output(input: SecretBytes(copying: bytes))
            let dataKey = try KeyFile.rawKey(in: output, name: "What the unwrap command printed")
            guard dataKey.form == .raw else {
                throw .keySourceFailed("The unwrap command printed no key of 64 hex digits.")
            }
            return try dataKey.withSecret { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
        }
    }

    private func once(
        _ input: Input,
        _ body: () throws(DatabaseError) -> SecretBytes
    ) throws(DatabaseError) -> SecretBytes {
        let entry = entry(for: input)
        let result = entry.secret.withLock { secret -> Result<SecretBytes, DatabaseError> in
            if let secret { return .success(secret) }
            state.withLock { $0.derivationCount += 1 }
            return Result { () throws(DatabaseError) in
                let made = try body()
                secret = made
                return made
            }
        }
        return try result.get()
    }

    private func entry(for input: Input) -> Entry {
        state.withLock { state in
            if let entry = state.entries[input] { return entry }
            if state.inputs.count == SlotKeys.limit { state.entries[state.inputs.removeFirst()] = nil }
            let entry = Entry()
            state.entries[input] = entry
            state.inputs.append(input)
            return entry
        }
    }
}
