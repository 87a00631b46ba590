import Foundation
import Testing

@testable import SealedDB

/// The line before SQLite's lock for writing, at times of its own.
@Suite(.hangLimit)
struct WriteLineTests {
    private typealias Books = WriteLine.Books

    private final class Writer {
        var id: ObjectIdentifier { ObjectIdentifier(self) }
    }

    private let a = Writer()
    private let b = Writer()
    private let c = Writer()
    private let start: UInt64 = 1_000_000_000

    // The macro cannot call what changes its argument.
    private func enter(_ books: inout Books, _ id: ObjectIdentifier, now: UInt64) -> Books.Entry {
        books.enter(id, now: now)
    }

    private func leave(_ books: inout Books, _ id: ObjectIdentifier, now: UInt64) -> DispatchSemaphore? {
        books.leave(id, now: now)
    }

    private func fallAsleep(_ books: inout Books, _ id: ObjectIdentifier) -> DispatchSemaphore? { books.fallAsleep(id) }

    private func giveWay(
        _ books: inout Books,
        _ id: ObjectIdentifier,
        now: UInt64
    ) -> (mustWait: Bool, told: DispatchSemaphore?) { books.giveWay(id, now: now) }

    /// Has a connection stand in the line and sleep.
    private func line(_ writers: [Writer], from now: UInt64) -> Books {
        var books = Books()
        for (index, writer) in writers.enumerated() {
            #expect(enter(&books, writer.id, now: now + UInt64(index)) == .isNew)
            #expect(enter(&books, writer.id, now: now) == .stands)
            let signal = books.fallAsleep(writer.id)
            #expect(signal != nil)
        }
        return books
    }

    @Test func whoeverCameFirstIsToldFirst() {
        var books = line([a, b], from: start)
        // Not before others have been faster for a while.
        #expect(leave(&books, c.id, now: start + Books.tolerance - 1) == nil)
        var now = start + Books.tolerance + 1
        let signal = books.fallAsleep(a.id)
        #expect(leave(&books, c.id, now: now) === signal)
        // It was told, and so does not sleep; the others let it go first.
        #expect(fallAsleep(&books, a.id) == nil)
        #expect(giveWay(&books, c.id, now: now).mustWait)
        #expect(!giveWay(&books, a.id, now: now).mustWait)
        #expect(leave(&books, c.id, now: now) == nil)
        now += Books.quantum
        let other = books.fallAsleep(b.id)
        #expect(leave(&books, a.id, now: now) === other)
        #expect(leave(&books, b.id, now: now) == nil)
        #expect(books.isEmpty)
    }

    @Test func whoeverHasTheLockMayHaveItAgainForAWhile() {
        var books = line([a, b], from: start)
        let now = start + Books.tolerance + 1
        #expect(leave(&books, c.id, now: now) != nil)
        // a has written. b is woken, because it may have given way to a, but the others need not wait for it.
        let signal = books.fallAsleep(b.id)
        #expect(leave(&books, a.id, now: now + 1) === signal)
        #expect(!giveWay(&books, c.id, now: now + 2).mustWait)
        #expect(leave(&books, c.id, now: now + 3) == nil)
        let later = books.giveWay(c.id, now: now + Books.quantum)
        #expect(later.mustWait && later.told === signal)
    }

    /// One that looks at the lock, or has given up without telling, is not told: it might never hear it.
    @Test func onlyThoseWhoSleepAreTold() {
        var books = line([a, b], from: start)
        books.wakeUp(a.id)
        let signal = books.fallAsleep(b.id)
        #expect(leave(&books, c.id, now: start + Books.tolerance + 1) === signal)
        #expect(leave(&books, b.id, now: start + 2 * Books.tolerance) == nil)
        #expect(!giveWay(&books, c.id, now: start + 3 * Books.tolerance).mustWait)
        #expect(!books.isEmpty)
        #expect(leave(&books, a.id, now: start + 3 * Books.tolerance) == nil)
        #expect(books.isEmpty)
    }

    /// As long as one that was told may come.
    @Test func nobodyElseIsToldMeanwhile() {
        var books = line([a, b], from: start)
        let now = start + Books.tolerance + 1
        #expect(leave(&books, c.id, now: now) != nil)
        #expect(leave(&books, c.id, now: now + Books.quantum) == nil)
        #expect(!giveWay(&books, a.id, now: now + Books.quantum).mustWait)
        #expect(giveWay(&books, b.id, now: now + Books.quantum).mustWait)
    }

    /// One that was told and does not come is not waited for any longer.
    @Test func whoeverDoesNotComeIsForgotten() {
        var books = line([a, b], from: start)
        let now = start + Books.tolerance + 1
        #expect(leave(&books, c.id, now: now) != nil)
        let late = now + UInt64(Books.longestSleep * 1e9) + 1
        let signal = books.fallAsleep(b.id)
        #expect(giveWay(&books, c.id, now: late).told === signal)
        #expect(leave(&books, b.id, now: late) == nil)
        #expect(books.isEmpty)
    }

    /// The times themselves count as passed, and the one that was told may come until the last moment.
    @Test func timesThatHaveJustPassed() {
        var books = line([a, b], from: start)
        let first = books.fallAsleep(a.id)
        let now = start + Books.tolerance
        #expect(leave(&books, c.id, now: now) === first)
        // It may still come.
        let last = now + UInt64(Books.longestSleep * 1e9)
        #expect(giveWay(&books, c.id, now: last).mustWait)
        #expect(leave(&books, a.id, now: last) != nil)
        // b was told: another one is told when the shortest time between two has passed, and not before.
        let third = Writer()
        #expect(enter(&books, third.id, now: now) == .isNew)
        let signal = books.fallAsleep(third.id)
        #expect(leave(&books, c.id, now: last) == nil)
        let second = books.giveWay(b.id, now: last)
        #expect(!second.mustWait && second.told == nil)
        #expect(leave(&books, b.id, now: last + Books.quantum) === signal)
        #expect(giveWay(&books, c.id, now: last + Books.quantum).mustWait)
        #expect(leave(&books, third.id, now: last + Books.quantum) == nil)
        #expect(books.isEmpty)
    }

    /// Somebody else was faster than the one that was told.
    @Test func whoeverWasToldStandsInFrontAgain() {
        var books = line([a, b], from: start)
        let signal = books.fallAsleep(a.id)
        let now = start + Books.tolerance + 1
        #expect(leave(&books, c.id, now: now) === signal)
        #expect(enter(&books, a.id, now: now) == .stands)
        #expect(fallAsleep(&books, a.id) === signal)
        #expect(leave(&books, c.id, now: now + Books.quantum) === signal)
    }

    /// Otherwise all others would ask at each statement whether somebody waits.
    @Test func whoeverLetsGoLeavesTheLine() {
        let line = WriteLine()
        let supervision = Supervision(timeLimit: nil, isWatching: false)
        line.wait(supervision, seconds: 1)
        #expect(line.isContended)
        line.letGo(supervision)
        #expect(!line.isContended)
    }
}
