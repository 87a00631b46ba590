import Foundation
import Synchronization

/// One connection that is used in turns: the whole of a ``DatabaseQueue``, and the writing half of a ``DatabasePool``.
///
/// Concurrent calls of `write` share a transaction (group commit). Each runs in its own savepoint, one after the other
/// in the order of the line, each on the thread of its caller or, for a task, on the lane's. Whoever finds nobody next in
/// line commits and ends the turn. Only then do all of them learn their outcome: who has been told may drop the queue, so
/// nothing of a turn comes after that. The first one needs no savepoint: nothing is lost if its failure rolls everything
/// back. So a call that is alone costs no more than BEGIN and COMMIT.
// @unchecked: `database` and `batch` belong to whoever has the lane's place.
final class Writer: @unchecked Sendable {
    /// A call of `write`, which learns its outcome when its turn has ended.
    // @unchecked: written before the signal, and read after it.
    final class Member: @unchecked Sendable {
        let stop: StopFlag?
        /// The error of its own block.
        fileprivate var failure: (any Error)?
        private let settle: (_ error: (any Error)?) -> Void

        init(stop: StopFlag?, settle: @escaping (_ error: (any Error)?) -> Void) {
            self.stop = stop
            self.settle = settle
        }

        fileprivate func end(_ error: (any Error)?) { settle(error) }
    }

    /// The transaction that is open now.
    private struct Batch {
        let began = DispatchTime.now().uptimeNanoseconds
        var members: [Member] = []
        /// What the threads wait for, one wake-up for all of them; made when a second member comes.
        var end: DispatchGroup?
    }

    let lane: Lane
    let database: Database
    private let limits: Configuration.WriteBatching
    /// Opens the connection if it is not open.
    private let ready: (Database) throws(DatabaseError) -> Void
    /// Called after each transaction, with the place still held.
    private let afterCommit: ((Database) -> Void)?
    private var batch: Batch?
    /// How many transactions of `write` were committed.
    private let commits = Atomic(0)
    private let openness = Atomic(false)
    private let isClosing = Atomic(false)

    var commitCount: Int { commits.load(ordering: .relaxed) }
    var interrupter: Interrupter { database.interrupter }
    var isOpen: Bool { openness.load(ordering: .relaxed) }

    init(
        database: Database,
        limits: Configuration.WriteBatching = Configuration.WriteBatching(),
        lane: Lane,
        ready: @escaping (Database) throws(DatabaseError) -> Void,
        afterCommit: ((Database) -> Void)? = nil
    ) {
        self.database = database
        self.lane = lane
        self.limits = limits
        self.ready = ready
        self.afterCommit = afterCommit
    }

    // MARK: Calls

    /// Runs a block of `write` on this thread; returns when its transaction has ended.
    func write<T>(alone isAlone: Bool, _ block: (Database) throws -> T) throws -> T {
        let place = try lane.enter(shareable: !isAlone)
        var failure: (any Error)?
        var result: T?
        let member = Member(stop: nil) { error in failure = error }
        let end = perform(member, place: place, isAlone: isAlone) { db in result = try block(db) }
        end?.wait()
        if let failure { throw failure }
        return result!
    }

    func write<T: Sendable>(
        alone isAlone: Bool,
        _ block: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        try await Call<T>(lane).run(shareable: !isAlone) { [self] place, call in
            let member = Member(stop: call.stop) { error in call.end(error) }
            _ = perform(member, place: place, isAlone: isAlone) { db in call.value = try block(db) }
        }
    }

    /// Runs a block that shares nothing, and may have transactions of its own, but leave none open.
    func inDatabase<T>(_ block: (Database) throws -> T) throws -> T {
        let place = try lane.enter()
        defer { leave(place) }
        return try alone(stop: nil) { db in try db.endingTransaction { try block(db) } }
    }

    func inDatabase<T: Sendable>(_ block: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await Call<T>(lane).run(shareable: false) { [self] place, call in
            call.end {
                try alone(stop: call.stop) { db in try db.endingTransaction { try block(db) } }
            } before: {
                leave(place)
            }
        }
    }

    /// Runs a block of `read` on this connection.
    func read<T>(_ block: (Database) throws -> T) throws -> T {
        let place = try lane.enter()
        defer { leave(place) }
        return try alone(stop: nil) { db in try snapshot(of: db, stop: nil, block) }
    }

