internal import CSealedDBSystem
import Foundation

/// The key of a store: a raw key, or a passphrase from which the raw key is derived as SQLCipher does it. In a store with
/// slots (see ``KeySlots``) it is the key of any slot.
///
/// The bytes are held in locked memory that core dumps leave out, masked by a random pad. They are wiped when the last
/// copy of the key is released. While a store is open, SQLCipher keeps the raw key in its own memory; up to version 4.6
/// it is not encrypted there. A key prints as `Key(redacted)`, compares in constant time and cannot be encoded.
/// SQLCipher's forms of keys: <https://www.zetetic.net/sqlcipher/sqlcipher-api/#key>.
public struct Key: Sendable {
    enum Form {
        case passphrase, raw, rawWithSalt
        /// The arguments of a program that unwraps the data key of a store with slots.
        case program
    }

    let form: Form
    private let secret: SecretBytes
    /// The keys derived from a passphrase; `nil` for a raw key. All copies of this key share it.
    let derivedKeys: DerivedKeys?
    /// What the key was worth in stores with slots. All copies of this key share it.
    let slotKeys = SlotKeys()
    /// The program that unwraps; `nil` for a key of another form.
    let unwrapCommand: KeyCommand?
    /// Where the key was read; `nil` if it cannot be read again from there, or was made by the caller. Comparisons
    /// ignore it.
    var provenance: KeyProvenance?

    init(form: Form, secret: SecretBytes, unwrapCommand: KeyCommand? = nil) {
        self.form = form
        self.unwrapCommand = unwrapCommand
        self.secret = secret
        derivedKeys = form == .passphrase ? DerivedKeys() : nil
    }

    /// A passphrase. Its UTF-8 bytes are used.
    ///
    /// The raw key is derived from it once for each store, which takes 0.1 to 0.4 s. After that, every connection to
    /// the store that uses this `Key` or a copy of it opens in a fraction of a millisecond.
    ///
    /// The `String` itself cannot be wiped: prefer ``passphrase(_:)-(UnsafeRawBufferPointer)`` or a ``KeySource``.
    /// - Throws: ``DatabaseError/Reason/malformedKey`` if it is empty, or if it has the form `x'…'`, which SQLCipher
    ///   takes for a raw key.
    public static func passphrase(_ text: String) throws(DatabaseError) -> Key {
        var text = text
        let secret = try SecretBytes(capacity: text.utf8.count) { target throws(DatabaseError) in
            text.withUTF8 { target.copyMemory(from: UnsafeRawBufferPointer($0)) }
            return target.count
        }
        return try passphrase(secret)
    }

    /// A passphrase of any bytes, of which a copy is made.
    /// - Throws: as ``passphrase(_:)-(String)``.
    public static func passphrase(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        try passphrase(SecretBytes(copying: bytes))
    }

    static func passphrase(_ secret: SecretBytes) throws(DatabaseError) -> Key {
        guard secret.count > 0 else {
            throw .malformedKey("The passphrase is empty; SQLCipher would go on in plaintext.")
        }
        let isRawKey = try secret.withBytes { bytes throws(DatabaseError) in isRawKeyLiteral(bytes) }
        guard !isRawKey else {
            throw .malformedKey(
                "The passphrase has the shape x'…' of a raw key, for which SQLCipher would take it. Use Key.raw."
            )
        }
        return Key(form: .passphrase, secret: secret)
    }

    /// A raw key of 32 bytes. Nothing is derived from it, so a store opens in a fraction of a millisecond.
    /// - Throws: ``DatabaseError/Reason/malformedKey`` for any other length.
    public static func raw(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        guard bytes.count == rawByteCount else {
            throw .malformedKey("A raw key is 32 bytes, and \(bytes.count) were given.")
        }
        return Key(form: .raw, secret: try SecretBytes(copying: bytes))
    }

