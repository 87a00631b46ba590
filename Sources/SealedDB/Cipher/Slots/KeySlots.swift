import Foundation

/// The key slots of a store: several keys open it, each by a slot of its own, and changing one takes milliseconds.
///
/// A store with slots is a standard SQLCipher 4 file under a random data key. Two files beside it, `STORE.slots` and
/// `STORE.slots.2`, hold that key once for each slot, wrapped under the key of the slot. The files are readable text; the
/// article <doc:UsingKeySlots> has the format, and a recipe to open such a store without this library.
///
/// Everything that takes a ``Key``, a ``KeySource`` or a ``KeyRing`` opens a store with slots by the key of any slot,
/// and reads the slots again at each opening. A passphrase is derived once for all copies of a ``Key``.
///
/// Each change opens the store, waits for its write lock, writes both files, and has the store remember their generation.
/// Whoever uses the store meanwhile goes on.
public struct KeySlots: Sendable {
    /// Path of the store; a symbolic link is followed.
    public let path: String
    let key: Key
    let settings: CipherSettings
    let busyTimeout: Double
    let acceptsOlder: Bool

    /// Describes the slots of a store. Nothing is read before a method is called.
    /// - Parameters:
    ///   - path: that of the store.
    ///   - key: the key of any slot.
    ///   - cipherSettings: those of the store. Default: those of SQLCipher 4.
    ///   - busyTimeout: how long to wait for others who write to the store.
    ///   - acceptsOlderSlots: whether slots are used that are older than those that the store has seen. The next change
    ///     makes them the newest. Default false: slots may be among them that were removed since.
    public init(
        path: String,
        key: Key,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Duration = .seconds(2),
        acceptsOlderSlots: Bool = false
    ) {
        self.path = path
        self.key = key
        settings = cipherSettings
        self.busyTimeout = busyTimeout.seconds
        acceptsOlder = acceptsOlderSlots
    }

    /// The key with which this was made.
    package var keyOfStore: Key { key }

    /// A slot, without what it wraps.
    public struct Slot: Sendable, Codable, Hashable {
        /// What opens a slot.
        public enum Kind: String, Sendable, Codable {
            /// A raw key of 32 bytes.
            case key
            /// A passphrase, by scrypt.
            case passphrase
            /// A program wraps and unwraps, such as `age` or `gpg`.
            case program
        }

        /// Unique in the store.
        public let number: Int
        /// What people call it: unique among the slots.
        public let label: String
        /// What opens it.
        public let kind: Kind
        /// Whether the slot is for the case that all others are lost.
        public let isRecovery: Bool
        /// The day on which it was made, such as `2026-12-31`, in UTC.
        public let created: String
        /// How the key that wraps is derived: `hkdf-sha256`, or scrypt with its cost, block size and lanes; `nil` for a
        /// program.
        public let derivation: String?
    }

    /// What a new slot opens with.
    public enum Content: Sendable {
        /// A raw key without a salt, or a passphrase.
        case key(Key)
        /// The arguments of a program that wraps, and of one that unwraps, each with the absolute path of the program
        /// first. The wrapping program reads the data key, 64 hex digits and a newline, from its standard input, and what
        /// it prints is kept (at most 4096 bytes). Without an unwrapping program the slot cannot be tried. Both are
        /// run like ``KeySource/keyCommand(_:timeout:)``.
        case program(wrap: [String], unwrap: [String]?, timeout: Duration = .seconds(60))
    }

    /// A slot to be made.
    public struct NewSlot: Sendable {
        /// What it opens with.
        public let content: Content
        /// 1 to 64 ASCII letters, digits, dots, dashes and underscores.
        public let label: String
        /// Whether the slot is for the case that all others are lost.
        public let isRecovery: Bool
        /// What a passphrase is derived with.
        var scrypt = SlotTable.Scrypt.usual

        /// Describes a slot. Nothing is checked before it is made.
        public init(_ content: Content, label: String, isRecovery: Bool = false) {
            self.content = content
            self.label = label
            self.isRecovery = isRecovery
        }
    }

    /// The slots after a change, or as they are.
    public struct Report: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        public let path: String
        /// Higher with each change.
        public let generation: Int64
        /// All slots, in the order of their numbers.
        public let slots: [Slot]
        /// The labels of those new slots that could not be tried, because no program that unwraps was given.
        public internal(set) var untried: [String] = []

