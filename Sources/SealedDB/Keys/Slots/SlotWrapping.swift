/// Wraps data keys for slots, and unwraps them.
extension SlotTable {
    /// Wraps a data key under a key or passphrase. Salt and nonce are new each time.
    /// - Parameters:
    ///   - number: that of the slot.
    ///   - scrypt: what a passphrase is derived with.
    func wrap(
        _ secret: SecretBytes,
        _ dataKey: DataKey,
        slot number: Int,
        under key: Key,
        scrypt: Scrypt = .usual
    ) throws(DatabaseError) -> Wrap {
        let kind = try SlotTable.kind(of: key)
        guard kind != .program else {
            throw .malformedKey("A program that unwraps cannot wrap: a slot of a program needs a wrap command.")
        }
        let derivation = kind == .passphrase ? Derivation.scrypt(scrypt) : .hkdf
        let salt = try SlotTable.random(SlotTable.saltByteCount)
        let nonce = try SlotTable.random(KeyWrapping.nonceByteCount)
        let bound = bound(number, kind, dataKey, derivation, salt: salt)
        let wrapping = try key.slotKeys.wrappingKey(of: key, derivation, salt: salt)
        let sealed = try wrapping.withBytes { wrapping throws(DatabaseError) in
            try secret.withBytes { secret throws(DatabaseError) in
                try KeyWrapping.seal(secret, key: wrapping, nonce: nonce, bound: bound)
            }
        }
        return Wrap(dataKey: dataKey.number, form: .sealed(derivation, salt: salt, nonce: nonce, bytes: sealed))
    }

    /// Has a program wrap a data key: it reads 64 hex digits and a newline, and prints what is kept.
    func wrap(_ secret: SecretBytes, _ dataKey: DataKey, by command: KeyCommand) throws(DatabaseError) -> Wrap {
        let digits = try SecretBytes(capacity: KeyWrapping.keyByteCount * 2 + 1) { target throws(DatabaseError) in
            try secret.withBytes { bytes throws(DatabaseError) in Hexadecimal.encode(bytes, to: target) }
            target[target.count - 1] = UInt8(ascii: "\n")
            return target.count
        }
        let output = try command.output(input: digits)
        let bytes = try output.withBytes { bytes throws(DatabaseError) in Array(bytes) }
        let isInTheClear = try SlotTable.shows(secret, in: bytes)
        guard !bytes.isEmpty, !isInTheClear else {
            throw .keySourceFailed(
                bytes.isEmpty
                    ? "The wrap command printed nothing." : "The wrap command printed the data key as it is, unwrapped."
            )
        }
        return Wrap(dataKey: dataKey.number, form: .program(bytes))
    }

    /// Whether the bytes hold the key as it is, or as hex digits.
    private static func shows(_ secret: SecretBytes, in bytes: [UInt8]) throws(DatabaseError) -> Bool {
        try SecretBytes.withScratch(count: KeyWrapping.keyByteCount * 2) { digits throws(DatabaseError) in
            try secret.withBytes { secret throws(DatabaseError) in
                Hexadecimal.encode(secret, to: digits)
                let lower = bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) ? $0 | 0x20 : $0 }
                return lower.holds(UnsafeRawBufferPointer(digits)) || bytes.holds(secret)
            }
        }
    }

    static func kind(of key: Key) throws(DatabaseError) -> Kind {
        switch key.form {
        case .passphrase: return .passphrase
        case .raw: return .key
        case .program: return .program
        case .rawWithSalt:
            throw .malformedKey("A key with a salt is that of one store, and none of a slot.")
        }
    }

    /// The data key, if this key opens the slot; `nil` if it does not.
    /// - Throws: for a program that fails.
    func unwrap(_ slot: Slot, _ dataKey: DataKey, with key: Key) throws(DatabaseError) -> SecretBytes? {
        guard key.form != .rawWithSalt, try SlotTable.kind(of: key) == slot.kind,
            let wrap = slot.wraps.first(where: { $0.dataKey == dataKey.number })
        else { return nil }
        switch wrap.form {
        case .program(let bytes):
            return try key.slotKeys.unwrapped(bytes, by: key)
        case .sealed(let derivation, let salt, let nonce, let sealed):
            let wrapping = try key.slotKeys.wrappingKey(of: key, derivation, salt: salt)
            let bound = bound(slot.number, slot.kind, dataKey, derivation, salt: salt)
            var isOpen = false
            let secret = try SecretBytes(capacity: KeyWrapping.keyByteCount) { target throws(DatabaseError) in
                isOpen = try wrapping.withBytes { wrapping throws(DatabaseError) in
                    try KeyWrapping.open(sealed, key: wrapping, nonce: nonce, bound: bound, into: target)
                }
                return target.count
            }
            return isOpen ? secret : nil
        }
    }
}

extension [UInt8] {
    fileprivate func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard count >= bytes.count else { return false }
        return (0...count - bytes.count).contains { start in self[start..<start + bytes.count].elementsEqual(bytes) }
    }
}
