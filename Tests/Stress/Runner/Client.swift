import Foundation
import SealedDB
import Synchronization

/// Runs the program of one client on a thread of its own, and says after each step what became of it.
final class Client: @unchecked Sendable {
    let id: Int
    let station: Station
    private let plan: ClientPlan
    /// Used by the thread of this client only; blocks of its steps run while it waits.
    private var state: ClientState
    private var ids: [Int: Int] = [:]

    init(_ plan: ClientPlan, station: Station, state: ClientState) {
        id = plan.id
        self.plan = plan
        self.station = station
        self.state = state
    }

    var service: Service { station.service }
    var scale: Scale { station.plan.scale }

    func run() {
        var generator = Generator(
            seed: station.plan.seed,
            round: station.plan.number,
            client: plan,
            scale: scale,
            keyCount: Place.keyCount
        )
        for _ in 0..<plan.steps where !station.isOver { perform(generator.next()) }
    }

    private func perform(_ step: Step) {
        ids = [:]
        var outcome = StoreModel.Outcome.done
        do {
            try step.operation.run(self, step)
            if step.ending == .failure { throw Violation("It was to fail, and did not.") }
        } catch is Unwanted {
            outcome = .nothing
        } catch is CancellationError {
            outcome = .nothing
        } catch let error as DatabaseError where error.reason == .busy || error.reason == .interrupted {
            outcome = .nothing
        } catch {
            Acknowledgements.fail(client: id, step: step, error)
        }
        if outcome == .done { state.apply(step, ids: ids) }
        Acknowledgements.say(client: id, step: step, outcome, ids: ids)
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

    /// Compares the client's rows with what it knows.
    func compare(on db: Database) throws {
        for table in Table.fixed + (state.hasOwnTable ? [.own] : []) {
            let expected = state.rows[table] ?? [:]
            let rows = try db.executeQuery(
                "SELECT key, value FROM \(table.name(for: id)) WHERE owner = ?",
                values: [id]
            )
            defer { rows.close() }
            var count = 0
            while try rows.nextWithError() {
                let key = rows.long(forColumnIndex: 0)
                count += 1
                let isSame = rows.withUnsafeBytes(forColumnIndex: 1) { bytes in
                    expected[key].map { $0.firstDifference(from: bytes) == nil } ?? false
                }
                guard isSame == true else {
                    throw Violation("\(table) \(key) of client \(id) is another within the service.")
                }
            }
            guard count == expected.count else {
                throw Violation("Client \(id) sees \(count) rows of \(table), and wrote \(expected.count).")
            }
        }
    }

    func mustFail(_ what: String, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as DatabaseError where error.code == 19 {
            return
        }
        throw Violation("\(what) was reported as done.")
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