    func read<T: Sendable>(_ block: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await Call<T>(lane).run(shareable: false) { [self] place, call in
            call.end {
                try alone(stop: call.stop) { db in try snapshot(of: db, stop: call.stop, block) }
            } before: {
                leave(place)
            }
        }
    }

    private func snapshot<T>(of db: Database, stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        do {
            let result = try db.snapshot(stop: stop, block)
            lane.instruments.read(failed: false)
            return result
        } catch {
            lane.instruments.read(failed: true)
            throw error
        }
    }

    // MARK: Closing

    /// Closes the connection between two blocks; the next one opens it again.
    func closeInTurn() throws {
        let place = try lane.enter()
        defer { leave(place) }
        close()
    }

    /// Closes the connection now if nobody uses it, else after its present turn.
    func closeWhenIdle() {
        isClosing.store(true, ordering: .relaxed)
        closeIfAsked()
    }

    /// Whoever finds the place taken leaves it to the one who has it, who asks again after having given it back.
    private func closeIfAsked() {
        while isClosing.load(ordering: .relaxed), let place = lane.takeFree().first {
            if isClosing.exchange(false, ordering: .relaxed) { close() }
            lane.leave(place)
        }
    }

    /// Gives the place back.
    func leave(_ place: Int) {
        lane.leave(place)
        closeIfAsked()
    }

    /// After the lane's end. Closing may take its time, as it moves the log into the file.
    func closeForGood() async {
        await withCheckedContinuation { continuation in
            lane.onOwnThread(at: 0) { [self] in
                closeWhenIdle()
                continuation.resume()
            }
        }
    }

    /// For whoever has the place.
    private func close() {
        database.enter()
        database.close()
        database.leave()
        openness.store(false, ordering: .relaxed)
    }

    // MARK: Alone

    /// Runs a block that shares nothing, with the place held.
    private func alone<T>(stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        database.enter()
        defer { endTurn() }
        do {
            try makeReady()
            let result = try database.supervised(.block, stop: stop) { try block(database) }
            try database.endUsesWithError()
            return result
        } catch {
            if !database.isInTransaction { database.closeIfUnusable(after: error) }
            throw error
        }
    }

    private func makeReady() throws(DatabaseError) {
        try database.recording { () throws(DatabaseError) in
            try database.closeIfReplaced()
            try ready(database)
        }
        database.refreshObservation()
    }

    private func endTurn() {
        database.endUses()
        afterCommit?(database)
        if isClosing.exchange(false, ordering: .relaxed) { database.close() }
        openness.store(database.isOpen, ordering: .relaxed)
        database.leave()
    }

    // MARK: Together

    /// Runs a block of `write` with the place held, and gives the place away.
    /// - Returns: what to wait for; `nil` if the transaction has ended.
    private func perform(
        _ member: Member,
        place: Int,
        isAlone: Bool,
        _ block: (Database) throws -> Void
    ) -> DispatchGroup? {
        database.enter()
        let isFirst = batch == nil
        do {
            if isFirst { try begin(member) } else { try run(Writer.savepoint) }
        } catch {
            if isFirst {
                complete(place, ended: [member], nil) { _ in error }
                return nil
            }
            member.failure = error
            return finish(member, isFirst: false, place: place, isAlone: isAlone)
        }
        if isFirst { batch = Batch() }
        do {
            database.supervision.isShared = !isFirst
            try database.supervised(.writing, stop: member.stop) { try block(database) }
            if database.connection?.hasViolatedForeignKeys == true { throw DatabaseError.foreignKeyViolated }
        } catch {
            member.failure = error
        }
        return finish(member, isFirst: isFirst, place: place, isAlone: isAlone)
    }

