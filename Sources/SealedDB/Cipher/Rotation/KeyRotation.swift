import Foundation

/// Gives a store a new key by copy, verify, swap.
///
/// A copy under the new key is made beside the store with SQLite's backup API, opened afresh and checked page by
/// page, synced, and renamed over the store. Until the rename the old file is whole under the old key; from then on
/// the new one is. Right before it the new key is confirmed (see ``Key/confirm()``). `sqlite3_rekey` is not used: it
/// reports success when it failed, and can lose the database.
///
/// Nobody else may have the store open, with locks or without: the rotation ends with ``DatabaseError/Reason/busy``, and
/// the store is as it was. A store in WAL mode is put into rollback-journal mode
/// while it is copied; the new file has the mode that the old one had.
/// Backups: <https://www.sqlite.org/backup.html>.
public struct KeyRotation: Sendable {
    /// Path of the store; a symbolic link is followed and kept.
    public let path: String
    private let oldKey: Key
    let newKey: Key
    let settings: CipherSettings
    let busyTimeout: Double
    private let oldFileSuffix: String?
    private let ignoresUnseenUsers: Bool

    /// Describes a rotation; nothing is touched before ``plan()`` or ``run(progress:)``.
    /// - Parameters:
    ///   - cipherSettings: those that the store has, and keeps.
    ///   - busyTimeout: seconds to wait for others to release the store.
    ///   - oldFileSuffix: keeps the old file, under the old key, beside the new one; its name is that of the store with
    ///     this at its end, and must not exist.
    ///   - ignoresUnseenUsers: goes on although it cannot be told whether somebody else has the store open, by programs
    ///     that do not know of this library. Default: ends with ``DatabaseError/Reason/busy``. The kernel tells the owner
    ///     of the file, and root, on most file systems; elsewhere all processes must be such as this user may look into.
    public init(
        path: String,
        from oldKey: Key,
        to newKey: Key,
        cipherSettings: CipherSettings = .init(),
        busyTimeout: Double = 0,
        oldFileSuffix: String? = nil,
        ignoresUnseenUsers: Bool = false
    ) {
        self.path = path
        self.oldKey = oldKey
        self.newKey = newKey
        self.settings = cipherSettings
        self.busyTimeout = busyTimeout
        self.oldFileSuffix = oldFileSuffix
        self.ignoresUnseenUsers = ignoresUnseenUsers
    }

    /// What a rotation would do, and what it needs.
    public struct Plan: Sendable, Codable, Hashable {
        /// Symbolic links followed.
        public let path: String
        /// Bytes of the main file.
        public let fileSize: Int64
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// SQLite's name of the journal mode, such as `wal`.
        public let journalMode: String
        /// Bytes free on the file system.
        public let freeSpace: Int64
        /// Bytes that the copy takes, with a tenth to spare.
        public let neededSpace: Int64
        /// How long it takes, by the speed at which the first pages can be read.
        public internal(set) var estimatedSeconds: Double?
    }

    /// How far a rotation has come.
    public struct Progress: Sendable, Hashable {
        public enum Phase: String, Sendable, Codable {
            case copy, verify, sync, swap
        }

        public let phase: Phase
        /// Pages copied.
        public let completedPages: Int64
        /// Pages in all.
        public let totalPages: Int64
        /// Bytes per page.
        public let pageSize: Int
    }

    /// What a finished rotation did.
    public struct Report: Sendable, Codable, Hashable {
        /// Symbolic links followed.
        public let path: String
        public let pageCount: Int64
        /// Bytes per page.
        public let pageSize: Int
        /// Duration in seconds.
        public let seconds: Double
    }

    /// Opens the store with the old key, and checks lock, space and permissions. Writes nothing.
    /// - Throws: the ``DatabaseError`` that ``run(progress:)`` would throw before it writes.
    public func plan() throws(DatabaseError) -> Plan {
        try replacement().plan()
    }

    /// Rotates.
    /// - Parameter progress: called after each step of the copy and at each phase; throwing stops the rotation, with
    ///   ``DatabaseError/Reason/interrupted``, and leaves the store as it was. Not called after the swap.
    /// - Throws: ``DatabaseError``. Unless its message says otherwise, the store is unchanged and opens with the old key.
    @discardableResult
    public func run(progress: ((Progress) throws -> Void)? = nil) throws(DatabaseError) -> Report {
        try replacement().run(progress: progress)
    }

    /// As ``run(progress:)``, with a copy that was made while the store was in use.
    func run(with copy: LiveCopy?, progress: ((Progress) throws -> Void)?) throws(DatabaseError) -> Report {
        try replacement().run(with: copy, progress: progress)
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

    static var sameKey: DatabaseError { .malformedKey("The new key is the old one.") }

    static let replaced = DatabaseError(
        extendedCode: SQLITE_BUSY,
        reason: .busy,
        message: "Somebody else replaced the file meanwhile. Try again."
    )
}
