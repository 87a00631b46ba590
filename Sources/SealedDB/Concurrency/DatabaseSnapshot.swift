/// One state of a store, which is kept until this object is closed or dropped: see ``DatabasePool/snapshot()``.
///
/// Any number of callers may share it. Their blocks run in turns, because it is one connection. Statements that write are
/// refused in them; calls of the pool are allowed.
// @unchecked: the database and `hasEnded` belong to whoever has the turn.
public final class DatabaseSnapshot: @unchecked Sendable {
    private let pool: DatabasePool
    /// In the books of the pool, which wait for it as for a block.
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

    /// Runs the block with the state that is kept, and returns its result.
    /// - Throws: the block's error; a ``DatabaseError`` if the snapshot is closed. Within a block of the pool, or of this
    ///   snapshot, nobody waits for a turn: it is ``DatabaseError/Reason/busy`` then.
    @discardableResult
    public func read<T>(_ block: (Database) throws -> T) throws -> T {
        guard !isEnding.isSet else { throw DatabaseError.snapshotClosed }
        // Whoever has the turn may wait for a block of the pool.
        guard pool.reception.isInside else { return try run(turns.enter(.writer, call: "read"), nil, block) }
        guard let turn = turns.takeWriterIfFree(call: "read") else { throw DatabaseError.snapshotInUse }
        return try run(turn, nil, block)
    }

    /// As above, waiting without a thread, and ending early when the task is cancelled.
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
        // Those who come after ``close()`` would keep it from ending for ever.
        guard !isEnding.isSet else { throw DatabaseError.snapshotClosed }
        pool.reception.begin(place)
        database.enter()
        defer {
            database.leave()
            pool.reception.begin(place, thread: 0)
        }
        return try database.supervised(.reading, stop: stop) { try block(database) }
    }

    /// Gives the state up: now, or when the blocks have ended that read it. From any thread.
    public func close() {
        isEnding.set()
        endIfAsked()
    }

    /// Whoever finds it in use leaves it to the one who has the turn, who asks again after having given it back.
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
    /// Begins a transaction that sees the present state of the store from now on.
    func beginSnapshot() throws(DatabaseError) {
        try recording { () throws(DatabaseError) in
            let connection = try openConnection()
            guard try connection.text("PRAGMA journal_mode") == "wal" else { throw .snapshotNeedsLog }
            try connection.run("BEGIN DEFERRED")
            // The state is that of the first reading.
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