    /// A raw key of 32 bytes with a salt of 16 bytes. The salt is used instead of the one in the store's file.
    /// - Throws: ``DatabaseError/Reason/malformedKey`` for any other lengths.
    public static func raw(
        _ bytes: UnsafeRawBufferPointer,
        salt: UnsafeRawBufferPointer
    ) throws(DatabaseError) -> Key {
        guard bytes.count == rawByteCount, salt.count == saltByteCount else {
            throw .malformedKey("A raw key is 32 bytes and its salt 16; \(bytes.count) and \(salt.count) were given.")
        }
        let secret = try SecretBytes(capacity: rawByteCount + saltByteCount) { target throws(DatabaseError) in
            target.copyMemory(from: bytes)
            UnsafeMutableRawBufferPointer(rebasing: target[rawByteCount...]).copyMemory(from: salt)
            return target.count
        }
        return Key(form: .rawWithSalt, secret: secret)
    }

    /// A raw key from the kernel's random generator.
    /// - Throws: ``DatabaseError/Reason/ioError`` if the kernel gives no random bytes.
    public static func random() throws(DatabaseError) -> Key {
        let secret = try SecretBytes(capacity: rawByteCount) { target throws(DatabaseError) in
            guard sealeddb_random(target.baseAddress, target.count) == 0 else {
                throw .system("No random bytes for a key", reason: .ioError)
            }
            return target.count
        }
        return Key(form: .raw, secret: secret)
    }

    /// What stands for a program that unwraps the data key of a store with slots.
    static func program(_ command: KeyCommand) throws(DatabaseError) -> Key {
        try command.validate()
        let arguments = Array(command.arguments.joined(separator: "\0").utf8)
        let secret = try SecretBytes(copying: arguments)
        return Key(form: .program, secret: secret, unwrapCommand: command)
    }

    static let rawByteCount = 32
    static let saltByteCount = 16

    /// Whether SQLCipher would take the bytes for a raw key: `x'`, then the hex digits of a key (with or without a salt
    /// and an HMAC key), then one more byte. Like SQLCipher, this ignores what the last byte is.
    static func isRawKeyLiteral(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let digits = bytes.count - 3
        guard [64, 96, 128, 160].contains(digits), bytes[0] | 0x20 == UInt8(ascii: "x"), bytes[1] == UInt8(ascii: "'")
        else { return false }
        return bytes[2..<2 + digits].allSatisfy { Hexadecimal.value(of: $0) != nil }
    }

    /// Throws if a text that should be a name has the form of a raw key. The error does not show it.
    package static func requireName(_ name: String, of what: String) throws(DatabaseError) {
        var name = name
        let isKey = name.withUTF8 { bytes in
            let isHexadecimal = bytes.allSatisfy { Hexadecimal.value(of: $0) != nil }
            return isHexadecimal && [64, 96, 128, 160].contains(bytes.count)
                || isRawKeyLiteral(UnsafeRawBufferPointer(bytes))
        }
        guard isKey else { return }
        throw .malformedKey(
            """
            What was given as the name of a \(what) has the form of a raw key, and is not shown. Others can see what is \
            on a command line, so take another key, and put it into a file. Write ./NAME if a file has such a name.
            """
        )
    }

    /// The key that a text stands for in FMDB: `x'…'` is a raw key, anything else a passphrase.
    static func interpreting(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        guard isRawKeyLiteral(bytes) else { return try passphrase(bytes) }
        return try raw(hexadecimal: UnsafeRawBufferPointer(rebasing: bytes[2..<bytes.count - 1]))
    }

    /// A raw key from hex digits, with or without its salt.
    static func raw(hexadecimal digits: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        guard [rawByteCount * 2, (rawByteCount + saltByteCount) * 2].contains(digits.count) else {
            throw .malformedKey("A raw key has 64 hex digits, or 96 with the salt.")
        }
        let secret = try Hexadecimal.decode(digits)
        return Key(form: secret.count == rawByteCount ? .raw : .rawWithSalt, secret: secret)
    }

    /// The raw key of the store with this salt: the data key, if this key was found to open a slot of the store; or what
    /// SQLCipher would derive from a passphrase. Otherwise a raw key is returned as it is.
    func derived(salt: [UInt8], by derivation: KeyDerivation) throws(DatabaseError) -> Key {
        if form != .rawWithSalt, let dataKey = slotKeys.dataKey(salt: salt) { return dataKey }
        guard form != .program else { throw Key.needsSlots }
        guard let derivedKeys else { return self }
        return try derivedKeys.key(of: secret, salt: salt, derivation: derivation)
    }

