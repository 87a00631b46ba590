import Foundation
import Testing

@testable import SealedDB

/// Looks at all interleavings of some callers over the ``Ledger``, with cancellations and time limits, on a clock of its
/// own. In no state may a connection have two users, or a barrier's holder have company; from no state may there be no way
/// on; and everybody who waits is told exactly once.
@Suite(.hangLimit)
struct LedgerModelTests {
    enum Step: Equatable {
        case enter(Ledger<Int>.Desk, limit: Double? = nil)
        /// `write`: shares the transaction of the one before.
        case share(limit: Double? = nil)
        case alone(limit: Double? = nil)
        /// The end of the block that was entered last.
        case leave
        case drain, dismiss, forget
        /// Of whoever is alone: closes the other connections, and gives them back to be opened again.
        case setAside, giveBack
        /// Like `enter`, for a snapshot.
        case enterForSnapshot
        /// Nobody reads the snapshot that was entered last, until ``leave`` closes it.
        case keep
    }

    fileprivate struct Caller {
        let steps: [Step]
        let isTask: Bool
        var next = 0
        var held: [Ledger<Int>.Place] = []
        var aside: [Ledger<Int>.Place] = []
        var ticket: Ledger<Int>.Ticket?
        /// Its block has ended, and it waits for the transaction.
        var isSharing = false
        var mayBeCancelled: Bool
        var refusals: [String] = []

        var hasEnded: Bool { next == steps.count && ticket == nil && !isSharing }
    }

    fileprivate struct Model {
        var ledger: Ledger<Int>
        var callers: [Caller]
        var now: UInt64 = 0
        var isAlone: Int?

        var key: String {
            let states = callers.map {
                "\($0.next) \($0.held) \($0.aside) \($0.ticket != nil) \($0.isSharing) \($0.mayBeCancelled)"
            }
            return "\(states) \(ledger) \(isAlone ?? -1)"
        }
    }

    private enum Violation: Error { case found(String) }

    private final class Search {
        var seen: Set<String> = []
        var ends = 0
        var refusals: Set<String> = []
        /// The steps of the present path, for messages.
        var path: [String] = []
    }

    private func thread(_ caller: Int, _ model: Model) -> UInt { UInt(caller + 1) }

    // MARK: Steps

    private func granted(_ caller: Int, _ place: Ledger<Int>.Place, _ model: inout Model) throws {
        guard model.callers[caller].ticket != nil || model.callers[caller].next > 0 else {
            throw Violation.found("told")
        }
        for (other, state) in model.callers.enumerated() where state.held.contains(place) {
            throw Violation.found("\(caller) and \(other) both have \(place)")
        }
        model.callers[caller].ticket = nil
        model.callers[caller].held.append(place)
        if model.callers[caller].isTask { model.ledger.begin(place, thread: thread(caller, model)) }
        if case .alone = model.callers[caller].steps[model.callers[caller].next - 1] { model.isAlone = caller }
    }

    private func refused(_ caller: Int, _ why: String, _ search: Search, _ model: inout Model) {
        search.refusals.insert(why)
        model.callers[caller].ticket = nil
        model.callers[caller].refusals.append(why)
        // The call throws: its block is not run.
        var depth = 1
        while depth > 0 {
            switch model.callers[caller].steps[model.callers[caller].next] {
            case .enter, .enterForSnapshot, .share, .alone: depth += 1
            case .leave: depth -= 1
            default: break
            }
            model.callers[caller].next += 1
        }
    }

    private func take(_ grants: [Ledger<Int>.Grant], _ model: inout Model) throws {
        for grant in grants {
            guard model.callers[grant.caller].ticket != nil else {
                throw Violation.found("\(grant.caller) is told twice")
            }
            try granted(grant.caller, grant.place, &model)
        }
    }

