import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct LaneTests {
    private let lane = Lane(places: 3, name: "test", instruments: Instruments(path: nil))

    /// Where somebody else has one of the places, the wait for all gives the others back.
    @Test func whoCannotHaveAllKeepsNone() throws {
        lane.maximumWait = 0.05
        let (taken, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let other = Thread { [lane] in
            let place = try? lane.enter()
            taken.signal()
            done.wait()
            if let place { lane.leave(place) }
            taken.signal()
        }
        other.start()
        #expect(taken.wait(timeout: .now() + 60) == .success)
        #expect(throws: DatabaseError.self) { try lane.enterAll() }
        // None of them is this thread's any more, and both are there for whoever comes.
        #expect(!lane.isInside)
        let first = try lane.enter()
        lane.leave(first)
        done.signal()
        #expect(taken.wait(timeout: .now() + 60) == .success)
        try lane.enterAll()
        lane.leaveAll()
        #expect(!lane.isInside)
    }
}
