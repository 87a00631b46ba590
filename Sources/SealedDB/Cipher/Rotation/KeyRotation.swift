import Foundation

/// Gives a store a new key by copy, verify, swap.
///
/// A copy under the new key is made beside the store, on all processors: each page is authenticated, decrypted, encrypted
/// anew, written, read back, and compared with the page of the store. SQLCipher opens the copy with a new connection, and
/// reads a sample of its pages. Then the copy is synced, and renamed over the store. Until the rename the old file is
/// whole under the old key; after it the new file is whole under the new key. Right before the rename the new key is
/// confirmed (see ``Key/confirm()``). `sqlite3_rekey` is not used: it reports success when it failed, and can lose the
/// database.
///
/// In a store with slots (see ``KeySlots``) the rotation replaces the slot of the old key, in milliseconds, and whoever has
/// the store open goes on. The data key stays, unless a ``Reencryption`` is asked for.
///
/// Nobody else may have another store open, whether they hold locks or not: otherwise the rotation ends with
/// ``DatabaseError/Reason/busy`` and leaves the store as it was. A store in WAL mode is switched to a rollback journal
/// while it is copied; the new file has the journal mode that the old one had.
public struct KeyRotation: Sendable {
    /// Path of the store; a symbolic link is followed and kept.
    public let path: String
    let oldKey: Key
    let newKey: Key
    let settings: CipherSettings
    let busyTimeout: Double
    let oldFileSuffix: String?
    let ignoresUnseenUsers: Bool
    let reencryption: Reencryption?

    /// Asks for a new data key in a store with slots, by copy, verify, swap: whoever knew the old key opens only old copies
    /// then.
    public struct Reencryption: Sendable {
        /// The slots that stay besides that of the new key, as of ``KeySlots/reencrypt(keeping:removing:progress:)``.
        public var keeping: [KeySlots.NewSlot]
        /// The labels of the other slots that may be removed; `nil` means all.
        public var removing: Set<String>?

        /// Describes what becomes of the other slots.
        public init(keeping: [KeySlots.NewSlot] = [], removing: Set<String>? = nil) {
            self.keeping = keeping
            self.removing = removing
        }
    }

    /// Describes a rotation. Nothing is read or written before ``plan()`` or ``run(progress:)`` is called.
    /// - Parameters:
    ///   - path: path of the store.
    ///   - oldKey: the key that the store has.
    ///   - newKey: the key that the store gets.
    ///   - cipherSettings: the settings of the store. The rotation keeps them.
    ///   - busyTimeout: how long to wait for others to release the store.
    ///   - oldFileSuffix: if not `nil`, the old file is kept, under the old key, beside the new one. Its name is the
    ///     store's name followed by this suffix; a file of that name must not exist.
    ///   - ignoresUnseenUsers: whether to go on if it cannot be found out whether programs that do not use this library
    ///     have the store open. Default false: the rotation then ends with ``DatabaseError/Reason/busy``. On most file
    ///     systems the kernel tells this to root and to the owner of the file. On other file systems this user must be
    ///     allowed to look into every process.
    ///   - reencryption: if not `nil`, the data key of a store with slots is replaced too. Both come to pass by the swap:
    ///     before it the old key opens the store, and from then on the new one does. A store without slots is refused: its
    ///     rotation encrypts it anew anyway.
    public init(
        path: String,
        from oldKey: Key,
        to newKey: Key,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Duration = .zero,
        oldFileSuffix: String? = nil,
        ignoresUnseenUsers: Bool = false,
        reencryption: Reencryption? = nil
    ) {
        self.path = path
        self.oldKey = oldKey
        self.newKey = newKey
        self.settings = cipherSettings
        self.busyTimeout = busyTimeout.seconds
        self.oldFileSuffix = oldFileSuffix
        self.ignoresUnseenUsers = ignoresUnseenUsers
        self.reencryption = reencryption
    }

