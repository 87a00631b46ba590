internal import CSealedDBSystem
import Foundation

/// A key of a store: a passphrase, from which SQLCipher derives the key proper, or that key itself.
///
/// Its bytes are held in locked memory that core dumps leave out, and are wiped when the last copy goes. A key
/// prints as `Key(redacted)`, compares in constant time and cannot be encoded. SQLCipher's forms of keys:
/// <https://www.zetetic.net/sqlcipher/sqlcipher-api/#key>.
public struct Key: Sendable {
    enum Form { case passphrase, raw, rawWithSalt }

    let form: Form
    private let secret: SecretBytes

    private init(form: Form, secret: SecretBytes) {
        self.form = form
        self.secret = secret
    }

    /// A passphrase, as its UTF-8 bytes. Each connection that opens a store with it derives the key anew, which
    /// takes 0.2 to 0.4 s.
    ///
    /// The `String` itself cannot be wiped: prefer ``passphrase(_:)-(UnsafeRawBufferPointer)`` or a ``KeySource``.
    /// - Throws: ``DatabaseError/Reason/malformedKey`` if it is empty, or of the shape `x'…'` that SQLCipher takes
    ///   for a raw key.
    public static func passphrase(_ text: String) throws(DatabaseError) -> Key {
        var text = text
        let secret = try SecretBytes(capacity: text.utf8.count) { target throws(DatabaseError) in
            text.withUTF8 { target.copyMemory(from: UnsafeRawBufferPointer($0)) }
            return target.count
        }
        return try passphrase(secret)
    }

    /// A passphrase as bytes, of any content. Throws as ``passphrase(_:)-(String)``.
    public static func passphrase(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        try passphrase(SecretBytes(copying: bytes))
    }

    static func passphrase(_ secret: SecretBytes) throws(DatabaseError) -> Key {
        guard secret.count > 0 else {
            throw .malformedKey("The passphrase is empty; SQLCipher would go on in plaintext.")
        }
        guard !isRawKeyLiteral(secret.bytes) else {
            throw .malformedKey(
                "The passphrase has the shape x'…' of a raw key, for which SQLCipher would take it. Use Key.raw."
            )
        }
        return Key(form: .passphrase, secret: secret)
    }

    /// A raw key of 32 bytes, used without derivation: a store opens in a fraction of a millisecond.
    /// - Throws: ``DatabaseError/Reason/malformedKey`` for any other length.
    public static func raw(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        guard bytes.count == rawByteCount else {
            throw .malformedKey("A raw key is 32 bytes, and \(bytes.count) were given.")
        }
        return Key(form: .raw, secret: try SecretBytes(copying: bytes))
    }

    /// A raw key of 32 bytes and the store's salt of 16, which is then used instead of the one in the file.
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
    public static func random() throws(DatabaseError) -> Key {
        let secret = try SecretBytes(capacity: rawByteCount) { target throws(DatabaseError) in
            guard sealeddb_random(target.baseAddress, target.count) == 0 else {
                throw .system("No random bytes for a key", reason: .ioError)
            }
            return target.count
        }
        return Key(form: .raw, secret: secret)
    }

    static let rawByteCount = 32
    static let saltByteCount = 16

    /// `x'`, an even number of hex digits that makes a key (with or without salt and HMAC key), one more byte. The
    /// last byte is not looked at, as in SQLCipher.
    static func isRawKeyLiteral(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let digits = bytes.count - 3
        guard [64, 96, 128, 160].contains(digits), bytes[0] | 0x20 == UInt8(ascii: "x"), bytes[1] == UInt8(ascii: "'")
        else { return false }
        return bytes[2..<2 + digits].allSatisfy { Hexadecimal.value(of: $0) != nil }
    }

    /// The key that a text means in FMDB: `x'…'` is a raw key, anything else a passphrase.
    static func interpreting(_ bytes: UnsafeRawBufferPointer) throws(DatabaseError) -> Key {
        guard isRawKeyLiteral(bytes) else { return try passphrase(bytes) }
        let secret = try Hexadecimal.decode(UnsafeRawBufferPointer(rebasing: bytes[2..<bytes.count - 1]))
        switch secret.count {
        case rawByteCount: return Key(form: .raw, secret: secret)
        case rawByteCount + saltByteCount: return Key(form: .rawWithSalt, secret: secret)
        default: throw .malformedKey("A raw key has 64 hex digits, or 96 with the salt.")
        }
    }

    /// Calls `body` with what SQLCipher is keyed with, in a buffer that is wiped afterwards.
    func withKeySpec<T>(_ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        guard form != .passphrase else { return try body(secret.bytes) }
        let spec = try SecretBytes(capacity: secret.count * 2 + 3) { target throws(DatabaseError) in
            target[0] = UInt8(ascii: "x")
            target[1] = UInt8(ascii: "'")
            Hexadecimal.encode(secret.bytes, to: UnsafeMutableRawBufferPointer(rebasing: target[2...]))
            target[target.count - 1] = UInt8(ascii: "'")
            return target.count
        }
        return try body(spec.bytes)
    }

    /// Calls `body` with the key as hex digits and a newline; for raw keys alone.
    func withHexadecimalLine<T>(_ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T) throws(DatabaseError) -> T
    {
        let line = try SecretBytes(capacity: secret.count * 2 + 1) { target throws(DatabaseError) in
            Hexadecimal.encode(secret.bytes, to: target)
            target[target.count - 1] = UInt8(ascii: "\n")
            return target.count
        }
        return try body(line.bytes)
    }
}

extension Key: Equatable {
    public static func == (first: Key, second: Key) -> Bool {
        first.form == second.form && first.secret.isEqual(to: second.secret)
    }
}

extension Key: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Key(redacted)" }
    public var debugDescription: String { description }
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
