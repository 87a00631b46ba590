import CSealedDBSystem
import Foundation
import Synchronization

/// The log of a batch: what was begun, done and failed, one record on a line, each on disk before the work goes on.
///
/// It is for people and for `sealdb status`. Whether a store is done, a run asks the store.
final class BatchJournal: Sendable {
    let path: String
    /// What it said before this run.
    let state: JournalState?
    private let descriptor: Mutex<Int32>

    /// Opens the journal, or makes a new one, and keeps other runs from it.
    init(path: String) throws {
        self.path = path
        let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            throw Failure(.cannotCreate, "Cannot open the journal \(path): \(String(cString: strerror(errno))).")
        }
        do {
            guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 else {
                throw BatchJournal.inUse(path)
            }
            let contents = try JournalFile(path: path)
            state = contents.state
            // A line that was cut off must not swallow the next one.
            if contents.endsWithinLine { try BatchJournal.append([0x0a], to: descriptor, path: path) }
            try BatchJournal.synchronizeDirectory(of: path)
        } catch {
            // What was written to it was synced, or is not believed.
            close(descriptor)
            throw error
        }
        self.descriptor = Mutex(descriptor)
    }

    deinit {
        // Each line was synced when it was written.
        descriptor.withLock { descriptor in _ = close(descriptor) }
    }

    /// What is known of the batch of these stores, if it is not complete.
    func unfinishedBatch(operation: String, _ stores: [StoreItem]) -> JournalState? {
        state?.asUnfinishedBatch(operation: operation, stores)
    }

    /// Begins a run: the next one of a batch that is not complete, or the first of a new batch.
    /// - Parameter isResumeOnly: whether there must be such a batch.
    func begin(operation: String, _ stores: [StoreItem], isResumeOnly: Bool) throws {
        try BatchJournal.check(state, path: path, operation: operation, stores, isResumeOnly: isResumeOnly)
        let unfinished = unfinishedBatch(operation: operation, stores)
        var record = JournalRecord(.begin)
        record.version = JournalRecord.currentVersion
        record.batch = unfinished?.batch ?? UUID().uuidString.lowercased()
        record.operation = operation
        record.process = getpid()
        record.directory = FileManager.default.currentDirectoryPath
        record.command = CommandLine.arguments
        record.stores = stores.map(\.identity)
        try append(record)
    }

    /// Fails if a run with this journal would, and writes nothing.
    static func check(
        path: String,
        operation: String,
        _ stores: [StoreItem],
        isResumeOnly: Bool
    ) throws(Failure) {
        let isThere = access(path, F_OK) == 0
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard access(isThere ? path : directory, W_OK) == 0 else {
            throw Failure(.cannotCreate, "Cannot open the journal \(path): \(String(cString: strerror(errno))).")
        }
        guard !isThere || !JournalFile.isInUse(path: path) else { throw inUse(path) }
        let state = isThere ? try JournalFile(path: path).state : nil
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

    /// Writes a record and waits until it is on disk.
    func append(_ record: JournalRecord) throws {
        let line = try record.line()
        try descriptor.withLock { descriptor in try BatchJournal.append(line, to: descriptor, path: path) }
    }

    private static func append(_ bytes: some Collection<UInt8>, to descriptor: Int32, path: String) throws(Failure) {
        let bytes = Array(bytes)
        // One call, so that a kill leaves a line or none.
        guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else {
            throw Failure(.inputOutput, "Cannot write the journal \(path): \(String(cString: strerror(errno))).")
        }
    }

    private static func synchronizeDirectory(of path: String) throws(Failure) {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // Nothing is written by it.
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw Failure(.inputOutput, "Cannot sync \(directory): \(String(cString: strerror(errno))).")
        }
    }
}

/// A journal as it is read.
struct JournalFile {
    let state: JournalState?
    /// Whether the last line has no end.
    let endsWithinLine: Bool

    init(path: String) throws(Failure) {
        let file = try InputFile(path: path)
        let contents = try file.contents()
        endsWithinLine = contents.last.map { $0 != 0x0a } ?? false
        state = JournalState(contents.split(separator: 0x0a).compactMap { JournalRecord(line: $0) })
        // Whatever it is, it is not ours to write to.
        guard contents.isEmpty || state != nil else {
            throw Failure(.data, "\(path) is not a journal of sealdb. It was not changed.")
        }
    }

    /// Whether a run has the journal open.
    static func isInUse(path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        // Nothing is written by it.
        defer { close(descriptor) }
        var type = Int32(F_RDLCK)
        var count: Int64 = 0
        return sealeddb_excluding_lock(descriptor, &type, 0, &count) == 0 && type != F_UNLCK
    }
}
