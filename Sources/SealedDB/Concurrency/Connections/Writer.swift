import Foundation
import Synchronization

/// One connection that is used in turns: the only one of a ``DatabaseQueue``, or the writer of a ``DatabasePool``.
// @unchecked: only the holder of the writer's place uses `database`, `transaction` and `lately`.
final class Writer: @unchecked Sendable {
    let reception: Reception
    let database: Database
    private let limits: Configuration.WriteBatching
    /// Opens the connection if it is not open.
    private let ready: (Database) throws(DatabaseError) -> Void
    /// Called at the end of each turn, while the place is still held.
    private let afterTurn: ((Database) -> Void)?
    /// The open transaction that the previous call has passed on; `nil` if the next call begins one.
    private var transaction: SharedTransaction?
    /// How many seconds the longest recent block took, of those that may share a transaction. Each further block halves
    /// the value, or replaces it if the block took longer than that.
    private var lately = 0.0
    private let commits = Atomic(0)

    /// The number of committed transactions of `write`.
    var commitCount: Int { commits.load(ordering: .relaxed) }

    init(
        database: Database,
        limits: Configuration.WriteBatching = Configuration.WriteBatching(),
        reception: Reception,
        ready: @escaping (Database) throws(DatabaseError) -> Void,
        afterTurn: ((Database) -> Void)? = nil
    ) {
        self.database = database
        self.reception = reception
        self.limits = limits
        self.ready = ready
        self.afterTurn = afterTurn
    }

    // MARK: The loop of a shared transaction

    /// One call's part in a transaction.
    private struct Part: Sendable {
        let transaction: SharedTransaction
        /// The error of the call's own block.
        var failure: (any Error)?

        func check() throws {
            if let failure { throw failure }
            if let error = transaction.error { throw error }
        }
    }

    /// Does what one call does with the connection. Together, concurrent calls of `write` are one loop: begin a
    /// transaction; run the first block; while the next call in line may share the transaction and there is room, run
    /// its block in a savepoint; commit; end the turn; tell all calls.
    ///
    /// Each pass of the loop runs on its caller's thread, or in its caller's task, and hands the connection to the next
    /// call. A call that has handed it on only waits for the end of the transaction. The call that ends the transaction
    /// leaves the connection before it tells the others.
    private func takePart(
        _ place: Reception.Place,
        alone isAlone: Bool,
        since came: UInt64,
        _ stop: StopFlag?,
        _ block: (Database) throws -> Void
    ) -> Part {
        database.enter()
        let transaction = self.transaction ?? SharedTransaction()
        self.transaction = nil
        var part = Part(transaction: transaction)
        part.failure = run(block, in: transaction, alone: isAlone, since: came, stop)
        if let failure = part.failure { transaction.failures.append(failure) }
        if transaction.isOpen, database.isOpen, !isAlone, hasRoom(transaction), let next = reception.passOn(place) {
            transaction.share()
            self.transaction = transaction
            database.leave()
            next.tell(.success(place))
            return part
        }
        if transaction.isOpen { commit(transaction) }
        for failure in transaction.failures { database.closeIfUnusable(after: failure) }
        endTurn(place)
        transaction.tell()
        return part
    }

    /// Runs a block, and keeps or undoes its changes. The first block of a transaction needs no savepoint: if it fails,
    /// the transaction is rolled back.
    private func run(
        _ block: (Database) throws -> Void,
        in transaction: SharedTransaction,
        alone isAlone: Bool,
        since came: UInt64,
        _ stop: StopFlag?
    ) -> (any Error)? {
        let isFirst = !transaction.isOpen
        do {
            if isFirst { try begin(since: came, stop) } else { try run(Writer.savepoint) }
        } catch {
            return error
        }
        transaction.isOpen = true
        transaction.count += 1
        transaction.begin()
        let began = DispatchTime.now().uptimeNanoseconds
        var failure: (any Error)?
        do {
            // Observers may have come since the transaction began. They are told of this block's changes.
            if !isFirst { database.refreshObservation() }
            database.supervision.isShared = !isFirst
            try database.supervised(.writing, stop: stop) { try block(database) }
            if database.connection?.hasViolatedForeignKeys == true { throw DatabaseError.foreignKeyViolated }
        } catch {
            failure = error
        }
        if !isAlone { note(seconds: Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9, in: transaction) }
        do throws(DatabaseError) {
            guard database.isInTransaction else { throw .transactionLost }
            if isFirst, failure != nil {
                transaction.isOpen = false
                rollBack()
            } else if !isFirst {
                if failure != nil { try run(Writer.rollbackToSavepoint) }
                try run(Writer.releaseSavepoint)
            }
            if transaction.isOpen { try endDeferral() }
        } catch {
            transaction.isOpen = false
            rollBack()
            let own = failure ?? error
            transaction.error = ((own as? DatabaseError) ?? error).adding(
                context: "A block that shared the transaction made SQLite roll it back, and nothing of it is kept"
            )
            return own
        }
        return failure
    }

