import Testing

@testable import SealedDB

/// Only one call at a time changes the key of a queue or pool.
@Suite(.hangLimit)
struct RotationGateTests {
    private struct Failure: Error {}

    @Test func oneAtATimeAndAgainAfterwards() throws {
        let gate = RotationGate()
        try gate.enter {
            for _ in 0..<2 {
                // One that is refused does not let the next one in.
                let error = #expect(throws: DatabaseError.self) { try gate.enter { Issue.record("Two are at work.") } }
                #expect(error?.reason == .busy)
            }
        }
        #expect(throws: Failure.self) { try gate.enter { () -> Void in throw Failure() } }
        let value = try gate.enter { 7 }
        #expect(value == 7)
    }
}