    static let needsSlots = DatabaseError.malformedKey(
        "A program that unwraps opens only stores with slots, and this has none."
    )

    /// A raw key with the salt of its store.
    static func raw(_ key: SecretBytes, salt: [UInt8]) throws(DatabaseError) -> Key {
        precondition(key.count == rawByteCount && salt.count == saltByteCount)
        let secret = try SecretBytes(capacity: rawByteCount + saltByteCount) { target throws(DatabaseError) in
            try key.withBytes { bytes throws(DatabaseError) in target.copyMemory(from: bytes) }
            for (position, byte) in salt.enumerated() { target[rawByteCount + position] = byte }
            return target.count
        }
        return Key(form: .rawWithSalt, secret: secret)
    }

    /// The same key, as if it had never been used: everything is derived from it anew.
    var unused: Key {
        var key = Key(form: form, secret: secret, unwrapCommand: unwrapCommand)
        key.provenance = provenance
        return key
    }

    /// Calls `body` with the bytes of the key or passphrase.
    func withSecret<T>(_ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try secret.withBytes(body)
    }

    /// The salt that is part of the key; `nil` if the key has none, so that the salt of the file applies.
    func embeddedSalt() throws(DatabaseError) -> [UInt8]? {
        guard form == .rawWithSalt else { return nil }
        return try secret.withBytes { bytes in Array(bytes[Key.rawByteCount...]) }
    }

    /// The 32 bytes with which pages are encrypted.
    func encryptionKey(salt: [UInt8], by derivation: KeyDerivation) throws(DatabaseError) -> SecretBytes {
        try derived(salt: salt, by: derivation).secret.withBytes { bytes throws(DatabaseError) in
            try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<Key.rawByteCount]))
        }
    }

    /// Calls `body` with the key in SQLCipher's form `x'…'`, in a buffer that is wiped afterwards. Only for raw keys.
    /// - Parameter salt: the salt of the store; empty to leave it out. Ignored if the key has a salt of its own.
    func withKeySpec<T>(
        salt: [UInt8] = [],
        _ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        precondition(form != .passphrase, "A passphrase is not handed to SQLCipher, but the key derived from it.")
        guard form != .program else { throw Key.needsSlots }
        let salt = form == .raw ? salt : []
        let count = (secret.count + salt.count) * 2 + 3
        return try SecretBytes.withScratch(count: count) { target throws(DatabaseError) in
            target[0] = UInt8(ascii: "x")
            target[1] = UInt8(ascii: "'")
            try encode(to: UnsafeMutableRawBufferPointer(rebasing: target[2...]))
            salt.withUnsafeBytes { bytes in
                let rest = target[(2 + secret.count * 2)...]
                Hexadecimal.encode(bytes, to: UnsafeMutableRawBufferPointer(rebasing: rest))
            }
            target[target.count - 1] = UInt8(ascii: "'")
            return try body(UnsafeRawBufferPointer(target))
        }
    }

    /// Writes the key as hex digits. Only for raw keys.
    /// - Returns: the number of digits.
    @discardableResult
    func encode(to target: UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Int {
        try secret.withBytes { bytes throws(DatabaseError) in Hexadecimal.encode(bytes, to: target) }
        return secret.count * 2
    }

    /// Number of bytes of the passphrase, or of the raw key together with its salt.
    var byteCount: Int { secret.count }
}

extension Key: Equatable {
    /// Whether both are the same key, compared in a time that does not depend on where they differ.
    public static func == (first: Key, second: Key) -> Bool {
        first.form == second.form && first.secret.isEqual(to: second.secret)
    }
}

extension Key: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `Key(redacted)`.
    public var description: String { "Key(redacted)" }
    /// Always `Key(redacted)`.
    public var debugDescription: String { description }
    /// Shows nothing of the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension DatabaseError {
    static func malformedKey(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .malformedKey,
            message: message + " The key was not used, and nothing was changed."
        )
    }
}