    private func begin(since came: UInt64, _ stop: StopFlag?) throws {
        try makeReady()
        let wait = database.connection?.busyWait
        wait?.callCame = came
        defer { wait?.callCame = nil }
        try database.supervised(.block, stop: stop) { try run("BEGIN IMMEDIATE") }
        wait?.lockWasTaken()
        database.connection?.mayHoldSavepoints = false
        try endDeferral()
    }

    private func commit(_ transaction: SharedTransaction) {
        let start = Instruments.isOn ? DispatchTime.now().uptimeNanoseconds : 0
        do throws(DatabaseError) {
            try run("COMMIT")
        } catch {
            // While the transaction is still open, nothing of it is committed.
            let state = database.isInTransaction ? nil : database.connection?.stateAfterFailedCommit(error.extendedCode)
            rollBack()
            let told =
                state.map { error.adding(commitState: $0) }
                ?? error.adding(context: "The transaction could not be committed, and nothing of it is kept")
            transaction.error = told
            transaction.failures.append(told)
            return
        }
        commits.wrappingAdd(1, ordering: .relaxed)
        guard Instruments.isOn else { return }
        let duration = DispatchTime.now().uptimeNanoseconds - start
        reception.instruments.committed(blocks: transaction.count, nanoseconds: duration)
    }

    private func rollBack() {
        // If ROLLBACK fails, closing the connection rolls back.
        if database.connection?.rollBack() == false { database.close() }
    }

    /// Turns `PRAGMA defer_foreign_keys` off again if a block may have turned it on. SQLite only does so at the end of
    /// the transaction, so the pragma would also apply to the blocks that share it.
    private func endDeferral() throws(DatabaseError) {
        guard let connection = database.connection, connection.mayDeferForeignKeys else { return }
        try run("PRAGMA defer_foreign_keys = OFF")
        connection.mayDeferForeignKeys = false
    }

    /// Whether another block may join the transaction, assuming that it takes as long as the longest recent one.
    ///
    /// None may join if a block has begun savepoints by itself, and may have left one open: what the other names could end it,
    /// and with it that block's own.
    private func hasRoom(_ transaction: SharedTransaction) -> Bool {
        database.connection?.mayHoldSavepoints != true && transaction.count < limits.maximumCount
            && transaction.age + lately < limits.maximumDuration.seconds
    }

    private func note(seconds: Double, in transaction: SharedTransaction) {
        lately = max(seconds, lately / 2)
        guard transaction.count > 1, transaction.age > limits.maximumDuration.seconds else { return }
        reception.instruments.outran()
        database.configuration.logger?.warning(
            "a block of write kept others waiting that share its transaction",
            metadata: ["seconds": "\(seconds)", "promised": "\(limits.maximumDuration.seconds)"]
        )
    }

    private static let savepoint = "SAVEPOINT \(SavepointName.block)"
    private static let rollbackToSavepoint = "ROLLBACK TO \(SavepointName.block)"
    private static let releaseSavepoint = "RELEASE \(SavepointName.block)"

    private func run(_ sql: String) throws(DatabaseError) {
        try database.recording { () throws(DatabaseError) in try database.openConnection().run(sql) }
    }

    // MARK: Calls

    /// Runs a block of `write` on this thread, and returns when its transaction has ended.
    func write<T>(alone isAlone: Bool, _ block: (Database) throws -> T) throws -> T {
        let came = Reception.now
        let place = try reception.enter(.writer, call: "write", shareable: !isAlone)
        var result: T?
        let part = takePart(place, alone: isAlone, since: came, nil) { db in result = try block(db) }
        part.transaction.waitForEnd()
        try report(part)
        return result!
    }

    func write<T: Sendable>(alone isAlone: Bool, _ block: @Sendable (Database) throws -> T) async throws -> T {
        let came = Reception.now
        var request = Reception.Books.Request(desk: .writer, call: "write")
        request.isShareable = !isAlone
        let turn = TaskTurn(reception, request)
        let (part, result) = try await turn.run { place, stop in
            var result: T?
            let part = takePart(place, alone: isAlone, since: came, stop) { db in result = try block(db) }
            return (part, result)
        }
        await part.transaction.ended()
        do {
            try report(part)
        } catch {
            throw turn.stop.explain(error)
        }
        return result!
    }

