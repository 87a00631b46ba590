import Foundation
import Testing

@testable import SealedDB

/// Single moves of the books of a queue or pool, on a clock of the test's own.
@Suite(.hangLimit)
struct LedgerEdgeTests {
    private typealias Books = Ledger<Int>

    private func request(_ desk: Books.Desk, thread: UInt = 0) -> Books.Request {
        Books.Request(desk: desk, call: "test", thread: thread)
    }

    private func granted(_ answer: Books.Answer) throws -> Books.Place {
        guard case .granted(let place) = answer else { throw CancellationError() }
        return place
    }

    private func ticket(_ answer: Books.Answer) throws -> Books.Ticket {
        guard case .waits(let ticket) = answer else { throw CancellationError() }
        return ticket
    }

    private func grants(_ release: Books.Release) throws -> [Int] {
        guard case .done(let grants) = release else { throw CancellationError() }
        return grants.map(\.caller)
    }

    /// A queue has no further connections.
    @Test func nothingIsLentWhereNothingIs() {
        var books = Books(readers: 0, lends: false)
        if case .granted = books.request(request(.lent), now: 0, caller: { 1 }) { Issue.record("lent") }
        #expect(books.heldCount(.lent) == 0)
    }

    @Test func whoHasAPlaceIsNotRefusedWhileItEnds() throws {
        var books = Books(readers: 1, lends: true)
        let place = try granted(books.request(request(.writer, thread: 5), now: 0, caller: { 1 }))
        #expect(!books.isRefusing(5) && !books.isRefusing(6))
        books.drain()
        #expect(!books.isRefusing(5) && books.isRefusing(6))
        #expect(try grants(books.release(place, .open, now: 0)) == [])
        #expect(books.isRefusing(5))
    }

    /// Whoever has all of them already is no longer in line.
    @Test func aBarrierThatIsHeldIsNotWithdrawn() throws {
        var books = Books(readers: 1, lends: true)
        let place = try granted(books.request(request(.readers), now: 0, caller: { 1 }))
        let barrier = try ticket(books.requestBarrier(request(.writer), now: 0, caller: { 2 }))
        #expect(try grants(books.release(place, .open, now: 0)) == [2])
        #expect(books.withdraw(barrier, now: 0) == nil)
        #expect(books.isBarred)
        // So others wait.
        _ = try ticket(books.request(request(.readers), now: 0, caller: { 3 }))
    }

    /// Before its time is over, a barrier goes on keeping others out.
    @Test func aBarrierIsPatient() throws {
        var books = Books(readers: 2, lends: true)
        let first = try granted(books.request(request(.readers), now: 0, caller: { 1 }))
        _ = try ticket(books.requestBarrier(request(.writer), now: 0, caller: { 2 }))
        let second = try granted(books.request(request(.readers), now: 0, caller: { 3 }))
        #expect(try grants(books.release(first, .open, now: 10)) == [])
        let until = 10 + Books.firstPatience
        #expect(books.nextDeadline == until)
        _ = try ticket(books.request(request(.readers), now: 20, caller: { 4 }))
        let early = books.expire(now: until - 1)
        #expect(early.expired.isEmpty && early.grants.isEmpty)
        #expect(books.nextDeadline == until)
        let late = books.expire(now: until)
        #expect(late.grants.map(\.caller) == [4])
        withExtendedLifetime(second) {}
    }

    // MARK: Lines

    @Test func whoIsRaisedToWhatItHasKeepsItsTurn() {
        var line = WaitingLine<Int>()
        let first = line.append(1, priority: .medium)
        _ = line.append(2, priority: .medium)
        #expect(line.move(first, to: .medium) == nil)
        #expect(line.first == 1)
        #expect(line.move(first, to: .high) != nil)
        #expect(line.removeAll() == [1, 2])
    }

    // MARK: Cancellation

    @Test func whoIsCancelledBeforeItAsksGetsNothing() throws {
        let reception = Reception(readers: 1, lends: true, instruments: Instruments(path: nil))
        let cancellation = Cancellation()
        cancellation.set()
        let error = #expect(throws: DatabaseError.self) {
            try reception.enterAlone(call: "test", limit: nil, cancellation: cancellation)
        }
        #expect(error?.underlyingError is CancellationError)
        #expect(reception.look { $0.isIdle })
    }

    /// A block that goes on after its statement was stopped finds its transaction gone.
    @Test func whatACancellationExplains() {
        let stop = StopFlag()
        let full = DatabaseError(extendedCode: SQLITE_FULL, message: "full")
        let busy = DatabaseError(extendedCode: SQLITE_BUSY, message: "busy")
        for error in [DatabaseError.transactionLost, .stopped, busy, full] {
            #expect(!(stop.explain(error) is CancellationError))
        }
        stop.set()
        for error in [DatabaseError.transactionLost, .stopped, busy] {
            #expect(stop.explain(error) is CancellationError)
        }
        #expect(stop.explain(full) as? DatabaseError == full)
        let otherAbort = DatabaseError(extendedCode: SQLITE_ABORT, message: "another")
        #expect(stop.explain(otherAbort) as? DatabaseError == otherAbort)
    }
}
