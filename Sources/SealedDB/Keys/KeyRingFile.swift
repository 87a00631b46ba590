import Foundation

/// Key rings in files.
///
/// A ring file is a text file. Its lines are `sealdb-keyring 1`, `active ID`, and `ID KIND VALUE` for each key. KIND is
/// `key` (VALUE is a raw key in 64 hex digits, or 96 with the store's salt), `key-file` or `passphrase-file` (VALUE is
/// an absolute path), or `key-credential` or `passphrase-credential` (VALUE is a name). Keys in files and credentials
/// are read when they are first needed. Words are separated by one space, and every line ends with a newline. A ring with
/// retired keys begins with `sealdb-keyring 2`, and has a line `retired: ID DAY KIND VALUE` for each of them.
extension KeyRing {
    /// The most bytes that a ring file may have.
    static let sizeLimit = 1 << 16

    private static let header = "sealdb-keyring 1"
    private static let headerWithRetired = "sealdb-keyring 2"
    private static let retiredMark = "retired: "

    /// Reads a ring file. It has to be closed to group and others, like a key file.
    ///
    /// A ``Configuration`` with this ring reads the file again at each opening.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` with the number of the line, or as ``KeySource/key()``.
    public init(contentsOfFile path: String) throws(DatabaseError) {
        let contents = try SecretFile.contents(atPath: path, what: "key ring", limit: KeyRing.sizeLimit)
        self = try contents.withBytes { bytes throws(DatabaseError) in try KeyRing(parsing: bytes, path: path) }
    }

    /// Writes the ring to a new file with mode 0600, and syncs it to disk. An existing file is never overwritten.
    /// - Throws: ``DatabaseError/Reason/alreadyExists`` and others. ``DatabaseError/Reason/malformedKeyRing`` if the
    ///   ring has a key that a file cannot hold: a passphrase, or a source that is neither a file nor a credential.
    public func write(toNewFile path: String) throws(DatabaseError) {
        try withText { text throws(DatabaseError) in
            try SecretFile.create(atPath: path, what: "key ring", text)
        }
    }