    /// Keeps or undoes what the block did, and goes on with the next in line or the end of the transaction.
    private func finish(_ member: Member, isFirst: Bool, place: Int, isAlone: Bool) -> DispatchGroup? {
        if isFirst, member.failure != nil {
            undo()
            complete(place, ended: [member], nil) { $0.failure }
            return nil
        }
        let ended: [Member]
        let end = batch?.end
        do throws(DatabaseError) {
            guard database.isInTransaction else { throw .transactionLost }
            if !isFirst {
                if member.failure != nil { try run(Writer.rollbackToSavepoint) }
                try run(Writer.releaseSavepoint)
            }
            try endDeferral()
            batch?.members.append(member)
            if !isAlone, hasRoom, let next = lane.nextShareable(at: place) {
                let end = end ?? newEnd()
                database.leave()
                lane.wake(next, at: place)
                return end
            }
            let start = Instruments.isOn ? DispatchTime.now().uptimeNanoseconds : 0
            try run("COMMIT")
            if Instruments.isOn {
                let duration = DispatchTime.now().uptimeNanoseconds - start
                lane.instruments.committed(blocks: batch?.members.count ?? 0, nanoseconds: duration)
            }
            commits.wrappingAdd(1, ordering: .relaxed)
            ended = batch?.members ?? []
            batch = nil
        } catch {
            fail(member, place: place, because: error)
            return nil
        }
        complete(place, ended: ended, end) { $0.failure }
        return nil
    }

    /// SQLite has foreign keys deferred until the end of the transaction, which is not that of the block that said so.
    private func endDeferral() throws(DatabaseError) {
        guard let connection = database.connection, connection.mayDeferForeignKeys else { return }
        try run("PRAGMA defer_foreign_keys = OFF")
        connection.mayDeferForeignKeys = false
    }

    private func newEnd() -> DispatchGroup {
        let end = DispatchGroup()
        end.enter()
        batch?.end = end
        return end
    }

    /// Undoes everything, for all members.
    private func fail(_ last: Member, place: Int, because error: DatabaseError) {
        var members = batch?.members ?? []
        if members.last !== last { members.append(last) }
        let end = batch?.end
        // While it is open, nothing is committed.
        let state = database.isInTransaction ? nil : database.connection?.stateAfterFailedCommit(error.extendedCode)
        undo()
        let isLost = error == .transactionLost
        let cause = isLost ? last.failure as? DatabaseError ?? error : error
        let shared = cause.adding(
            context: isLost
                ? "A block that shared the transaction made SQLite roll it back, and nothing of it is kept"
                : state ?? "The transaction could not be committed, and nothing of it is kept"
        )
        complete(place, ended: members, end) { member in
            member.failure ?? (isLost && member === last ? error : shared)
        }
    }

    private func undo() {
        batch = nil
        guard database.isInTransaction else { return }
        // What cannot be rolled back is, by closing.
        if database.connection?.rollBack() == false { database.close() }
    }

    /// Ends the turn, and then tells each member its outcome.
    private func complete(
        _ place: Int,
        ended: [Member],
        _ end: DispatchGroup?,
        _ outcome: (Member) -> (any Error)?
    ) {
        let outcomes = ended.map { ($0, outcome($0)) }
        for (_, error) in outcomes {
            if let error { database.closeIfUnusable(after: error) }
            lane.instruments.write(failed: error != nil)
        }
        endTurn()
        leave(place)
        for (member, error) in outcomes { member.end(error) }
        end?.leave()
    }

    private var hasRoom: Bool {
        guard let batch, batch.members.count < limits.maximumCount else { return false }
        return Double(DispatchTime.now().uptimeNanoseconds - batch.began) / 1e9 < limits.maximumDuration
    }

    private static let savepoint = "SAVEPOINT \(SavepointName.block)"
    private static let rollbackToSavepoint = "ROLLBACK TO \(SavepointName.block)"
    private static let releaseSavepoint = "RELEASE \(SavepointName.block)"

    private func begin(_ member: Member) throws {
        try makeReady()
        try database.supervised(.block, stop: member.stop) {
            try database.recording { () throws(DatabaseError) in
                try database.openConnection().run("BEGIN IMMEDIATE")
            }
        }
        try endDeferral()
    }

    private func run(_ sql: String) throws(DatabaseError) {
        try database.recording { () throws(DatabaseError) in try database.openConnection().run(sql) }
    }
}

extension DatabaseError {
    static let foreignKeyViolated = DatabaseError(
        extendedCode: SQLITE_CONSTRAINT_FOREIGNKEY,
        message: "FOREIGN KEY constraint failed: the block left a deferred foreign key violated, and was rolled back."
    )
}
