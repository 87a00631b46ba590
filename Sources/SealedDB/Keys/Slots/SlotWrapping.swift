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
        guard output.count > 0 else { throw .keySourceFailed("The wrap command printed nothing.") }
        // It stays in memory that is wiped until it is known not to be the key.
        let isInTheClear = try SlotTable.shows(secret, digits, in: output)
        guard !isInTheClear else {
            throw .keySourceFailed("The wrap command printed the data key as it is, unwrapped.")
        }
        return Wrap(
            dataKey: dataKey.number,
            form: .program(try output.withBytes { bytes throws(DatabaseError) in Array(bytes) })
        )
    }

    /// Whether the output holds the key as it is, as hex digits with whatever colons and hyphens, or in base64, also that for URLs; with
    /// whatever blanks and newlines.
    private static func shows(
        _ secret: SecretBytes,
        _ digits: SecretBytes,
        in output: SecretBytes
    ) throws(DatabaseError) -> Bool {
        try output.withBytes { output throws(DatabaseError) in
            // As base64 without blanks, and as hex digits in lower case.
            try SecretBytes.withScratch(count: output.count * 2) { scratch throws(DatabaseError) in
                let (hyphen, colon) = (UInt8(ascii: "-"), UInt8(ascii: ":"))
                var (count, digitCount) = (0, 0)
                for byte in output where ![0x20, 0x09, 0x0a, 0x0d].contains(byte) {
                    scratch[count] =
                        byte == hyphen ? UInt8(ascii: "+") : byte == UInt8(ascii: "_") ? UInt8(ascii: "/") : byte
                    count += 1
                    guard byte != hyphen, byte != colon else { continue }
                    scratch[output.count + digitCount] = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte
                    digitCount += 1
                }
                let joined = UnsafeRawBufferPointer(rebasing: scratch[..<count])
                let lower = UnsafeRawBufferPointer(rebasing: scratch[output.count..<(output.count + digitCount)])
                return try secret.withBytes { secret throws(DatabaseError) in
                    try digits.withBytes { digits throws(DatabaseError) in
                        let digits = UnsafeRawBufferPointer(rebasing: digits.dropLast())
                        if output.holds(secret) || lower.holds(digits) { return true }
                        if try joined.holdsBase64(of: secret) { return true }
                        return try joined.holdsBase64(of: digits)
                    }
                }
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

extension UnsafeRawBufferPointer {
    fileprivate func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard count >= bytes.count else { return false }
        return (0...count - bytes.count).contains { start in
            bytes.indices.allSatisfy { self[start + $0] == bytes[$0] }
        }
    }

    /// Whether these bytes hold others in base64, as far as those are encoded by themselves.
    fileprivate func holdsBase64(of bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Bool {
        let whole = bytes.count / 3
        return try SecretBytes.withScratch(count: whole * 4) { target throws(DatabaseError) in
            for group in 0..<whole {
                let value =
                    UInt32(bytes[group * 3]) << 16 | UInt32(bytes[group * 3 + 1]) << 8 | UInt32(bytes[group * 3 + 2])
                for place in 0..<4 {
                    target[group * 4 + place] = Self.base64Digit(value >> UInt32(18 - 6 * place) & 63)
                }
            }
            return holds(UnsafeRawBufferPointer(target))
        }
    }

    private static func base64Digit(_ value: UInt32) -> UInt8 {
        switch value {
        case ..<26: UInt8(ascii: "A") + UInt8(value)
        case ..<52: UInt8(ascii: "a") + UInt8(value - 26)
        case ..<62: UInt8(ascii: "0") + UInt8(value - 52)
        default: value == 62 ? UInt8(ascii: "+") : UInt8(ascii: "/")
        }
    }
}
