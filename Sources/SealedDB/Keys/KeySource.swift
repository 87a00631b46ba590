import Foundation

/// Where a key comes from, and whether a raw key or a passphrase comes from there. Secrets are never taken from the
/// command line or an environment variable.
///
/// A raw key is 64 hex digits with an optional newline, or exactly 32 bytes. A passphrase is all that is there, without
/// one newline at the end; a NUL byte in it is refused. Either has at most 4096 bytes.
public enum KeySource: Sendable, CustomStringConvertible, CustomReflectable {
    /// A file with a raw key: a regular file of this user or root, closed to group and others, no symbolic link.
    case keyFile(String)
    /// A file with a passphrase; checked as ``keyFile(_:)``.
    case passphraseFile(String)
    /// A raw key that systemd hands to the service under this name: `LoadCredential=` or `LoadCredentialEncrypted=` in
    /// its unit. <https://systemd.io/CREDENTIALS/>
    case keyCredential(String)
    /// A passphrase that systemd hands to the service.
    case passphraseCredential(String)
    /// An open descriptor with a raw key, read to its end and closed.
    case keyDescriptor(Int32)
    /// An open descriptor with a passphrase, read to its end and closed.
    case passphraseDescriptor(Int32)
    /// A program that prints a raw key: its absolute path, and its arguments. No shell is involved.
    ///
    /// It reads nothing, inherits standard error and no other descriptor, and of the environment only `HOME`, `USER`,
    /// `LOGNAME` and `LANG`; `PATH` is the system's. If it exits with another status than 0, prints too much, or takes
    /// more seconds than the timeout, it and its children are killed, and what it printed is not used. It cannot ask
    /// for anything on the terminal.
    case keyCommand([String], timeout: Double = 60)
    /// A program that prints a passphrase; run as ``keyCommand(_:timeout:)``.
    case passphraseCommand([String], timeout: Double = 60)
    /// A passphrase from the terminal, without echo; asked twice and compared if `confirm`.
    case prompt(String, confirm: Bool)
    /// The caller's own, such as a client of a key management service. It may be called again, from any thread.
    case closure(@Sendable () throws -> Key)

    /// Reads the key, which remembers where it was read (see ``Key/confirm()``).
    /// - Throws: ``DatabaseError`` with the reasons ``DatabaseError/Reason/noSuchFile``,
    ///   ``DatabaseError/Reason/unsafeKeyFile``, ``DatabaseError/Reason/malformedKey`` or
    ///   ``DatabaseError/Reason/keySourceFailed``.
    public func key() throws(DatabaseError) -> Key {
        try keyAsGiven().read(from: KeyProvenance(self))
    }

    /// The key, which remembers no more than that of a closure does.
    func keyAsGiven() throws(DatabaseError) -> Key {
        switch self {
        case .keyFile(let path):
            try KeyFile.rawKey(in: SecretFile.contents(atPath: path), name: "The \(self)")
        case .passphraseFile(let path):
            try KeyFile.passphrase(
                in: SecretFile.contents(atPath: path, what: "passphrase file"),
                name: "The \(self)"
            )
        case .keyCredential(let name):
            try KeyFile.rawKey(in: Credential.contents(name), name: "The \(self)")
        case .passphraseCredential(let name):
            try KeyFile.passphrase(in: Credential.contents(name), name: "The \(self)")
        case .keyDescriptor(let descriptor):
            try KeyFile.rawKey(in: KeySource.contents(ofDescriptor: descriptor), name: "The \(self)")
        case .passphraseDescriptor(let descriptor):
            try KeyFile.passphrase(in: KeySource.contents(ofDescriptor: descriptor), name: "The \(self)")
        case .keyCommand(let arguments, let timeout):
            try KeyFile.rawKey(in: KeyCommand(arguments, timeout: timeout).output(), name: "The \(self)")
        case .passphraseCommand(let arguments, let timeout):
            try KeyFile.passphrase(in: KeyCommand(arguments, timeout: timeout).output(), name: "The \(self)")
        case .prompt(let text, let confirm):
            try Terminal.passphrase(prompt: text, confirm: confirm)
        case .closure(let closure):
            try KeySource.key(from: closure)
        }
    }

    private static func contents(ofDescriptor descriptor: Int32) throws(DatabaseError) -> SecretBytes {
        // If there is no such descriptor, the reading says so.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // It is only read from.
        defer { close(descriptor) }
        return try SecretFile.contents(of: descriptor, name: "Descriptor \(descriptor)")
    }

    private static func key(from closure: () throws -> Key) throws(DatabaseError) -> Key {
        do {
            return try closure()
        } catch {
            if let error = error as? DatabaseError { throw error }
            // Its text is not ours to show: it might hold what the closure got.
            throw .keySourceFailed("The closure that gives the key threw an error of type \(type(of: error)).")
        }
    }

    /// Whether the key can be read again without anybody being asked.
    var isRepeatable: Bool {
        switch self {
        case .keyDescriptor, .passphraseDescriptor, .prompt: false
        default: true
        }
    }

    /// What kind of source it is, and which; of a command, no arguments.
    public var description: String {
        switch self {
        case .keyFile(let path): "key file \(path)"
        case .passphraseFile(let path): "passphrase file \(path)"
        case .keyCredential(let name): "key credential \(name)"
        case .passphraseCredential(let name): "passphrase credential \(name)"
        case .keyDescriptor(let descriptor): "key from descriptor \(descriptor)"
        case .passphraseDescriptor(let descriptor): "passphrase from descriptor \(descriptor)"
        case .keyCommand(let arguments, _): "key from command \(arguments.first ?? "")"
        case .passphraseCommand(let arguments, _): "passphrase from command \(arguments.first ?? "")"
        case .prompt: "passphrase from the terminal"
        case .closure: "key from a closure"
        }
    }

    /// Empty, so that `dump` shows no arguments of a command.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension DatabaseError {
    static func keySourceFailed(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_ERROR,
            reason: .keySourceFailed,
            message: message + " No key was used, and nothing was changed."
        )
    }
}