    /// What a rotation would do, and what it needs.
    public struct Plan: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        public let path: String
        /// Bytes of the main file.
        public let fileSize: Int64
        /// The number of pages of the store.
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// SQLite's name of the journal mode, such as `wal`.
        public let journalMode: String
        /// Free bytes on the file system.
        public let freeSpace: Int64
        /// Bytes that the copy takes, plus a tenth as a reserve.
        public let neededSpace: Int64
        /// Estimated duration in seconds, from the speed at which the first pages could be read.
        public internal(set) var estimatedSeconds: Double?
        /// The labels of the key slots that a re-encryption would remove, because nothing is given that could wrap a new data
        /// key for them; `nil` without a re-encryption.
        public internal(set) var removedSlots: [String]?
    }

    /// How far a rotation has come.
    public struct Progress: Sendable, Hashable {
        /// What an operation does at the moment. More cases may be added.
        public enum Phase: String, Sendable, Codable {
            /// Pages or rows are written to a new file.
            case copy
            /// Pages are authenticated, and compared with those of the source.
            case verify
            /// SQLite checks the structure.
            case structure
            /// Rows are compared with those of the source.
            case compare
            /// The new file is synced.
            case sync
            /// The new file takes its place.
            case swap
        }

        /// What is being done.
        public let phase: Phase
        /// Number of pages that are finished in this phase.
        public let completedPages: Int64
        /// Number of pages of the store.
        public let totalPages: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// How much of the whole operation is done, over all of its phases, from 0 to 1. It is an estimate, because it is
        /// not known before how long each phase takes. It does not fall, unless an operation has to begin anew.
        public let fractionCompleted: Double
    }

    /// What a finished rotation did.
    public struct Report: Sendable, Codable, Hashable {
        /// Absolute path of the store, with symbolic links followed.
        public let path: String
        /// The number of pages of the store.
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// Duration in seconds.
        public let seconds: Double
    }

    /// Opens the store with the old key, and checks locks, free space and permissions. Writes nothing.
    /// - Throws: the ``DatabaseError`` that ``run(progress:)`` would throw before it writes.
    public func plan() throws(DatabaseError) -> Plan {
        if let reencryption { return try planOfReencryption(reencryption) }
        if hasSlots { return try planOfSlots() }
        return try replacement().plan()
    }

    /// Rotates the key.
    /// - Parameter progress: called after each step of the copy and at each phase. If it throws, the rotation stops
    ///   with ``DatabaseError/Reason/interrupted`` and leaves the store as it was. It is not called after the swap.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged and opens with the old
    ///   key.
    @discardableResult
    public func run(progress: ((Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        try run(with: nil, progress: progress)
    }

    /// Like ``run(progress:)``, but uses a copy that was made while the store was in use.
    func run(with copy: (any ServiceCopy)?, progress: ((Progress) throws -> Void)?) throws(DatabaseError) -> Report {
        // A copy is made only of a store that has none. Should it get some since, that is found before the swap.
        if let reencryption { return try reencrypt(reencryption, progress: progress) }
        if copy == nil, hasSlots { return try replaceSlot() }
        return try replacement().run(with: copy, progress: progress)
    }

    private func replacement() throws(DatabaseError) -> StoreReplacement {
        guard oldKey != newKey else {
            throw KeyRotation.sameKey
        }
        return StoreReplacement(
            path: path,
            old: Sealing(key: oldKey, settings: settings),
            new: Sealing(key: newKey, settings: settings),
            busyTimeout: busyTimeout,
            oldFileSuffix: oldFileSuffix,
            ignoresUnseenUsers: ignoresUnseenUsers,
            words: .init(name: "The rotation", before: "unchanged under the old key", after: "has the new key")
        )
    }

    /// What an error says of a rotation that stops before the swap.
    static let changedNothing = "The rotation failed, and the store is unchanged under the old key"

    static var sameKey: DatabaseError { .malformedKey("The new key is the old one.") }

    static let replaced = DatabaseError(
        extendedCode: SQLITE_BUSY,
        reason: .busy,
        message: "Somebody else replaced the file meanwhile. Try again."
    )
}
