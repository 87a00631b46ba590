import Foundation
import RawStore
import SealedDB
import Synchronization

/// Runs the program of one client on a thread of its own, and says after each step what became of it.
///
/// Unchecked: it belongs to that thread, which waits while a block of a step runs elsewhere.
final class Client: @unchecked Sendable {
    let id: Int
    let station: Station
    private let plan: ClientPlan
    private(set) var state: ClientState
    private var ids: [Int: Int] = [:]
    private var ownDatabase: Database?

    init(_ plan: ClientPlan, station: Station, state: ClientState) {
        id = plan.id
        self.plan = plan
        self.station = station
        self.state = state
    }

    var scale: Scale { station.plan.scale }
    var place: Place { station.place }

    func run() {
        var generator = Generator(
            seed: station.plan.seed,
            round: station.plan.number,
            client: plan,
            scale: scale,
            keyCount: Place.keyCount
        )
        for _ in 0..<plan.steps where !station.isOver {
            guard let step = generator.next() else { break }
            guard perform(step) != .doubt else { break }
        }
        closeDatabase()
    }

    /// Nothing can be built on a step in doubt: it is the last one of its client in the round.
    private func perform(_ step: Step) -> StoreModel.Outcome {
        ids = [:]
        var outcome = StoreModel.Outcome.done
        do {
            try step.operation.run(self, step)
            if step.ending == .failure { throw Violation("It was to fail, and did not.") }
        } catch is Unwanted {
            outcome = .nothing
        } catch is CancellationError {
            outcome = .nothing
        } catch let error as DatabaseError where isExpected(error) {
            outcome = .nothing
        } catch let error as CommandFailure where isExpected(error) {
            outcome = .nothing
        } catch  where station.process.faults != nil && mayComeFromFault(error) {
            outcome = .doubt
        } catch {
            Acknowledgements.fail(client: id, step: step, error)
        }
        if outcome == .done { state.apply(step, ids: ids) }
        Acknowledgements.say(client: id, step: step, outcome, ids: ids)
        return outcome
    }

    // MARK: What may fail

    private func isExpected(_ error: DatabaseError) -> Bool {
        switch error.reason {
        case .busy, .interrupted: true
        // A deferred transaction of a pool began to read, and another connection wrote before it did. A full-text table
        // reads before it writes.
        case .locked: error.extendedCode == SQLITE_BUSY_SNAPSHOT && station.service != nil
        // Others change the key between the look at it and its use.
        case .wrongKey: station.service == nil && station.plan.rotates
        default: station.process.room != nil && Client.isFullDisk(error)
        }
    }

    private func isExpected(_ error: CommandFailure) -> Bool {
        error.status == CommandFailure.busy || error.status == CommandFailure.wrongKey && station.plan.rotates
    }

    /// No call that fails breaks a constraint, makes one key another, or a sound store a damaged one.
    private func mayComeFromFault(_ error: any Error) -> Bool {
        // CORRUPT, CONSTRAINT, MISMATCH, MISUSE, NOTADB.
        let ofOtherCauses: Set<Int32> = [11, 19, 20, 21, 26]
        return switch error {
        case let error as DatabaseError:
            ![.damaged, .wrongKey, .truncated, .plaintext].contains(error.reason) && !ofOtherCauses.contains(error.code)
        case let failure as RawConnection.Failure: !ofOtherCauses.contains(failure.code & 0xff)
        default: false
        }
    }

    static func isFullDisk(_ error: DatabaseError) -> Bool {
        [.noSpace, .ioError, .cannotCreate].contains(error.reason) || error.code == 10 || error.code == 13
    }

    func mustFail(_ what: String, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as DatabaseError where error.code == 19 {
            return
        }
        throw Violation("\(what) was reported as done.")
    }

    // MARK: The store

    var service: Service {
        guard let service = station.service else { preconditionFailure("This process has no queue and no pool.") }
        return service
    }

    /// The connection of a client that has one for itself.
    func database() throws -> Database {
        if let ownDatabase { return ownDatabase }
        var ring = try KeyRing(activeID: "0", key: place.key(0))
        for number in 1..<Place.keyCount { try ring.add(place.key(number), id: "\(number)") }
        var configuration = Configuration(keyRing: ring)
        configuration.busyTimeout = .seconds(20)
        configuration.createsFile = false
        let database = Database(path: place.store, configuration: configuration)
        try database.openVerified()
        try database.executeUpdate("PRAGMA foreign_keys = ON", values: nil)
        ownDatabase = database
        return database
    }

    func closeDatabase() {
        if let ownDatabase, !ownDatabase.close(), station.process.faults == nil {
            Acknowledgements.fail(client: id, "close: \(ownDatabase.lastError())")
        }
        ownDatabase = nil
    }

    /// Without a transaction around it.
    func direct<T>(_ body: (Database) throws -> T) throws -> T {
        if let service = station.service { return try service.access.writeWithoutTransaction(body) }
        return try body(database())
    }

    func write<T>(_ body: (Database) throws -> T) throws -> T {
        if let service = station.service { return try service.access.write(body) }
        let database = try database()
        return try database.inTransaction { try body(database) }
    }

    func read<T>(_ body: (Database) throws -> T) throws -> T {
        if let service = station.service { return try service.access.read(body) }
        return try body(database())
    }

    // MARK: For operations

    /// Makes all changes of the step, in a transaction of the caller's.
    func make(_ step: Step, on db: Database) throws {
        var writer = RowWriter(db, owner: id, random: step.random)
        for change in step.changes { try writer.apply(change) }
        try writer.tell(step)
        ids = writer.ids
        if step.ending == .failure { throw Unwanted() }
    }

    /// Waits for a task on this client's thread.
    func awaiting(_ body: @escaping @Sendable () async throws -> Void) throws {
        let result = Mutex<Result<Void, any Error>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        Task {
            do {
                try await body()
                result.withLock { $0 = .success(()) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            isDone.signal()
        }
        isDone.wait()
        try result.withLock { $0 }?.get()
    }
}