    private func advance(_ caller: Int, _ search: Search, _ model: inout Model) throws {
        let step = model.callers[caller].steps[model.callers[caller].next]
        model.callers[caller].next += 1
        let isInside = !model.callers[caller].held.isEmpty
        let thread = model.callers[caller].isTask && !isInside ? 0 : thread(caller, model)
        let answer: Ledger<Int>.Answer
        switch step {
        case .enter(let desk, let limit):
            let request = Ledger<Int>.Request(desk: desk, call: "enter", thread: thread, limit: limit)
            answer = model.ledger.request(request, now: model.now) { caller }
        case .enterForSnapshot:
            let request = Ledger<Int>.Request(desk: .lent, call: "snapshot", thread: thread, isForSnapshot: true)
            answer = model.ledger.request(request, now: model.now) { caller }
        case .share(let limit):
            var request = Ledger<Int>.Request(desk: .writer, call: "write", thread: thread, limit: limit)
            request.isShareable = true
            answer = model.ledger.request(request, now: model.now) { caller }
        case .alone(let limit):
            let request = Ledger<Int>.Request(desk: .writer, call: "barrier", thread: thread, limit: limit)
            answer = model.ledger.requestBarrier(request, now: model.now) { caller }
        case .leave: return try leave(caller, &model)
        case .drain: return model.ledger.drain()
        case .keep: return model.ledger.keep(model.callers[caller].held.last!)
        case .dismiss:
            for waiting in model.ledger.dismiss() { refused(waiting, "sent away", search, &model) }
            return
        case .forget:
            for place in model.ledger.forget([.writer, .readers, .lent], thread: thread) {
                try release(place, .nothing, &model)
            }
            return
        case .setAside:
            model.callers[caller].aside = model.ledger.setAside([.readers, .lent], thread: thread)
            return
        case .giveBack:
            let aside = model.callers[caller].aside
            model.callers[caller].aside = []
            for place in aside { try release(place, .reopens, &model) }
            return
        }
        switch answer {
        case .granted(let place): try granted(caller, place, &model)
        case .waits(let ticket): model.callers[caller].ticket = ticket
        case .refused(let error): refused(caller, "\(error.reason)", search, &model)
        }
    }

    private func leave(_ caller: Int, _ model: inout Model) throws {
        let place = model.callers[caller].held.removeLast()
        let mayPassOn = place.desk == .writer && model.isAlone == nil
        // As in the writer's loop: the transaction goes on with the next who shares it.
        if mayPassOn, model.sharesNow(caller), let next = model.ledger.passOn(place) {
            model.callers[caller].isSharing = true
            guard model.callers[next].ticket != nil else { throw Violation.found("\(next) is told twice") }
            return try granted(next, place, &model)
        }
        let wasAlone = model.isAlone == caller
        if wasAlone { model.isAlone = nil }
        try release(place, .open, &model)
        if wasAlone {
            for place in model.ledger.takeForgotten(thread: thread(caller, model)) {
                try release(place, .nothing, &model)
            }
        }
        if place.desk == .writer {
            for index in model.callers.indices { model.callers[index].isSharing = false }
        }
    }

    private func release(_ place: Ledger<Int>.Place, _ content: Ledger<Int>.Content, _ model: inout Model) throws {
        switch model.ledger.release(place, content, now: model.now) {
        case .done(let grants): try take(grants, &model)
        case .closesFirst:
            guard content != .nothing else { throw Violation.found("closed twice") }
            try release(place, .nothing, &model)
        }
    }

    // MARK: Search

    private func check(_ model: Model) throws {
        for (caller, state) in model.callers.enumerated() {
            if let alone = model.isAlone, alone != caller, !state.held.isEmpty {
                throw Violation.found("\(caller) has something beside the barrier of \(alone)")
            }
        }
        for desk in Ledger<Int>.Desk.allCases {
            let held = model.callers.flatMap { $0.held + $0.aside }.count { $0.desk == desk }
            guard held == model.ledger.heldCount(desk) else { throw Violation.found("\(desk): \(held) held") }
        }
    }

    private func explore(_ model: Model, _ search: Search) throws {
        try check(model)
        guard search.seen.insert(model.key).inserted else { return }
        var canGoOn = false
        func tries(_ name: String, _ change: (inout Model) throws -> Void) throws {
            canGoOn = true
            var next = model
            search.path.append(name)
            try change(&next)
            try explore(next, search)
            search.path.removeLast()
        }
        for (index, caller) in model.callers.enumerated() where !caller.hasEnded && !caller.isSharing {
            if let ticket = caller.ticket {
                guard caller.mayBeCancelled else { continue }
                // Whoever can only be cancelled has no way on.
                let could = canGoOn
                try tries("cancel \(index)") { model in
                    model.callers[index].mayBeCancelled = false
                    guard let withdrawn = model.ledger.withdraw(ticket, now: model.now) else {
                        throw Violation.found("\(index) waits, and is in no line")
                    }
                    refused(withdrawn.caller, "cancelled", search, &model)
                    try take(withdrawn.grants, &model)
                }
                canGoOn = could
            } else {
                try tries("\(index): \(caller.steps[caller.next])") { try advance(index, search, &$0) }
            }
        }
        if model.ledger.nextDeadline < .max {
            try tries("time") { model in
                model.now = max(model.now, model.ledger.nextDeadline)
                let (expired, grants) = model.ledger.expire(now: model.now)
                for (caller, error) in expired { refused(caller, "\(error.reason)", search, &model) }
                try take(grants, &model)
            }
        }
        guard !canGoOn else { return }
        guard model.callers.allSatisfy(\.hasEnded) else { throw Violation.found("no way on") }
        guard model.ledger.isIdle else { throw Violation.found("all have ended, and it is not idle") }
        var ledger = model.ledger
        guard ledger.takeForgotten(thread: 1).isEmpty else { throw Violation.found("what was released is open still") }
        search.ends += 1
    }

