import Foundation

/// Several keys, each with an id. One of them is active: new stores get it, and a store under another key should be
/// rotated.
///
/// A store opens with any key of the ring that fits. So the ring can be changed before, during and after the rotation
/// of stores. A ring is made in code, or kept in a file (see ``init(contentsOfFile:)``), which `sealdb keyring` writes
/// too.
public struct KeyRing: Sendable {
    struct Entry: Sendable {
        let id: String
        let key: SourcedKey
    }

    /// The id of the active key.
    public private(set) var activeID: String
    var entries: [Entry]
    var retiredEntries: [RetiredEntry] = []
    /// The file from which the ring was read; `nil` if it was made in code.
    let path: String?

    /// Makes a ring with one key, which is active.
    /// - Parameters:
    ///   - id: 1 to 64 ASCII letters, digits, dots, dashes and underscores.
    ///   - key: the key.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` for another id.
    public init(activeID id: String, key: Key) throws(DatabaseError) {
        try self.init(id: id, key: SourcedKey(key))
    }

    /// Makes a ring with one key, which is active and is read when it is first needed.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` for an id that ``init(activeID:key:)`` would refuse.
    public init(activeID id: String, source: KeySource) throws(DatabaseError) {
        try self.init(id: id, key: SourcedKey(source))
    }

    private init(id: String, key: SourcedKey) throws(DatabaseError) {
        try KeyRing.validate(newID: id)
        activeID = id
        entries = [Entry(id: id, key: key)]
        path = nil
    }

    init(activeID: String, entries: [Entry], retired: [RetiredEntry] = [], path: String?) {
        self.activeID = activeID
        self.entries = entries
        retiredEntries = retired
        self.path = path
    }

    /// The ids of the keys that open stores, sorted. ``retiredKeys`` has the others.
    public var ids: [String] { entries.map(\.id).sorted() }

    /// Adds a key. It does not become active.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` if the id is malformed or already in the ring.
    public mutating func add(_ key: Key, id: String) throws(DatabaseError) {
        try add(SourcedKey(key), id: id)
    }

    /// Adds a key that is read when it is first needed.
    /// - Throws: as ``add(_:id:)-(Key,_)``.
    public mutating func add(_ source: KeySource, id: String) throws(DatabaseError) {
        try add(SourcedKey(source), id: id)
    }

    private mutating func add(_ key: SourcedKey, id: String) throws(DatabaseError) {
        try KeyRing.validate(newID: id)
        guard entry(id) == nil else { throw .malformedKeyRing("\(name) has a key \(id) already.") }
        guard !isRetired(id) else { throw .malformedKeyRing("\(name) has a retired key \(id); reinstate that.") }
        entries.append(Entry(id: id, key: key))
    }

    /// Makes another key of the ring the active one.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` for an unknown id.
    public mutating func activate(_ id: String) throws(DatabaseError) {
        _ = try known(id)
        activeID = id
    }

    /// Removes a key for good, also a retired one. A store or backup that is still under this key is lost, unless there
    /// is another copy of the key. ``retire(_:until:)`` only puts it aside.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` if the id is unknown or that of the active key.
    public mutating func remove(_ id: String) throws(DatabaseError) {
        if isRetired(id) { return retiredEntries.removeAll { $0.entry.id == id } }
        _ = try known(id)
        guard id != activeID else {
            throw .malformedKeyRing("\(name): \(id) is the active key; activate another first.")
        }
        entries.removeAll { $0.id == id }
    }

    /// The key with this id. If it has a source, it is read from there when it is first needed.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` for an unknown id, or as ``KeySource/key()``.
    public func key(_ id: String) throws(DatabaseError) -> Key {
        try ofRing(keyAsGiven(id), id)
    }

    /// The key with its own source as its provenance, instead of the ring.
    func keyAsGiven(_ id: String) throws(DatabaseError) -> Key {
        try known(id).key.key()
    }

    /// The key with the ring's file as its provenance. If the ring has no file, the key keeps its own.
    func ofRing(_ key: Key, _ id: String) -> Key {
        path.map { key.read(from: .ring(path: $0, id: id)) } ?? key
    }

    /// The active key, for ``Database/rotateKey(to:progress:)`` and for new stores.
    /// - Throws: as ``KeySource/key()``.
    public func activeKey() throws(DatabaseError) -> Key {
        try key(activeID)
    }

    private func known(_ id: String) throws(DatabaseError) -> Entry {
        guard let entry = entry(id) else {
            throw .malformedKeyRing("\(name) has no key \(id), but \(ids.joined(separator: ", ")).")
        }
        return entry
    }

    private func entry(_ id: String) -> Entry? { entries.first { $0.id == id } }

    /// The active entry, followed by the others in the order of their ids.
    var entriesToTry: [Entry] {
        entries.sorted { first, second in
            if (first.id == activeID) != (second.id == activeID) { return first.id == activeID }
            return first.id < second.id
        }
    }

    /// The id of an equal key in the ring; `nil` if there is none. Keys that cannot be read are skipped.
    func id(of key: Key) -> String? {
        // A key that cannot be read counts as not equal.
        entriesToTry.first { (try? $0.key.key()) == key }?.id
    }

    var name: String { path.map { "The key ring \($0)" } ?? "The key ring" }

    private static func validate(newID id: String) throws(DatabaseError) {
        try Key.requireName(id, of: "key in a ring")
        try validate(id: id)
    }

    static func validate(id: String) throws(DatabaseError) {
        let isValid =
            (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
        guard isValid else {
            throw .malformedKeyRing("The id of a key has 1 to 64 ASCII letters, digits, dots, dashes and underscores.")
        }
    }
}

extension DatabaseError {
    static func malformedKeyRing(_ message: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .malformedKeyRing,
            message: message + " Nothing was changed."
        )
    }
}

extension KeyRing: CustomStringConvertible, CustomReflectable {
    /// The ids only, without keys.
    public var description: String { "KeyRing(active: \(activeID), ids: \(ids.joined(separator: ", ")))" }
    /// Shows nothing of the keys.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