        /// Whether a slot is for the case that all others are lost.
        public var hasRecovery: Bool { slots.contains { $0.isRecovery } }
    }

    /// Whether there is a file of slots beside the store. Its contents are not looked at.
    public static func exist(beside path: String) -> Bool { SlotFiles(of: path).mayExist }

    /// What the names of the files of slots end with, after the name of their store.
    public static let fileEndings = [SlotFiles.ending, SlotFiles.secondEnding]

    /// The table in which a store remembers its slots, as its schema has it.
    package static let memorySchema = Connection.schemaOfMemory

    /// Throws where a store without slots cannot be made: where slots lie, or under the name of slots.
    package static func requireNone(beside path: String) throws(DatabaseError) {
        try StoreName.requireNoSlots(path)
        try SlotFiles(of: path).requireNone()
    }

    /// Removes the files of slots of a store that was removed, if they are its own: if they list its data key, and no other
    /// one. What else has their name stays.
    /// - Parameter salt: the first 16 bytes that the store had, in hex digits.
    package static func removeFiles(ofRemoved path: String, salt: String) {
        let files = SlotFiles(store: path)
        guard !FileSystem.mayExist(path) else { return }
        for copy in files.read() where copy.slots?.table.dataKeys.map({ Hexadecimal.string($0.salt) }) == [salt] {
            // A file that stays opens nothing.
            unlink(copy.path)
        }
    }

    // MARK: Reading

    /// Opens the store with the key, and lists the slots. Writes nothing.
    /// - Throws: ``DatabaseError/Reason/malformedSlots``, ``DatabaseError/Reason/olderSlots`` and the errors of opening.
    public func list() throws(DatabaseError) -> Report {
        let opening = try opening()
        return try opening.look { connection throws(DatabaseError) in
            Report(opening.path ?? path, try slots(opening, connection).table)
        }
    }

    /// Lists the slots as the newest file has them, without a key: nothing proves that they are as they were written.
    /// - Throws: ``DatabaseError/Reason/malformedSlots`` if neither file can be read; ``DatabaseError/Reason/noSuchFile``
    ///   if there is none.
    public static func unverifiedList(path: String) throws(DatabaseError) -> Report {
        let files = SlotFiles(of: path)
        let copies = files.read()
        guard let table = copies.compactMap(\.slots?.table).max(by: { $0.generation < $1.generation }) else {
            for copy in copies { if case .unusable(let error) = copy.content { throw error } }
            throw KeySlots.missing(path)
        }
        return Report(files.store, table)
    }

    /// What is wrong with the two files of slots, in sentences: one is missing, damaged, or differs from the other. Empty
    /// if nothing is, or if the store has no slots. Needs no key.
    public static func problems(path: String) -> [String] {
        let files = SlotFiles(of: path)
        guard files.mayExist else { return [] }
        let copies = files.read()
        var problems: [String] = []
        for copy in copies {
            switch copy.content {
            case .missing: problems.append("\(copy.path) is missing; the next opening for writing makes it anew")
            case .unusable(let error): problems.append(error.message)
            case .slots: break
            }
        }
        // A directory that cannot be read tells of none.
        let names = FileSystem.names(in: FileSystem.directory(of: files.store)) ?? []
        let starts = [files.first, files.second].map { FileSystem.name(of: $0) + SlotFiles.markOfKept }
        for name in names.sorted() where starts.contains(where: name.begins) {
            problems.append(
                "\(name) was put aside, because this store had not written it; it may hold slots that were removed since"
            )
        }
        let whole = copies.compactMap(\.slots)
        if whole.count == 2, whole[0].bytes != whole[1].bytes {
            problems.append("\(files.first) and \(files.second) differ; the next opening for writing repairs them")
        }
        return problems
    }

    /// The slots as one text, as the files have it. Whoever has it and the key of a slot can open the store; keep it where
    /// the keys are not.
    /// - Throws: ``DatabaseError/Reason/malformedSlots``, ``DatabaseError/Reason/olderSlots`` and the errors of
    ///   opening.
    public func export() throws(DatabaseError) -> String {
        let opening = try opening()
        return try opening.look { connection throws(DatabaseError) in
            String(decoding: try slots(opening, connection).sealed.bytes, as: UTF8.self)
        }
    }

    func opening() throws(DatabaseError) -> StoreOpening {
        var opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: busyTimeout)
        opening.acceptsOlderSlots = acceptsOlder
        guard SlotFiles(of: path).mayExist else { throw KeySlots.missing(path) }
        return opening
    }

    func slots(_ opening: StoreOpening, _ connection: Connection) throws(DatabaseError) -> OpenedSlots {
        guard let slots = try opening.openedSlots(key, connection) else { throw KeySlots.missing(path) }
        // They may be others than those that the opening has looked at.
        if !acceptsOlder { try connection.requireNotOlder(slots, readingAgainWith: key) }
        return slots
    }

    static func missing(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .noSuchFile,
            message: """
                \(path) has no key slots. `sealdb slots init` gives it some; if they are lost, bring them \
                back from a backup, or by `sealdb slots import`.
                """
        )
    }
}

extension KeySlots.Report {
    init(_ path: String, _ table: SlotTable) {
        self.init(path: path, generation: table.generation, slots: table.slots.map { KeySlots.Slot($0) })
    }
}

extension KeySlots.Slot {
    init(_ slot: SlotTable.Slot) {
        number = slot.number
        label = slot.label
        kind = Kind(rawValue: slot.kind.rawValue)!
        isRecovery = slot.isRecovery
        created = slot.created
        switch slot.wraps.first?.form {
        case .sealed(let derivation, _, _, _): self.derivation = derivation.text
        default: derivation = nil
        }
    }
}