    /// Changes a ring file in one step: whoever reads it meanwhile gets either the old ring or the new one. Others that
    /// change it at the same time wait. Owner and mode are kept.
    /// - Returns: the new ring.
    /// - Throws: what `change` throws, or as ``init(contentsOfFile:)`` and ``write(toNewFile:)``. The file is unchanged
    ///   unless the message says otherwise.
    @discardableResult
    public static func update(
        file path: String,
        _ change: (inout KeyRing) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> KeyRing {
        while true {
            let updated = try SecretFile.reading(path, what: "key ring") { descriptor throws(DatabaseError) in
                while flock(descriptor, LOCK_EX) != 0 {
                    guard errno == EINTR else { throw .system("Cannot lock the key ring \(path)", reason: .ioError) }
                }
                // If another process had the lock before, it may have replaced the file that is locked now. Then begin
                // again.
                guard try SecretFile.isCurrent(descriptor, path: path) else { return nil as KeyRing? }
                var ring = try KeyRing(contentsOfFile: path)
                try change(&ring)
                try ring.withText { text throws(DatabaseError) in
                    try SecretFile.replace(path, what: "key ring", requiresOneName: true, text)
                }
                return ring
            }
            if let updated { return updated }
        }
    }

    // MARK: Parsing

    init(parsing text: UnsafeRawBufferPointer, path: String?) throws(DatabaseError) {
        let name = path.map { "The key ring \($0)" } ?? "The key ring"
        guard text.last == UInt8(ascii: "\n") else {
            throw .malformedKeyRing("\(name) does not end with a newline: it is empty, cut off, or something else.")
        }
        var activeID: String?
        var entries: [Entry] = []
        var retired: [RetiredEntry] = []
        var mayHaveRetired = false
        for (index, line) in text.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .enumerated()
        {
            do throws(DatabaseError) {
                let bytes = UnsafeRawBufferPointer(rebasing: line)
                switch index {
                case 0: mayHaveRetired = try KeyRing.checkHeader(bytes)
                case 1: activeID = try KeyRing.activeID(bytes)
                default:
                    let isRetired = mayHaveRetired && bytes.starts(with: KeyRing.retiredMark.utf8)
                    let parsed = isRetired ? try RetiredEntry(parsing: bytes) : nil
                    let entry = if let parsed { parsed.entry } else { try Entry(parsing: bytes) }
                    guard !(entries + retired.map(\.entry)).contains(where: { $0.id == entry.id }) else {
                        throw .malformedKeyRing("the id \(entry.id) occurs again.")
                    }
                    if let parsed { retired.append(parsed) } else { entries.append(entry) }
                }
            } catch {
                throw error.adding(context: "\(name), line \(index + 1)")
            }
        }
        guard let activeID else { throw .malformedKeyRing("\(name), line 2: there is no line \"active ID\".") }
        guard entries.contains(where: { $0.id == activeID }) else {
            throw .malformedKeyRing("\(name), line 2: the active key \(activeID) has no line of its own.")
        }
        self.init(activeID: activeID, entries: entries, retired: retired, path: path)
    }

    /// - Returns: whether the ring may have retired keys.
    private static func checkHeader(_ line: UnsafeRawBufferPointer) throws(DatabaseError) -> Bool {
        if line.elementsEqual(header.utf8) { return false }
        if line.elementsEqual(headerWithRetired.utf8) { return true }
        let isLater = line.starts(with: "sealdb-keyring ".utf8)
        throw .malformedKeyRing(
            isLater
                ? "the ring has another version than 1 and 2, which are all that this release of SealedDB reads."
                : "this is not a key ring, which begins with \"\(header)\"."
        )
    }

    private static func activeID(_ line: UnsafeRawBufferPointer) throws(DatabaseError) -> String {
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 2, words[0].elementsEqual("active".utf8) else {
            throw .malformedKeyRing("\"active\", one blank and the id of a key are expected.")
        }
        return try id(words[1])
    }

    fileprivate static func id(_ word: Slice<UnsafeRawBufferPointer>) throws(DatabaseError) -> String {
        let id = String(decoding: word.prefix(65), as: UTF8.self)
        try validate(id: id)
        return id
    }

    // MARK: Writing

    private func withText(_ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> Void) throws(DatabaseError) {
        let header = retiredEntries.isEmpty ? KeyRing.header : KeyRing.headerWithRetired
        let start = "\(header)\nactive \(activeID)\n"
        try SecretBytes.withScratch(count: KeyRing.sizeLimit) { target throws(DatabaseError) in
            var count = 0
            func append(_ text: String) throws(DatabaseError) {
                guard count + text.utf8.count <= target.count else { throw tooLarge }
                for byte in text.utf8 {
                    target[count] = byte
                    count += 1
                }
            }
            func append(_ entry: Entry, mark: String, day: String) throws(DatabaseError) {
                try append("\(mark)\(entry.id) \(day)")
                if let source = entry.key.source {
                    let (kind, value) = try KeyRing.storable(source, id: entry.id)
                    try append("\(kind) \(value)\n")
                } else {
                    let key = try entry.key.key()
                    guard key.form != .passphrase, key.form != .program else {
                        throw .malformedKeyRing(
                            "The key \(entry.id) is a passphrase or a program, which a ring file does not hold."
                        )
                    }
                    try append("key ")
                    guard count + key.byteCount * 2 < target.count else { throw tooLarge }
                    count += try key.encode(to: UnsafeMutableRawBufferPointer(rebasing: target[count...]))
                    try append("\n")
                }
            }
            try append(start)
            for entry in entries { try append(entry, mark: "", day: "") }
            for retired in retiredEntries {
                try append(retired.entry, mark: KeyRing.retiredMark, day: retired.day + " ")
            }
            try body(UnsafeRawBufferPointer(rebasing: target[..<count]))
        }
    }

    private var tooLarge: DatabaseError {
        .malformedKeyRing("\(name) would have more than \(KeyRing.sizeLimit) bytes. Remove keys that are not in use.")
    }

    private static func storable(
        _ source: KeySource,
        id: String
    ) throws(DatabaseError) -> (kind: String, value: String) {
        let (kind, value) = try Kind.of(source, id: id)
        guard Kind.isUsable(value, for: kind) else {
            throw .malformedKeyRing(
                "The key \(id) cannot be kept in a ring file: paths are absolute, and no value has control characters."
            )
        }
        return (kind.rawValue, value)
    }

    fileprivate enum Kind: String, CaseIterable {
        case key
        case keyFile = "key-file"
        case passphraseFile = "passphrase-file"
        case keyCredential = "key-credential"
        case passphraseCredential = "passphrase-credential"

        static func of(_ source: KeySource, id: String) throws(DatabaseError) -> (Kind, String) {
            switch source {
            case .keyFile(let path): (.keyFile, path)
            case .passphraseFile(let path): (.passphraseFile, path)
            case .keyCredential(let name): (.keyCredential, name)
            case .passphraseCredential(let name): (.passphraseCredential, name)
            default:
                throw .malformedKeyRing("The key \(id) comes from neither a file nor a credential (\(source)).")
            }
        }

        static func isUsable(_ value: String, for kind: Kind) -> Bool {
            let isPath = kind == .keyFile || kind == .passphraseFile
            let isText = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
            return !value.isEmpty && isText && (isPath ? value.begins(with: "/") : !value.has("/"))
        }
    }
}

extension KeyRing.RetiredEntry {
    /// Parses a line that begins as one of a retired key.
    fileprivate init(parsing line: UnsafeRawBufferPointer) throws(DatabaseError) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4 else { throw .malformedKeyRing("an id, a day, a kind and a value are expected.") }
        let day = String(decoding: words[2].prefix(11), as: UTF8.self)
        guard KeyRing.isDay(day) else {
            throw .malformedKeyRing("the day of a retired key is none, such as 2026-12-31.")
        }
        self.init(entry: try KeyRing.Entry(id: words[1], rest: UnsafeRawBufferPointer(rebasing: words[3])), day: day)
    }
}

