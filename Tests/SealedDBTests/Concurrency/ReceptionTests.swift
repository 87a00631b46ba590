import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct ReceptionTests {
    private let reception = Reception(readers: 3, lends: true, instruments: Instruments(path: nil))

    /// A connection that is never opened.
    private struct Unopened: @unchecked Sendable {
        let database = Database(path: nil, configuration: Configuration(), gate: ThreadGate())
    }

    private func leave(_ place: Reception.Place) {
        let unopened = Unopened()
        unopened.database.enter()
        reception.leave(place, unopened.database)
    }

    /// Where somebody else has one of the places, the wait for all gives the others back.
    @Test func whoCannotHaveAllKeepsNone() throws {
        let (taken, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let other = Thread { [self] in
            let place = try? reception.enter(.readers, call: "test")
            taken.signal()
            done.wait()
            if let place { leave(place) }
            taken.signal()
        }
        other.start()
        #expect(taken.wait(timeout: .now() + 60) == .success)
        let error = #expect(throws: DatabaseError.self) {
            try reception.enterAlone(call: "test", limit: 0.05, cancellation: nil)
        }
        #expect(error?.reason == .busy)
        // None of them is this thread's any more, and all but one are there for whoever comes.
        #expect(!reception.isInside && reception.look { !$0.isBarred })
        for desk in Reception.Books.Desk.allCases {
            let place = try reception.enter(desk, call: "test")
            leave(place)
        }
        done.signal()
        #expect(taken.wait(timeout: .now() + 60) == .success)
        let all = try reception.enterAlone(call: "test", limit: nil, cancellation: nil)
        #expect(throws: DatabaseError.nestedCall) { try reception.enter(.readers, call: "test") }
        leave(all)
        #expect(!reception.isInside)
    }

    /// A wait with a limit that has ended leaves nothing to wait for.
    @Test func limitsThatAreNotNeededLeaveNothing() throws {
        reception.maximumWait = 3600
        for _ in 0..<100 {
            let place = try reception.enter(.writer, call: "test")
            let (entered, left) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            Thread.detachNewThread { [self] in
                entered.signal()
                if let place = try? reception.enter(.writer, call: "test") { leave(place) }
                left.signal()
            }
            entered.wait()
            leave(place)
            #expect(left.wait(timeout: .now() + 60) == .success)
        }
        #expect(reception.look { $0.isIdle })
    }
}
