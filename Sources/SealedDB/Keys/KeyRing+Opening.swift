import Foundation

extension KeyRing {
    /// Calls `body` with the active key and its id, and then with the other keys, until a call does not throw
    /// ``DatabaseError/Reason/wrongKey``.
    ///
    /// Meanwhile a rotation may put the store under a key that was already tried. So if no key fits, and the file of
    /// the store or of the ring has changed by then, the ring is read again and all keys are tried again, up to five
    /// times in all.
    /// - Parameters:
    ///   - name: path of the store to be opened.
    ///   - body: opens the store with a key, whose id it gets too.
    /// - Returns: what `body` returned.
    /// - Throws: any other error that `body` throws. If no key fits, ``DatabaseError/Reason/wrongKey`` with all ids; if
    ///   no key could be read, the error of reading the active one.
    public func withKey<T>(toOpen name: String, _ body: (Key, String) throws -> T) throws -> T {
        try open(name, wrap: { $0 }, body).result
    }

    /// The result of opening a store with a key of the ring.
    struct Opened<T> {
        let result: T
        let id: String
        let key: Key
        let isActive: Bool
    }

    /// How many times all keys are tried at most. They are tried again only if one of the files has changed meanwhile.
    static let maximumRounds = 5

    func open<T, E: Error>(
        _ name: String,
        wrap: (DatabaseError) -> E,
        _ body: (Key, String) throws(E) -> T
    ) throws(E) -> Opened<T> {
        var ring = self
        for round in 1... {
            let before = [FileVersion(name), path.flatMap { FileVersion($0) }]
            switch try ring.tryAll(body) {
            case .opened(let opened): return opened
            case .none(let tried, let unreadable):
                let after = [FileVersion(name), path.flatMap { FileVersion($0) }]
                guard before != after, round < KeyRing.maximumRounds else {
                    throw wrap(ring.error(name, tried, unreadable))
                }
                // If the ring cannot be read again, its keys as last read may still fit.
                ring = (try? ring.readAgain()) ?? ring
            }
        }
        preconditionFailure("The rounds have an end.")
    }

    private enum Outcome<T> {
        case opened(Opened<T>)
        case none(tried: [String], unreadable: [(id: String, error: DatabaseError)])
    }

    private func tryAll<T, E: Error>(_ body: (Key, String) throws(E) -> T) throws(E) -> Outcome<T> {
        var tried: [String] = []
        var unreadable: [(id: String, error: DatabaseError)] = []
        for entry in entriesToTry {
            switch try entry.key.attempt({ key throws(E) in try body(ofRing(key, entry.id), entry.id) }) {
            case .opened(let result, let key):
                let opened = Opened(
                    result: result,
                    id: entry.id,
                    key: ofRing(key, entry.id),
                    isActive: entry.id == activeID
                )
                return .opened(opened)
            case .wrongKey: tried.append(entry.id)
            case .unreadable(let error): unreadable.append((entry.id, error))
            }
        }
        return .none(tried: tried, unreadable: unreadable)
    }

    private func error(
        _ name: String,
        _ tried: [String],
        _ unreadable: [(id: String, error: DatabaseError)]
    ) -> DatabaseError {
        let complaints = unreadable.map { "\($0.id): \($0.error.message)" }
        guard !tried.isEmpty else {
            let first = unreadable[0].error
            return DatabaseError(
                extendedCode: first.extendedCode,
                reason: first.reason,
                message: "No key of the ring could be read. \(complaints.joined(separator: " "))"
            )
        }
        let others = complaints.isEmpty ? "" : " Not tried, because they could not be read: "
        return DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: """
                No key of the ring opens \(name); tried were \(tried.joined(separator: ", ")) (the active key is \
                \(activeID)). The file was not changed. Add the right key to the ring.\(retiredHint)\
                \(others)\(complaints.joined(separator: " "))
                """
        )
    }

    private var retiredHint: String {
        retiredKeys.isEmpty ? "" : " Not tried were its retired keys: \(retiredKeys.map(\.id).joined(separator: ", "))."
    }

    // MARK: Reading again

    /// The ring as its file holds it now. Keys that this ring has already read from the same sources are taken over.
    func readAgain() throws(DatabaseError) -> KeyRing {
        guard let path else { return self }
        return try KeyRing(contentsOfFile: path).keeping(self)
    }

    /// The same ring, with the keys that `old` has already read from the same sources.
    private func keeping(_ old: KeyRing) -> KeyRing {
        let kept = entries.map { entry in
            guard let source = entry.key.source,
                let known = old.entries.first(where: { $0.key.source.map { $0.isSameFile(as: source) } ?? false })
            else { return entry }
            return Entry(id: entry.id, key: known.key)
        }
        return KeyRing(activeID: activeID, entries: kept, retired: retiredEntries, path: path)
    }
}

/// Identifies a version of a file: it differs if another file has taken the name, or if the file was written to. The
/// file is not opened, because closing it would drop this process's locks on it.
private struct FileVersion: Equatable {
    private let numbers: [Int64]

    init?(_ path: String) {
        // A file that does not exist has no version, before and after.
        guard let status = try? FileSystem.status(path) else { return nil }
        numbers = [
            Int64(bitPattern: UInt64(status.st_dev)), Int64(bitPattern: UInt64(status.st_ino)), Int64(status.st_size),
            Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec),
        ]
    }
}

extension KeySource {
    fileprivate func isSameFile(as other: KeySource) -> Bool {
        switch (self, other) {
        case (.keyFile(let first), .keyFile(let second)), (.passphraseFile(let first), .passphraseFile(let second)),
            (.keyCredential(let first), .keyCredential(let second)),
            (.passphraseCredential(let first), .passphraseCredential(let second)):
            // Names that are equal to Swift may be those of two files.
            first.isSame(as: second)
        default: false
        }
    }
}