    /// - Returns: how many states there are, and why calls were refused.
    @discardableResult
    private func explore(
        readers: Int = 1,
        lent: UInt = 1,
        cancels: Bool = true,
        _ programs: [[Step]],
        tasks: Set<Int> = []
    ) throws -> (states: Int, refusals: Set<String>) {
        var ledger = Ledger<Int>(readers: readers, lends: true)
        #expect(ledger.setMaximumLent(lent, now: 0).isEmpty)
        let callers = programs.enumerated().map { index, steps in
            Caller(steps: steps, isTask: tasks.contains(index), mayBeCancelled: cancels)
        }
        let search = Search()
        do {
            try explore(Model(ledger: ledger, callers: callers), search)
        } catch Violation.found(let what) {
            Issue.record("\(what), after \(search.path)")
        }
        #expect(search.ends > 0)
        return (search.seen.count, search.refusals)
    }

    // MARK: Programs

    @Test func writersThatShare() throws {
        let found = try explore(
            [[.share(), .leave], [.share(limit: 1), .leave, .share(), .leave], [.share(limit: 2), .leave]],
            tasks: [1]
        )
        #expect(found.states > 100 && found.refusals.isSuperset(of: ["cancelled", "busy"]))
    }

    /// Nested in both ways, with one connection of each kind.
    @Test func circlesAreRefused() throws {
        for (first, second): (Ledger<Int>.Desk, Ledger<Int>.Desk) in [(.readers, .lent), (.writer, .lent)] {
            let found = try explore(
                cancels: false,
                [
                    [.enter(first), .enter(second), .leave, .leave], [.enter(second), .enter(first), .leave, .leave],
                    [.enter(first), .leave],
                ]
            )
            #expect(found.refusals == ["misuse"])
        }
        let three = try explore(
            cancels: false,
            [
                [.enter(.writer), .enter(.readers), .leave, .leave], [.enter(.readers), .enter(.lent), .leave, .leave],
                [.enter(.lent), .enter(.writer), .leave, .leave],
            ]
        )
        #expect(three.refusals == ["misuse"])
    }

    /// A thread that holds a connection waits for the transaction that its block shared; a later block of that wants the
    /// connection.
    @Test func aWaitForASharedTransactionCountsToo() throws {
        let found = try explore(
            cancels: false,
            [
                [.enter(.lent), .share(), .leave, .leave], [.share(), .enter(.lent), .leave, .leave],
                [.share(), .leave],
            ]
        )
        #expect(found.refusals == ["misuse"])
    }

    @Test func aBarrierAmongOthers() throws {
        let found = try explore(
            readers: 2,
            [
                [.alone(limit: 3), .leave], [.enter(.readers), .leave, .enter(.readers), .leave],
                [.share(), .enter(.readers), .leave, .leave],
            ],
            tasks: [0]
        )
        #expect(found.states > 200 && found.refusals.contains("cancelled"))
        try explore(
            [
                [.alone(), .leave], [.enter(.lent), .share(), .leave, .leave],
                [.enter(.lent), .enter(.readers), .leave, .leave],
            ]
        )
    }

    @Test func twoBarriers() throws {
        try explore(
            [[.alone(), .leave], [.alone(limit: 1), .leave], [.enter(.readers), .leave], [.share(), .leave]],
            tasks: [1, 2]
        )
    }

    @Test func shuttingDown() throws {
        let found = try explore(
            [
                [.share(), .enter(.readers), .leave, .leave], [.share(), .leave], [.alone(), .leave],
                [.drain, .dismiss],
            ]
        )
        #expect(found.refusals.isSuperset(of: ["shut down", "sent away"]))
    }

    @Test func forgetting() throws {
        try explore([[.enter(.lent), .leave], [.enter(.readers), .leave], [.share(), .leave], [.forget, .forget]])
    }

