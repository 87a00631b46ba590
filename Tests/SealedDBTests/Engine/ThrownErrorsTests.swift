import Testing

@testable import SealedDB

/// Errors of closures on their way through C.
@Suite(.hangLimit)
struct ThrownErrorsTests {
    /// Several may be on their way at once.
    @Test func areNotMixedUp() {
        struct Failure: Error { let number: Int }
        var errors = ThrownErrors()
        let codes = (0..<8).map { errors.keep(Failure(number: $0), message: "It failed.") }
        #expect(Set(codes).count == 8)
        for (number, code) in codes.enumerated().reversed() {
            #expect(code & 0xff == SQLITE_ERROR)
            let first = errors.take(code, sql: nil)
            let second = errors.take(code, sql: nil)
            #expect((first?.underlyingError as? Failure)?.number == number)
            #expect(second == nil)
        }
    }
}