    private func report(_ part: Part) throws {
        reception.instruments.write(failed: part.failure != nil || part.transaction.error != nil)
        try part.check()
    }

    /// Runs a block that shares no transaction. The block may begin transactions, but must end them.
    func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        try runAlone(reception.enter(.writer, call: "inDatabase"), nil, block)
    }

    func inDatabase<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        let request = Reception.Books.Request(desk: .writer, call: "writeWithoutTransaction")
        return try await TaskTurn(reception, request).run { place, stop in try runAlone(place, stop, block) }
    }

    /// Runs a block of `read` on the writer's connection.
    func read<T>(_ block: (Database) throws -> T) throws -> T {
        try runAlone(reception.enter(.writer, call: "read"), nil, isReading: true, block)
    }

    func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        let request = Reception.Books.Request(desk: .writer, call: "read")
        return try await TaskTurn(reception, request).run { place, stop in
            try runAlone(place, stop, isReading: true, block)
        }
    }

    /// Runs a block while nobody else holds a place.
    func barrier<T>(
        limit: Double?,
        cancellation: Cancellation? = nil,
        _ block: (Database) throws -> T
    ) throws -> T {
        try runAlone(reception.enterAlone(call: "barrier", limit: limit, cancellation: cancellation), nil, block)
    }

    func barrier<T: Sendable>(limit: Double?, _ block: @Sendable (Database) throws -> T) async throws -> T {
        var request = Reception.Books.Request(desk: .writer, call: "barrier")
        request.limit = limit
        return try await TaskTurn(reception, request, isAlone: true).run { place, stop in
            try runAlone(place, stop, block)
        }
    }

    // MARK: Closing

    /// Waits for a turn, and closes the connection. The next block opens it again.
    /// - Parameter around: calls the closure that closes it, within the turn.
    func closeInTurn(_ around: (() -> Void) -> Void) throws {
        let place = try reception.enter(.writer, call: "close")
        around {
            database.enter()
            database.close()
            database.leave()
        }
        database.enter()
        reception.leave(place, database)
    }

    /// Runs the body in a turn, without the connection.
    /// - Returns: false if there was no turn in this time, or nobody gets one any more; the body was not called.
    func inTurn(within seconds: Double, _ body: () -> Void) -> Bool {
        // The reason does not matter: the caller tries again some time.
        guard let place = try? reception.enter(.writer, call: "replicate", within: seconds) else { return false }
        body()
        database.enter()
        reception.leave(place, database)
        return true
    }

    /// Closes the connection now if nobody uses it, otherwise at the end of the present turn.
    func closeWhenIdle() {
        for place in reception.forget([.writer]) { close(place) }
    }

    func close(_ place: Reception.Place) {
        database.enter()
        database.close()
        reception.leave(place, database)
    }

    /// Gives back memory that the connection does not need, if nobody uses the connection.
    func releaseMemory() {
        guard let place = reception.takeWriterIfFree(call: "releaseMemory") else { return }
        database.enter()
        database.connection?.releaseMemory()
        reception.leave(place, database)
    }

    // MARK: Turns

    /// Runs a block that shares no transaction, and gives the place back.
    private func runAlone<T>(
        _ place: Reception.Place,
        _ stop: StopFlag?,
        isReading: Bool = false,
        _ block: (Database) throws -> T
    ) throws -> T {
        database.enter()
        defer { endTurn(place) }
        do {
            try makeReady()
            let result =
                if isReading {
                    try database.snapshot(stop: stop, block)
                } else {
                    try database.supervised(.block, stop: stop) {
                        try database.endingTransaction { try block(database) }
                    }
                }
            if isReading { reception.instruments.read(failed: false) }
            return result
        } catch {
            if isReading { reception.instruments.read(failed: true) }
            if !database.isInTransaction { database.closeIfUnusable(after: error) }
            throw error
        }
    }

    private func makeReady() throws(DatabaseError) {
        try database.recording { () throws(DatabaseError) in
            try database.closeIfReplaced()
            try ready(database)
            try database.resumeShipping()
        }
        database.refreshObservation()
    }

    /// Leaves the connection, and gives the place back. After that, the call must not touch either.
    private func endTurn(_ place: Reception.Place) {
        database.endUses()
        // Observers that came during the turn may have read the state before its commit, so they are told of it.
        database.refreshObservation()
        database.supervision.writeLine?.letGo(database.supervision)
        afterTurn?(database)
        reception.leave(place, database)
    }
}

extension DatabaseError {
    static let foreignKeyViolated = DatabaseError(
        extendedCode: SQLITE_CONSTRAINT_FOREIGNKEY,
        message: "FOREIGN KEY constraint failed: the block left a deferred foreign key violated, and was rolled back."
    )
}
