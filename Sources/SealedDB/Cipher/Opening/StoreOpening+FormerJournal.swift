internal import CSealedDBSystem
import Foundation

extension StoreOpening {
    /// Refuses a journal whose transaction goes on in a process that has another file open than the one at the path. SQLite would take
    /// it for one that was cut off, and put pages of the former file into this one.
    /// - Parameters:
    ///   - vfs: the one that opens the store; `nil` for the default.
    ///   - table: the kernel's table of locks at the moment of the call.
    ///   - hasWriters: what the kernel tells of a journal, as ``sealeddb_has_writers``.
    /// - Throws: ``DatabaseError/Reason/busy``.
    static func requireNoJournalOfFormerFile(
        ofStore path: String,
        vfs: String? = nil,
        table: () -> LockTable? = { LockTable() },
        hasWriters: (_ journal: String) -> Int32 = StoreOpening.hasWriters
    ) throws(DatabaseError) {
        var others: Set<Int32> = []
        var areSeen = true
        for attempt in 0..<10 {
            // Also one without contents: who has it open may write to it later, and SQLite looks whether the store was moved only when it
            // opens a journal.
            guard try StoreOpening.file("-journal", beside: path) != nil else { return }
            if attempt > 0 { LockHolders.pause() }
            let answer = hasWriters(path + "-journal")
            guard answer != 0 else { return }
            let users = try JournalUsers(ofStore: path, vfs, isWritten: answer > 0, table)
            others = attempt > 0 ? others.intersection(users.ofAnother) : users.ofAnother
            areSeen = users.areSeen
            if others.isEmpty { return }
        }
        throw journalOfFormerFile(path, others.sorted(), areSeen)
    }

    /// Who writes the journal beside a path for another file than the one that is there, at one moment.
    private struct JournalUsers {
        /// Stands for a process that this one may not look into.
        static let unseen: Int32 = 0

        private(set) var ofAnother: Set<Int32> = []
        /// Whether they could be looked at. Otherwise the kernel tells of a writer that was not found, or they write some other store.
        private(set) var areSeen = true

        /// - Parameter isWritten: whether the kernel tells that somebody writes the journal, and not only that it cannot tell.
        init(
            ofStore path: String,
            _ vfs: String?,
            isWritten: Bool,
            _ table: () -> LockTable?
        ) throws(DatabaseError) {
            guard let journal = try StoreOpening.file("-journal", beside: path) else { return }
            let store = LockTable.name(of: try FileSystem.status(path), at: path)
            let name = LockTable.name(of: journal, at: path + "-journal")
            let before = table() ?? .empty
            let found = try FileUsers.withFile(journal, path + "-journal")
            let writers = found.compactMap { JournalWriter(process: $0, of: name) }
            let after = table() ?? .empty
            // Who writes a journal has a lock on the store before, meanwhile and afterwards.
            let known = before.processes(withLocksOn: store).union(after.processes(withLocksOn: store))
            ofAnother = Set(writers.filter { $0.changesAnother(than: store) }.map(\.process))
                .subtracting(known)
            guard writers.isEmpty else { return }
            // Somebody whom this process may not look into, or one who has ended meanwhile. As long as the store at the path is
            // reserved, it is that which is changed, and SQLite leaves the journal alone.
            var strangers: Set<Int32> = [JournalUsers.unseen]
            if !isWritten {
                // A journal may be kept between transactions. Then a writer of any other store would keep everybody out of this one.
                guard try RollbackJournal.isBegun(path + "-journal") else { return }
                strangers = before.writers(ofOtherStoresThan: store).subtracting(known)
                    .filter { ProcessDescriptors(of: $0) == nil }
            }
            guard !strangers.isEmpty, try !JournalUsers.isReserved(path, vfs) else { return }
            (ofAnother, areSeen) = (strangers, false)
        }

        private static func isReserved(_ path: String, _ vfs: String?) throws(DatabaseError) -> Bool {
            let connection = try Connection(path: path, flags: SQLITE_OPEN_READONLY, vfs: vfs)
            defer { connection.close() }
            return try connection.isReserved()
        }
    }

    /// Whether somebody writes a journal, as ``sealeddb_has_writers`` tells it; -1 also if it cannot be opened.
    static func hasWriters(_ journal: String) -> Int32 {
        // Nobody locks a journal, so to close it takes no lock from this process.
        let descriptor = sealeddb_open(journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return -1 }
        defer { close(descriptor) }  // Nothing was written.
        return sealeddb_has_writers(descriptor)
    }

    /// A process that has a journal open to write it.
    private struct JournalWriter {
        let process: Int32
        private let files: [OpenFile]
        private let locked: SQLiteLocks

        /// - Parameter journal: as the table of locks names it.
        init?(process: Int32, of journal: String) {
            var locked = SQLiteLocks()
            guard let descriptors = ProcessDescriptors(of: process) else { return nil }
            let files = descriptors.numbers.compactMap { number -> OpenFile? in
                guard case .file(let file) = descriptors.file(number) else { return nil }
                locked.insert(file.locks)
                return file
            }
            guard files.contains(where: { $0.id == journal && $0.isForWriting }) else { return nil }
            (self.process, self.files, self.locked) = (process, files, locked)
        }

        /// A child has copies of its parent's descriptors, and no locks. So one that also has the store open changes another file only
        /// if it has a lock on one that is not where its journal is.
        func changesAnother(than store: String) -> Bool {
            guard files.contains(where: { $0.id == store && $0.isForWriting }) else { return true }
            return files.contains { former in
                guard locked.stores.contains(former.id), former.id != store else { return false }
                return former.isDeleted
                    || !files.contains { file in
                        JournalName.suffixes.contains { file.name.isSame(as: former.name + $0) }
                    }
            }
        }
    }

    private static func journalOfFormerFile(_ path: String, _ processes: [Int32], _ areSeen: Bool) -> DatabaseError {
        let names = processes.filter { $0 != JournalUsers.unseen }.map(name)
        let what =
            areSeen
            ? """
            \(path) is another file than the one that \(names.joined(separator: ", ")) is changing, whose journal is beside it: \
            somebody put it in the place of a store that was open.
            """
            : """
            Somebody seems to write the journal beside \(path), and has not locked the file that is there: a process that this user \
            may not look into\(names.isEmpty ? "" : ", such as " + names.joined(separator: ", ")), or one of another container. If \
            it undoes a transaction that was cut off, try again. Otherwise it changes a file that was there before.
            """
        return DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                \(what) SQLite would put pages of the former file into it. Nothing was read or written. Keep a copy of it and of the \
                journal, and end who has the former file open. A journal that is left then belongs to the former file: move it away \
                before somebody opens the new one.
                """
        )
    }
}