extension KeyRing.Entry {
    /// Parses a line. The error messages must not show any part of an inline key.
    fileprivate init(parsing line: UnsafeRawBufferPointer) throws(DatabaseError) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2 else { throw .malformedKeyRing("an id, a kind and a value are expected.") }
        try self.init(id: words[0], rest: UnsafeRawBufferPointer(rebasing: words[1]))
    }

    /// - Parameter rest: the kind and the value.
    fileprivate init(id word: Slice<UnsafeRawBufferPointer>, rest: UnsafeRawBufferPointer) throws(DatabaseError) {
        let words = rest.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2 else { throw .malformedKeyRing("an id, a kind and a value are expected.") }
        id = try KeyRing.id(word)
        guard let kind = KeyRing.Kind.allCases.first(where: { words[0].elementsEqual($0.rawValue.utf8) }) else {
            let kinds = KeyRing.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw .malformedKeyRing("the kind of the key is none of \(kinds).")
        }
        if kind == .key {
            // Its error is replaced by one that is about the key ring.
            guard let raw = try? Key.raw(hexadecimal: UnsafeRawBufferPointer(rebasing: words[1])) else {
                throw .malformedKeyRing("the key is not 64 hex digits, or 96 with the store's salt.")
            }
            key = SourcedKey(raw)
            return
        }
        guard let value = String(validating: words[1], as: UTF8.self), KeyRing.Kind.isUsable(value, for: kind) else {
            throw .malformedKeyRing(
                "the value is not \(kind.rawValue.hasSuffix("file") ? "an absolute path" : "a name")."
            )
        }
        key =
            switch kind {
            case .keyFile: SourcedKey(.keyFile(value))
            case .passphraseFile: SourcedKey(.passphraseFile(value))
            case .keyCredential: SourcedKey(.keyCredential(value))
            default: SourcedKey(.passphraseCredential(value))
            }
    }
}