    /// Nobody waits for a snapshot, but barriers.
    @Test func snapshotsAtTheLimit() throws {
        let found = try explore([
            [.enterForSnapshot, .keep, .enterForSnapshot, .keep, .enter(.lent), .leave, .leave, .leave],
            [.enter(.lent), .enter(.readers), .leave, .leave], [.share(), .enter(.lent), .leave, .leave],
        ])
        #expect(found.refusals.isSubset(of: ["cancelled"]), "\(found.refusals)")
        try explore([
            [.enterForSnapshot, .keep, .leave], [.alone(limit: 2), .leave], [.enter(.lent), .leave], [.forget],
        ])
        // Within a lent connection, and beside others that wait for one.
        try explore([
            [.enter(.lent), .enterForSnapshot, .keep, .leave, .leave], [.enter(.lent), .leave],
            [.enter(.lent), .leave],
            [.alone(limit: 2), .leave],
        ])
    }

    @Test func closingForReopening() throws {
        try explore(
            [
                [.enter(.lent), .leave, .enter(.lent), .leave], [.alone(limit: 2), .setAside, .giveBack, .leave],
                [.enter(.readers), .leave], [.forget],
            ]
        )
        let ended = try explore([
            [.enter(.lent), .leave], [.alone(), .setAside, .giveBack, .leave], [.drain, .dismiss],
        ])
        #expect(ended.refusals.contains("sent away"))
    }

    // MARK: Single states

    private func granted(_ answer: Ledger<Int>.Answer) throws -> Ledger<Int>.Place {
        guard case .granted(let place) = answer else { throw Violation.found("\(answer)") }
        return place
    }

    private func reading(_ thread: UInt) -> Ledger<Int>.Request { .init(desk: .readers, call: "read", thread: thread) }

    /// Nobody is kept out for a barrier before those are gone who were there when its turn came.
    @Test(arguments: [true, false]) func aBarrierBehindOneThatGaveUp(isCancelled: Bool) throws {
        var ledger = Ledger<Int>(readers: 2, lends: false)
        let places = try (1...2).map { try granted(ledger.request(reading($0), now: 0) { 0 }) }
        var tickets: [Ledger<Int>.Ticket] = []
        for (caller, limit) in [(3, 1), (4, nil)] as [(Int, Double?)] {
            let request = Ledger<Int>.Request(desk: .writer, call: "alone", thread: UInt(caller), limit: limit)
            guard case .waits(let ticket) = ledger.requestBarrier(request, now: 0, caller: { caller }) else {
                throw Violation.found("it does not wait")
            }
            tickets.append(ticket)
        }
        if isCancelled {
            #expect(ledger.withdraw(tickets[0], now: 1)?.caller == 3)
        } else {
            #expect(ledger.expire(now: ledger.nextDeadline).expired.map(\.caller) == [3])
        }
        guard case .done(let none) = ledger.release(places[0], .open, now: 2) else { throw Violation.found("closed") }
        #expect(none.isEmpty)
        // One of the two is still there.
        let late = try granted(ledger.request(reading(5), now: 3) { 5 })
        guard case .done = ledger.release(places[1], .open, now: 4) else { throw Violation.found("closed") }
        // Now the barrier waits for those that came since, and lets in no more.
        guard case .waits = ledger.request(reading(6), now: 5, caller: { 6 }) else { throw Violation.found("let in") }
        guard case .done(let grants) = ledger.release(late, .open, now: 6) else { throw Violation.found("closed") }
        #expect(grants.map(\.caller) == [4])
    }

    /// Two threads may shut down at once, and the slower one changes nothing.
    @Test func noCallAfterTheEnd() throws {
        var ledger = Ledger<Int>(readers: 1, lends: true)
        _ = try granted(ledger.request(reading(1), now: 0) { 1 })
        func refusal() -> DatabaseError? {
            let request = Ledger<Int>.Request(desk: .lent, call: "lend", thread: 1)
            guard case .refused(let error) = ledger.request(request, now: 0, caller: { 1 }) else { return nil }
            return error
        }
        ledger.drain()
        // Whoever is inside may finish.
        #expect(refusal() == nil)
        #expect(ledger.dismiss().isEmpty)
        #expect(refusal() == .shutDown)
        ledger.drain()
        #expect(refusal() == .shutDown)
    }
}

extension LedgerModelTests.Model {
    /// Whether the block that this caller ends was one of `write`.
    fileprivate func sharesNow(_ caller: Int) -> Bool {
        var depth = 0
        for step in callers[caller].steps[..<(callers[caller].next - 1)].reversed() {
            switch step {
            case .leave: depth += 1
            case .enter, .alone:
                if depth == 0 { return false }
                depth -= 1
            case .share:
                if depth == 0 { return true }
                depth -= 1
            default: break
            }
        }
        return false
    }
}
