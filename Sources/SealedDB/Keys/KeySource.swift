/// Where a key comes from. Secrets are never taken from the command line or an environment variable.
public enum KeySource: Sendable, Hashable, CustomStringConvertible {
    /// A file of 64 hex digits with an optional newline, or of exactly 32 bytes; a regular file of this user or
    /// root, closed to group and others.
    case keyFile(String)
    /// A file whose contents, without one newline at the end, are a passphrase; checked as ``keyFile(_:)``.
    case passphraseFile(String)
    /// An open descriptor, read to its end and closed; one newline at the end is dropped.
    case passphraseDescriptor(Int32)
    /// The terminal, without echo; asked twice and compared if `confirm`.
    case prompt(String, confirm: Bool)

    /// Reads the key.
    /// - Throws: ``DatabaseError`` with the reasons ``DatabaseError/Reason/noSuchFile``,
    ///   ``DatabaseError/Reason/unsafeKeyFile`` or ``DatabaseError/Reason/malformedKey``.
    public func key() throws(DatabaseError) -> Key {
        switch self {
        case .keyFile(let path): try KeyFile.rawKey(atPath: path)
        case .passphraseFile(let path): try KeyFile.passphrase(atPath: path)
        case .passphraseDescriptor(let descriptor): try Terminal.passphrase(fromDescriptor: descriptor)
        case .prompt(let text, let confirm): try Terminal.passphrase(prompt: text, confirm: confirm)
        }
    }

    public var description: String {
        switch self {
        case .keyFile(let path): "key file \(path)"
        case .passphraseFile(let path): "passphrase file \(path)"
        case .passphraseDescriptor(let descriptor): "passphrase from descriptor \(descriptor)"
        case .prompt: "passphrase from the terminal"
        }
    }
}
