import CSealedDBSystem
import Foundation
import SealedDB
import Synchronization

/// The journal of a batch: what was begun, done and failed, with one record per line. Each record is on disk before the
/// work goes on.
///
/// It is for people and for `sealdb status`. To find out whether a store is done, a run examines the store.
final class BatchJournal: Sendable {
    let path: String
    /// What the journal held before this run.
    let state: JournalState?
    /// `nil` until the file exists.
    private let descriptor: Mutex<Int32?>

    /// Opens the journal if it exists, and locks it against other runs.
    init(path: String) throws {
        self.path = path
        guard let descriptor = try JournalFile.open(path, O_RDWR | O_APPEND) else {
            state = nil
            self.descriptor = Mutex(nil)
            return
        }
        do {
            try BatchJournal.lock(descriptor, path)
            let (state, isWhole) = try JournalFile.read(descriptor, path)
            self.state = state
            // End a line that was cut off, so that it does not run into the next one.
            if !isWhole { try BatchJournal.append([0x0a], to: descriptor, path: path) }
            try synchronizeDirectory(of: path)
        } catch {
            // What was written was synced, or its failure is already reported.
            sealeddb_unlock_and_close(descriptor)
            throw error
        }
        self.descriptor = Mutex(descriptor)
    }

    deinit {
        descriptor.withLock { descriptor in
            // Each line was synced when it was written.
            if let descriptor { sealeddb_unlock_and_close(descriptor) }
        }
    }

    /// The state of the batch of these stores, if it is not complete.
    func unfinishedBatch(operation: String, _ stores: [StoreItem]) -> JournalState? {
        state?.asUnfinishedBatch(operation: operation, stores)
    }

    /// Begins a run. It continues the batch of these stores if that is not complete, and otherwise begins a new batch.
    /// - Parameter isResumeOnly: whether to fail if there is no batch to continue.
    func begin(operation: String, _ stores: [StoreItem], isResumeOnly: Bool) throws {
        try BatchJournal.check(state, path: path, operation: operation, stores, isResumeOnly: isResumeOnly)
        let unfinished = unfinishedBatch(operation: operation, stores)
        var record = JournalRecord(.begin)
        record.version = JournalRecord.currentVersion
        record.batch = unfinished?.batch ?? UUID().uuidString.lowercased()
        record.operation = operation
        record.process = getpid()
        record.directory = FileManager.default.currentDirectoryPath
        record.stores = stores.map(\.identity)
        let line = try record.line()
        try descriptor.withLock { descriptor in
            if let descriptor {
                try BatchJournal.append(line, to: descriptor, path: path)
            } else {
                descriptor = try BatchJournal.create(path, line)
            }
        }
    }

    /// Creates the file together with its first record. A file without a record could not be told from one of somebody
    /// else.
    private static func create(_ path: String, _ line: Data) throws -> Int32 {
        try Store.requireNoPart(path)
        // Remove what a killed process left. If another run does the same now, only one of the two can put its file in
        // place.
        TemporaryFile.removeLeftovers(of: path)
        let temporary = try TemporaryFile.path(beside: path)
        let flags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW
        let descriptor = sealeddb_open(temporary, flags, 0o600)
        guard descriptor >= 0 else {
            throw Failure(.cannotCreate, "Cannot create the journal \(path): \(String(cString: strerror(errno))).")
        }
        do {
            // The lock belongs to the file, and stays when the file is renamed.
            try lock(descriptor, path)
            try append(line, to: descriptor, path: path, state: "Nothing was done.")
            guard sealeddb_rename_exclusively(temporary, path) == 0 else {
                guard errno != EEXIST else { throw inUse(path) }
                throw Failure(.cannotCreate, "Cannot create the journal \(path): \(String(cString: strerror(errno))).")
            }
        } catch {
            sealeddb_unlock_and_close(descriptor)
            // This file has not become the journal. If it cannot be removed, the next run removes it.
            unlink(temporary)
            throw error
        }
        do {
            try synchronizeDirectory(of: path)
        } catch {
            // The record was synced.
            sealeddb_unlock_and_close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func lock(_ descriptor: Int32, _ path: String) throws(Failure) {
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 else {
            guard errno != EAGAIN, errno != EACCES else { throw inUse(path) }
            throw Failure(.inputOutput, "Cannot lock the journal \(path): \(String(cString: strerror(errno))).")
        }
    }

    /// Fails if a run with this journal would fail. Writes nothing.
    static func check(
        path: String,
        operation: String,
        _ stores: [StoreItem],
        isResumeOnly: Bool
    ) throws(Failure) {
        let directory = path.directoryOfPath
        try Store.requireNoPart(path)
        var state: JournalState?
        if let descriptor = try JournalFile.open(path, O_RDWR) {
            // The result does not matter: nothing was written through this descriptor.
            defer { close(descriptor) }
            guard try !JournalFile.isInUse(path) else { throw inUse(path) }
            state = try JournalFile.read(descriptor, path).state
        } else if access(directory, W_OK) != 0 {
            throw Failure(.cannotCreate, "Cannot create the journal \(path): \(String(cString: strerror(errno))).")
        }
        try check(state, path: path, operation: operation, stores, isResumeOnly: isResumeOnly)
    }

    private static func check(
        _ state: JournalState?,
        path: String,
        operation: String,
        _ stores: [StoreItem],
        isResumeOnly: Bool
    ) throws(Failure) {
        guard state?.asUnfinishedBatch(operation: operation, stores) == nil else { return }
        if isResumeOnly {
            throw Failure(
                .noInput,
                "The journal \(path) has no unfinished batch of these stores to go on with. Nothing was done."
            )
        }
        if let state, !state.isComplete {
            throw Failure(
                .cannotCreate,
                "The journal \(path) belongs to another batch, which is not complete (see: sealdb status). Nothing was "
                    + "done. Give this batch a journal of its own by --journal."
            )
        }
    }

    private static func inUse(_ path: String) -> Failure {
        Failure(.busy, "Another run uses the journal \(path). Nothing was done.")
    }

    /// Writes a record, and waits until it is on disk.
    func append(_ record: JournalRecord) throws {
        let line = try record.line()
        try descriptor.withLock { descriptor in
            guard let descriptor else { throw Failure(.software, "A journal begins with the beginning of a run.") }
            try BatchJournal.append(line, to: descriptor, path: path)
        }
    }

    private static let whileAtWork =
        "The store that was last at work has one of the two keys: keep both. To go on, run the same command."

    /// - Parameter state: what an error says of the stores and of what to do.
    private static func append(
        _ bytes: some Collection<UInt8>,
        to descriptor: Int32,
        path: String,
        state: String = whileAtWork
    ) throws(Failure) {
        let bytes = Array(bytes)
        // A single call, so that a kill leaves either the whole line or nothing.
        let count = write(descriptor, bytes, bytes.count)
        // Where there was room for a part alone, there is no error number.
        let isCutOff = count >= 0 && count < bytes.count
        guard count == bytes.count, fsync(descriptor) == 0 else {
            let reason = String(cString: strerror(isCutOff ? ENOSPC : errno))
            throw Failure(.inputOutput, "Cannot write the journal \(path): \(reason). \(state)")
        }
    }
}
