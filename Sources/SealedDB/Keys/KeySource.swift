import Foundation

/// Where a key is read, and whether it is a raw key or a passphrase. Secrets are never taken from the command line or
/// from an environment variable.
///
/// A raw key is 64 hex digits with an optional newline, or exactly 32 bytes. A passphrase is all bytes that are read,
/// without one newline at the end; it may not hold a NUL byte. Both have at most 4096 bytes.
public enum KeySource: Sendable, CustomStringConvertible, CustomReflectable {
    /// A file with a raw key. It must be a regular file that belongs to this user or to root, with no permissions for
    /// group and others. Symbolic links are not followed.
    case keyFile(String)
    /// A file with a passphrase. It is checked like ``keyFile(_:)``.
    case passphraseFile(String)
    /// A raw key that systemd passes to the service under this name, from `LoadCredential=` or
    /// `LoadCredentialEncrypted=` in its unit. <https://systemd.io/CREDENTIALS/>
    case keyCredential(String)
    /// A passphrase that systemd passes to the service under this name.
    case passphraseCredential(String)
    /// An open descriptor from which a raw key is read. It is read to its end and closed.
    case keyDescriptor(Int32)
    /// An open descriptor from which a passphrase is read. It is read to its end and closed.
    case passphraseDescriptor(Int32)
    /// A program that prints a raw key, given by its absolute path and its arguments. No shell is involved.
    ///
    /// The program gets no input. It inherits standard error and no other descriptor, and of the environment only
    /// `HOME`, `USER`, `LOGNAME` and `LANG`; `PATH` is the system's. If it exits with a status other than 0, prints too
    /// much, or takes longer than the timeout (60 s by default), its output is not used. If it prints too
    /// much or takes too long, it is killed with its children. It cannot ask for anything on the terminal.
    case keyCommand([String], timeout: Duration = .seconds(60))
    /// A program that prints a passphrase. It is run like ``keyCommand(_:timeout:)``.
    case passphraseCommand([String], timeout: Duration = .seconds(60))
    /// A program that unwraps the data key of a store with slots (see ``KeySlots``), given by its absolute path and its
    /// arguments. It reads from its standard input what another program has made of the key, and prints the key as 64 hex
    /// digits. Otherwise it is run like ``keyCommand(_:timeout:)``, once for each slot of a program that is tried.
    case unwrapCommand([String], timeout: Duration = .seconds(60))
    /// A passphrase that is typed on the terminal, without echo. With `confirm` it is asked for twice and compared.
    case prompt(String, confirm: Bool)
    /// A closure of the caller, such as a client of a key management service. It may be called more than once, and on
    /// any thread.
    case closure(@Sendable () throws -> Key)
    /// An asynchronous closure of the caller. It may be called more than once.
    ///
    /// ```swift
    /// let source = KeySource.asyncClosure { try await client.key(for: "notes") }
    /// ```
    /// The thread that opens the store waits for it. Meanwhile the closure runs in a task that has a thread of its own,
    /// with the caller's task-local values. If it takes longer than the timeout (60 s by default), it is cancelled and
    /// its key is not used. It must not wait for an actor on which the store is being opened.
    case asyncClosure(timeout: Duration = .seconds(60), @Sendable () async throws -> Key)

    /// Reads the key. The key remembers where it was read (see ``Key/confirm()``).
    /// - Throws: ``DatabaseError`` with the reasons ``DatabaseError/Reason/noSuchFile``,
    ///   ``DatabaseError/Reason/notPermitted``, ``DatabaseError/Reason/ioError``,
    ///   ``DatabaseError/Reason/unsafeKeyFile``, ``DatabaseError/Reason/malformedKey`` or
    ///   ``DatabaseError/Reason/keySourceFailed``.
    public func key() throws(DatabaseError) -> Key {
        try keyAsGiven().read(from: KeyProvenance(self))
    }

    /// Reads the key without recording this source in it. A key from a closure keeps the provenance that it has.
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
            try KeyFile.rawKey(in: KeyCommand(arguments, timeout: timeout.seconds).output(), name: "The \(self)")
        case .passphraseCommand(let arguments, let timeout):
            try KeyFile.passphrase(in: KeyCommand(arguments, timeout: timeout.seconds).output(), name: "The \(self)")
        case .unwrapCommand(let arguments, let timeout):
            try Key.program(KeyCommand(arguments, timeout: timeout.seconds, kind: "unwrap command"))
        case .prompt(let text, let confirm):
            try Terminal.passphrase(prompt: text, confirm: confirm)
        case .closure(let closure):
            try KeySource.key(from: closure)
        case .asyncClosure(let timeout, let closure):
            try KeySource.key(from: AsyncKeyClosure(timeout: timeout.seconds, closure).key)
        }
    }

    private static func contents(ofDescriptor descriptor: Int32) throws(DatabaseError) -> SecretBytes {
        // If there is no such descriptor, the read below fails and reports that.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        return try SecretFile.contents(of: descriptor, name: "Descriptor \(descriptor)")
    }

    private static func key(from closure: () throws -> Key) throws(DatabaseError) -> Key {
        do {
            return try closure()
        } catch {
            if let error = error as? DatabaseError { throw error }
            // The text of the error is not shown: it might hold a secret that the closure has read.
            throw .keySourceFailed("The closure that gives the key threw an error of type \(type(of: error)).")
        }
    }

    /// Whether the key can be read again without asking anybody.
    var isRepeatable: Bool {
        switch self {
        case .keyDescriptor, .passphraseDescriptor, .prompt: false
        default: true
        }
    }

    /// The kind of the source, and which it is. For a command, its arguments are left out.
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
        case .unwrapCommand(let arguments, _): "unwrap command \(arguments.first ?? "")"
        case .prompt: "passphrase from the terminal"
        case .closure, .asyncClosure: "key from a closure"
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
