/// One state of a store, which is kept until this object is closed or deallocated: see ``DatabasePool/snapshot()``.
///
/// Any number of callers may share a snapshot. It has one connection, so their blocks run one at a time. In these
/// blocks, statements that write are refused, but calls of the pool are allowed.
// @unchecked: only the call that has the turn uses the database and `hasEnded`.
public final class DatabaseSnapshot: @unchecked Sendable {
    private let pool: DatabasePool
    /// The snapshot's place in the pool's ledger. The pool waits for it as it waits for a block.
    private let place: Reception.Place
    private let database: Database
    private let turns: Reception
    private let isEnding = StopFlag()
    private var hasEnded = false

    init(of pool: DatabasePool, _ place: Reception.Place, _ database: Database) {
        self.pool = pool
        self.place = place
        self.database = database
        turns = Reception(readers: 0, lends: false, instruments: pool.reception.instruments)
        turns.maximumWait = pool.reception.maximumWait
    }

    deinit {
        if !hasEnded { end() }
    }

    /// Runs the block on the kept state, and returns its result.
    /// - Throws: the block's error; a ``DatabaseError`` if the snapshot is closed. A call from within a block of the
    ///   pool or of this snapshot does not wait for a turn: if another block reads the snapshot, the call throws
    ///   ``DatabaseError/Reason/busy``.
    @discardableResult
    public func read<T>(_ block: (Database) throws -> T) throws -> T {
        guard !isEnding.isSet else { throw DatabaseError.snapshotClosed }
        // This thread is inside a block. The block that has the turn may wait for this thread's place, so a wait here
        // could last for ever.
        guard pool.reception.isInside else { return try run(turns.enter(.writer, call: "read"), nil, block) }
        guard let turn = turns.takeWriterIfFree(call: "read") else { throw DatabaseError.snapshotInUse }
        return try run(turn, nil, block)
    }

    /// Like the synchronous form, but waits without blocking a thread, and ends early if the task is cancelled.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        guard !isEnding.isSet else { throw DatabaseError.snapshotClosed }
        let request = Reception.Books.Request(desk: .writer, call: "read")
        return try await TaskTurn(turns, request).run { turn, stop in try run(turn, stop, block) }
    }

    private func run<T>(_ turn: Reception.Place, _ stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        defer {
            turns.leave(turn)
            endIfAsked()
        }
        // Without this check, callers that come after ``close()`` could keep the snapshot from ending for ever.
        guard !isEnding.isSet else { throw DatabaseError.snapshotClosed }
        pool.reception.begin(place)
        database.enter()
        defer {
            database.leave()
            pool.reception.begin(place, thread: 0)
        }
        return try database.supervised(.reading, stop: stop) { try block(database) }
    }

    /// Closes the snapshot: now, or when the blocks that read it have ended. May be called on any thread.
    public func close() {
        isEnding.set()
        endIfAsked()
    }

    /// Ends the snapshot if it was closed and no block has the turn. If a block has it, that block calls this again
    /// after it has given the turn back.
    private func endIfAsked() {
        while isEnding.isSet, let turn = turns.takeWriterIfFree(call: "close") {
            defer { turns.leave(turn) }
            guard !hasEnded else { return }
            hasEnded = true
            end()
        }
    }

    private func end() {
        database.enter()
        database.endSnapshot()
        pool.finish(place, database)
    }
}

extension Database {
    /// Begins a transaction that sees the present state of the store until it ends.
    func beginSnapshot() throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            guard try connection.text("PRAGMA journal_mode") == "wal" else { throw .snapshotNeedsLog }
            try connection.run("BEGIN DEFERRED")
            // A deferred transaction sees the state at its first read, so read something now.
            try connection.run("SELECT 1 FROM sqlite_schema LIMIT 1")
        }
    }
}

extension DatabaseError {
    static let snapshotNeedsLog = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: "A state can be kept only of a file in WAL mode: in others it would keep everybody from writing."
    )

    fileprivate static let snapshotClosed = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: "The snapshot was closed, or its pool was shut down. The block was not called."
    )

    fileprivate static let snapshotInUse = DatabaseError(
        extendedCode: SQLITE_BUSY,
        reason: .busy,
        message: """
            Another block reads the snapshot, and could wait for this one, so it is not waited for. The block was not called. \
            Read it outside of blocks, or take a snapshot of your own.
            """
    )
}
