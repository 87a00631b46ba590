/// The books of a queue or pool. They record which call may use which connection, which calls wait, and in which order
/// they go on.
///
/// A ledger is a value without locks, threads and a clock, so that tests can examine all its states. ``Reception``
/// guards it with the only lock, and carries out the ledger's answers after releasing that lock.
///
/// Each connection belongs to a place. A place has one holder, from the moment it is granted to its
/// ``release(_:_:now:)``, and only the holder may use the connection. In a shared transaction, ``passOn(_:)`` hands the
/// place from one call to the next.
///
/// | state of a call | cancelled | its time is over |
/// |---|---|---|
/// | waits in a line | ``withdraw(_:now:)``: leaves at once; its block is never called | ``expire(now:)``: the same |
/// | has a place | its statement is stopped, only its work is undone, the place is given back | has no effect |
/// | has passed its place on, or commits | comes too late | – |
/// | is told the outcome | its turn has ended before: it no longer uses the connection | – |
///
/// A call that waits is told once: when it is granted a place, passed on to, expired, dismissed or withdrawn. Until
/// then it waits.
struct Ledger<Caller> {
    enum Desk: Int, CaseIterable, Sendable {
        case writer, readers, lent
    }

    /// A permission to use one connection. The number tells the connections of a desk apart.
    struct Place: Hashable, Sendable {
        let desk: Desk
        let number: Int
    }

    struct Request: Sendable {
        let desk: Desk
        /// The name of the method, for messages.
        var call: StaticString
        /// The calling thread, which may already hold places; 0 for a task, which holds none while it waits.
        var thread: UInt = 0
        var isShareable = false
        /// Whether the limit does not count the lent connection.
        var isForSnapshot = false
        var priority = TaskPriority.medium
        /// How many seconds the call may wait; `nil` for no limit.
        var limit: Double?
    }

    /// Identifies a call that waits.
    struct Ticket: Hashable, Sendable {
        fileprivate let desk: Desk?
        fileprivate var line = WaitingLine<Entry>.Ticket.none
        fileprivate var barrier = 0
    }

    enum Answer {
        case granted(Place)
        case waits(Ticket)
        case refused(DatabaseError)
    }

    typealias Grant = (caller: Caller, place: Place)

    struct Entry {
        let request: Request
        let deadline: UInt64
        let caller: Caller
    }

    private struct Slot {
        enum State { case absent, free, held }

        var state = State.absent
        /// The thread that uses the place; 0 for a task that has not begun, and for a snapshot that nobody reads.
        var thread: UInt = 0
        var call: StaticString = ""
        var isOpen = false
        /// Whether the connection must be closed when the place is given back. A forgotten lent connection is no longer
        /// counted.
        var isForgotten = false
        var isSnapshot = false
    }

    private struct Places {
        var slots: [Slot] = []
        /// The numbers of the free places. The last one is granted first. It was used last, so its page cache is warm.
        var free: [Int] = []
        var line = WaitingLine<Entry>()
        var heldCount = 0
    }

    private enum Phase: Equatable {
        /// Waits until these places, which were held when the phase began, have been given back. Keeps nobody out.
        case settling(Set<Place>)
        /// Keeps out calls that hold no place yet, until this time at most.
        case closing(until: UInt64)
        case held
    }

    private struct Barrier {
        let number: Int
        let entry: Entry
        var phase = Phase.settling([])
        var patience: UInt64
    }

    private enum End { case draining, ended }

    private var desks: [Places] = Desk.allCases.map { _ in Places() }
    private var barriers: [Barrier] = []
    private var lastBarrier = 0
    /// Threads that hold a place for reading or a lent one, and wait for the end of the transaction that their ended
    /// block shares.
    private var sharing: [UInt] = []
    private var end: End?
    private let lendsAny: Bool
    /// How many connections may be lent; 0 for no limit.
    private(set) var maximumLent: UInt = 0
    /// The earliest time at which ``expire(now:)`` may have something to do.
    private(set) var nextDeadline = UInt64.max

    /// How long a barrier keeps others out the first time, in nanoseconds. Each time that this was too short, it
    /// doubles.
    static var firstPatience: UInt64 { 200_000_000 }

    private subscript(_ desk: Desk) -> Places {
        _read { yield desks[desk.rawValue] }
        _modify { yield &desks[desk.rawValue] }
    }

    private subscript(_ place: Place) -> Slot {
        _read { yield desks[place.desk.rawValue].slots[place.number] }
        _modify { yield &desks[place.desk.rawValue].slots[place.number] }
    }

    init(readers: Int, lends: Bool) {
        lendsAny = lends
        for (desk, count) in [(Desk.writer, 1), (.readers, readers)] {
            self[desk].slots = Array(repeating: Slot(state: .free), count: count)
            self[desk].free = Array((0..<count).reversed())
        }
    }

    // MARK: Coming

    /// Grants a place, or gives a ticket for the line, or refuses the request with an error.
    /// - Parameter caller: called only if the request has to wait.
    mutating func request(_ request: Request, now: UInt64, caller: () -> Caller) -> Answer {
        if let refusal = refusal(of: request) { return .refused(refusal) }
        let desk = request.desk
        let mayEnter = mayPass(request)
        // A snapshot takes no room from those that wait.
        let isNext = self[desk].line.isEmpty || (isShut(desk) && mayEnter) || request.isForSnapshot
        if isNext, mayEnter, let place = take(desk, for: request) { return .granted(place) }
        if let circle = circle(closedBy: request) { return .refused(circle) }
        guard let deadline = deadline(request, now) else { return .refused(.waitedTooLong(request)) }
        let entry = Entry(request: request, deadline: deadline, caller: caller())
        let line = self[desk].line.append(entry, priority: request.priority)
        return .waits(Ticket(desk: desk, line: line))
    }

    /// Like ``request(_:now:caller:)``, but grants the writer's place only while no other place is held.
    mutating func requestBarrier(_ request: Request, now: UInt64, caller: () -> Caller) -> Answer {
        if holdsSomething(request.thread) { return .refused(.nestedCall) }
        if let refusal = refusal(of: request) { return .refused(refusal) }
        if isIdle {
            lastBarrier += 1
            let entry = Entry(request: request, deadline: .max, caller: caller())
            barriers = [Barrier(number: lastBarrier, entry: entry, phase: .held, patience: 0)]
            return .granted(take(.writer, for: request)!)
        }
        guard let deadline = deadline(request, now) else { return .refused(.waitedTooLong(request)) }
        lastBarrier += 1
        let entry = Entry(request: request, deadline: deadline, caller: caller())
        barriers.append(Barrier(number: lastBarrier, entry: entry, patience: Ledger.firstPatience))
        if barriers.count == 1 { settle(now) }
        return .waits(Ticket(desk: nil, barrier: lastBarrier))
    }

    /// Records the thread that uses the place from now on; 0 for a snapshot that nobody reads now.
    mutating func begin(_ place: Place, thread: UInt) {
        self[place].thread = thread
    }

    /// The holder of a lent connection keeps it for a snapshot. The limit does not count it, because only the owner of the
    /// snapshot can give it back, and may be the one that waits for a connection.
    mutating func keep(_ place: Place) {
        self[place].thread = 0
    }

    private func refusal(of request: Request) -> DatabaseError? {
        let thread = request.thread
        let isInside = holdsSomething(thread)
        if end == .ended || (end == .draining && !isInside) { return .shutDown }
        guard isInside else { return nil }
        if hasBarrier, barriers[0].phase == .held { return .nestedCall }
        switch request.desk {
        case .writer: return holds(.writer, thread) || holds(.readers, thread) ? .nestedCall : nil
        case .readers: return holds(.readers, thread) ? .nestedCall : nil
        case .lent: return nil
        }
    }

    private mutating func deadline(_ request: Request, _ now: UInt64) -> UInt64? {
        guard let limit = request.limit else { return .max }
        guard limit > 0 else { return nil }
        let deadline = now &+ UInt64(min(limit, 1e9) * 1e9)
        nextDeadline = min(nextDeadline, deadline)
        return deadline
    }

    // MARK: Doors

    private var hasBarrier: Bool { !barriers.isEmpty }

    /// Whether a barrier shuts this desk. While the barrier closes, only threads that already hold a place may enter,
    /// because the barrier waits for them. While the barrier is held, nobody may enter.
    private func isShut(_ desk: Desk) -> Bool {
        guard let barrier = barriers.first else { return false }
        switch barrier.phase {
        case .settling: return false
        case .closing: return desk != .writer || isQuiet
        case .held: return true
        }
    }

    private func mayPass(_ request: Request) -> Bool {
        guard isShut(request.desk) else { return true }
        return barriers[0].phase != .held && holdsSomething(request.thread)
    }

    /// Whether all readers and lent connections have been given back.
    private var isQuiet: Bool { self[.readers].heldCount + self[.lent].heldCount == 0 }

    private func hasRoom(_ desk: Desk) -> Bool {
        let hasFree = !self[desk].free.isEmpty
        guard desk == .lent else { return hasFree }
        // The limit may have been lowered below the number of free places.
        guard lendsAny, maximumLent == 0 || limitedCount < maximumLent else { return false }
        return hasFree || maximumLent == 0 || limitedCount + freeCount(.lent) < maximumLent
    }

    private func hasRoom(for request: Request) -> Bool { request.isForSnapshot ? lendsAny : hasRoom(request.desk) }

    private mutating func take(_ desk: Desk, for request: Request) -> Place? {
        guard request.desk == desk ? hasRoom(for: request) : hasRoom(desk) else { return nil }
        let known = self[desk].free.popLast() ?? self[desk].slots.firstIndex { $0.state == .absent }
        if known == nil { self[desk].slots.append(Slot()) }
        let place = Place(desk: desk, number: known ?? self[desk].slots.count - 1)
        let (isOpen, isForgotten) = (self[place].isOpen, self[place].isForgotten)
        self[place] = Slot(
            state: .held,
            thread: request.thread,
            call: request.call,
            isOpen: isOpen,
            isForgotten: isForgotten,
            isSnapshot: request.isForSnapshot
        )
        self[desk].heldCount += 1
        return place
    }

    // MARK: Going

    /// What is in a place when it is given back.
    enum Content {
        case open
        /// A closed connection that will be opened again with the same settings.
        case reopens
        case nothing
    }

    enum Release {
        /// The place is free, and these calls have a place now.
        case done([Grant])
        /// The caller must close the connection first, and then release the place again.
        case closesFirst
    }

    /// Gives a place back.
    mutating func release(_ place: Place, _ content: Content, now: UInt64) -> Release {
        let wasForgotten = self[place].isForgotten
        let keptCount = limitedCount + freeCount(.lent) + (self[place].isSnapshot ? 1 : 0)
        let isSurplus = place.desk == .lent && !wasForgotten && maximumLent > 0 && keptCount > maximumLent
        if content != .nothing, wasForgotten || isSurplus {
            self[place].isForgotten = true
            return .closesFirst
        }
        let isKept = place.desk != .lent || content != .nothing
        self[place] = Slot(state: isKept ? .free : .absent, isOpen: content == .open)
        self[place.desk].heldCount -= 1
        if isKept { self[place.desk].free.insert(place.number, at: content == .open ? self[place.desk].free.count : 0) }
        if place.desk == .writer {
            sharing = []
            if let barrier = barriers.first, barrier.phase == .held {
                barriers.removeFirst()
                settle(now)
            }
        }
        return .done(proceed(freed: place, now))
    }

    /// Gives the writer's place to the first call in line, if that call may share the open transaction.
    mutating func passOn(_ place: Place) -> Caller? {
        guard !isShut(place.desk), let first = self[place.desk].line.first, first.request.isShareable,
            let next = self[place.desk].line.popFirst()
        else { return nil }
        let former = self[place].thread
        if holds(.readers, former) || holds(.lent, former) { sharing.append(former) }
        self[place].thread = next.request.thread
        self[place].call = next.request.call
        return next.caller
    }

    /// Grants places to all calls that can go on now.
    private mutating func proceed(freed: Place? = nil, _ now: UInt64) -> [Grant] {
        if let freed, let barrier = barriers.first, case .settling(var places) = barrier.phase {
            places.remove(freed)
            barriers[0].phase = .settling(places)
            if places.isEmpty { close(now) }
        }
        var grants: [Grant] = []
        if let barrier = barriers.first, case .closing = barrier.phase, isQuiet,
            let place = take(.writer, for: barrier.entry.request)
        {
            barriers[0].phase = .held
            grants.append((barrier.entry.caller, place))
        }
        serve(.writer, &grants)
        serve(.readers, &grants)
        serve(.lent, &grants)
        return grants
    }

    private mutating func serve(_ desk: Desk, _ grants: inout [Grant]) {
        while !self[desk].line.isEmpty {
            let isFull = !hasRoom(desk)
            guard !isFull || desk == .lent else { return }
            let entry: Entry?
            if isShut(desk) || isFull {
                let line = self[desk].line
                let canGoOn = { (entry: Entry) in self.mayPass(entry.request) && self.hasRoom(for: entry.request) }
                guard let index = line.firstTicket(where: canGoOn) else { return }
                entry = self[desk].line.remove(index)
            } else {
                entry = self[desk].line.popFirst()
            }
            guard let entry, let place = take(desk, for: entry.request) else { return }
            grants.append((entry.caller, place))
        }
    }

    // MARK: Leaving the line

    /// Removes a call that waits. Returns `nil` if the call no longer waits.
    mutating func withdraw(_ ticket: Ticket, now: UInt64) -> (caller: Caller, grants: [Grant])? {
        guard let desk = ticket.desk else {
            guard let index = barriers.firstIndex(where: { $0.number == ticket.barrier && $0.phase != .held }) else {
                return nil
            }
            let barrier = barriers.remove(at: index)
            if index == 0 { settle(now) }
            return (barrier.entry.caller, proceed(now))
        }
        guard let entry = self[desk].line.remove(ticket.line) else { return nil }
        return (entry.caller, [])
    }

    /// Raises the priority of a call that waits, and returns its new ticket. Returns `nil` if the call keeps its
    /// ticket.
    mutating func raise(_ ticket: Ticket, to priority: TaskPriority) -> Ticket? {
        guard let desk = ticket.desk, let line = self[desk].line.move(ticket.line, to: priority) else {
            return nil
        }
        return Ticket(desk: desk, line: line)
    }

    /// Removes the calls whose time is over. If a barrier has kept others out for too long, lets them in again.
    mutating func expire(now: UInt64) -> (expired: [(caller: Caller, error: DatabaseError)], grants: [Grant]) {
        var expired: [(Caller, DatabaseError)] = []
        for desk in Desk.allCases {
            for entry in self[desk].line.removeAll(where: { $0.deadline <= now }) {
                expired.append((entry.caller, .waitedTooLong(entry.request)))
            }
        }
        let first = barriers.first?.number
        barriers.removeAll { barrier in
            guard barrier.phase != .held, barrier.entry.deadline <= now else { return false }
            expired.append((barrier.entry.caller, .waitedTooLong(barrier.entry.request)))
            return true
        }
        if barriers.first?.number != first { settle(now) }
        if let barrier = barriers.first, case .closing(let until) = barrier.phase, until <= now {
            barriers[0].patience = min(2 * barrier.patience, 1 << 40)
            settle(now)
        }
        let grants = proceed(now)
        nextDeadline = desks.map { $0.line.least(of: \.deadline) ?? .max }.min() ?? .max
        for barrier in barriers where barrier.phase != .held {
            nextDeadline = min(nextDeadline, barrier.entry.deadline)
            if case .closing(let until) = barrier.phase { nextDeadline = min(nextDeadline, until) }
        }
        return (expired, grants)
    }

    // MARK: Barriers

    /// Makes the first barrier wait for the places that are held now.
    private mutating func settle(_ now: UInt64) {
        guard hasBarrier else { return }
        var held: Set<Place> = []
        for desk in Desk.allCases {
            for (number, slot) in self[desk].slots.enumerated() where slot.state == .held {
                held.insert(Place(desk: desk, number: number))
            }
        }
        barriers[0].phase = .settling(held)
        if held.isEmpty { close(now) }
    }

    private mutating func close(_ now: UInt64) {
        let until = now &+ barriers[0].patience
        barriers[0].phase = .closing(until: until)
        nextDeadline = min(nextDeadline, until)
    }

    // MARK: Ending

    /// From now on, refuses calls from threads that hold no place, and from tasks.
    mutating func drain() { if end == nil { end = .draining } }

    /// From now on, refuses all calls. Returns the calls that were waiting.
    mutating func dismiss() -> [Caller] {
        end = .ended
        let waiting = desks.indices.flatMap { desks[$0].line.removeAll() }
        let waitingForAll = barriers.filter { $0.phase != .held }
        barriers.removeAll { $0.phase != .held }
        return waiting.map(\.caller) + waitingForAll.map(\.entry.caller)
    }

    /// Takes all free places, so that their connections can be closed. Connections of other places must be closed when
    /// these are given back. Those that are free beside a barrier must be closed when it has ended: see
    /// ``takeForgotten(thread:)``.
    mutating func forget(_ forgotten: [Desk], thread: UInt) -> [Place] {
        for desk in forgotten {
            for number in self[desk].slots.indices where self[desk].slots[number].state != .absent {
                self[desk].slots[number].isForgotten = true
            }
        }
        return takeFree(forgotten, thread: thread) { _ in true }
    }

    /// Takes all free places, whose connections are closed for now, and opened again when they are needed.
    mutating func setAside(_ desks: [Desk], thread: UInt) -> [Place] {
        takeFree(desks, thread: thread) { _ in true }
    }

    /// Takes the places that were forgotten while somebody else had a barrier, so that their connections can be closed.
    mutating func takeForgotten(thread: UInt) -> [Place] {
        takeFree(Desk.allCases, thread: thread) { $0.isForgotten }
    }

    /// Takes nothing while somebody else has a barrier, who relies on what is free.
    private mutating func takeFree(_ desks: [Desk], thread: UInt, _ isWanted: (Slot) -> Bool) -> [Place] {
        if hasBarrier, barriers[0].phase == .held, !holds(.writer, thread) { return [] }
        var taken: [Place] = []
        for desk in desks {
            for number in self[desk].free where isWanted(self[desk].slots[number]) {
                let place = Place(desk: desk, number: number)
                let isForgotten = self[place].isForgotten
                self[place] = Slot(state: .held, thread: thread, call: "close", isForgotten: isForgotten)
                self[desk].heldCount += 1
                taken.append(place)
            }
            let slots = self[desk].slots
            self[desk].free.removeAll { slots[$0].state == .held }
        }
        return taken
    }

    /// Takes the writer's place, if nobody holds it or waits for it.
    mutating func takeWriterIfFree(call: StaticString, thread: UInt) -> Place? {
        guard !isShut(.writer), !holds(.writer, thread), self[.writer].line.isEmpty else { return nil }
        return take(.writer, for: Request(desk: .writer, call: call, thread: thread))
    }

    mutating func setMaximumLent(_ maximum: UInt, now: UInt64) -> [Grant] {
        maximumLent = maximum
        return proceed(now)
    }

    // MARK: Circles

    /// Returns an error if the request, which has to wait, could only wait for itself.
    ///
    /// A desk flows if it has room, or if one of its holders can go on. A holder can go on if it does not wait, or if
    /// it waits at a desk that flows. If the desk of the request does not flow, none of its holders will ever give back
    /// a place. A snapshot that nobody reads does not count as a holder that can go on.
    private func circle(closedBy request: Request) -> DatabaseError? {
        guard request.thread != 0, holdsSomething(request.thread) else { return nil }
        var waiting: [UInt: Desk] = [request.thread: request.desk]
        for desk in Desk.allCases {
            for entry in self[desk].line.all where entry.request.thread != 0 {
                waiting[entry.request.thread] = desk
            }
        }
        for thread in sharing { waiting[thread] = .writer }
        var flowing: Set<Desk> = []
        var grows = true
        while grows {
            grows = false
            for desk in Desk.allCases where !flowing.contains(desk) {
                let flows =
                    hasRoom(desk)
                    || self[desk].slots.contains { slot in
                        guard slot.state == .held else { return false }
                        if slot.isSnapshot { return false }
                        guard slot.thread != 0, let other = waiting[slot.thread] else { return true }
                        return flowing.contains(other)
                    }
                guard flows else { continue }
                flowing.insert(desk)
                grows = true
            }
        }
        guard !flowing.contains(request.desk) else { return nil }
        // Nothing is known of a snapshot that nobody reads.
        let holders = self[request.desk].slots.filter { $0.state == .held && waiting[$0.thread] != nil }
        let other = holders.first { $0.thread != request.thread } ?? holders.first
        return .circle(request, other: other.map { ($0.call, waiting[$0.thread]!.name) })
    }

    private func holds(_ desk: Desk, _ thread: UInt) -> Bool {
        guard thread != 0, self[desk].heldCount > 0 else { return false }
        return self[desk].slots.contains { $0.state == .held && $0.thread == thread }
    }

    /// Whether the thread has a place.
    func holdsSomething(_ thread: UInt) -> Bool {
        holds(.writer, thread) || holds(.readers, thread) || holds(.lent, thread)
    }

    // MARK: Counts

    func heldCount(_ desk: Desk) -> Int { self[desk].heldCount }
    func waitingCount(_ desk: Desk) -> Int { self[desk].line.count }

    /// The number of connections that blocks use, without lent ones that were forgotten.
    var busyCount: UInt { UInt(heldCount(.writer) + heldCount(.readers)) + lentCount }

    /// The number of connections that blocks use, and of open ones that nobody uses.
    var connectionCount: UInt {
        let idle = self[.lent].slots.count { $0.state == .free && $0.isOpen }
        return UInt(openCount(.writer) + openCount(.readers) + idle) + lentCount
    }

    /// The number of open connections. Each held place counts, because the ledger does not know whether its connection
    /// is open.
    func openCount(_ desk: Desk) -> Int { self[desk].slots.count { $0.isOpen || $0.state == .held } }

    /// Whether a shutdown refuses all calls.
    var hasEnded: Bool { end == .ended }
    func isRefusing(_ thread: UInt) -> Bool { end != nil && !holdsSomething(thread) }
    /// Whether a barrier waits or is held.
    var isBarred: Bool { hasBarrier }
    /// Whether no place is held, and nobody waits.
    var isIdle: Bool { desks.allSatisfy { $0.heldCount == 0 && $0.line.isEmpty } && barriers.isEmpty }

    /// The number of lent connections, without forgotten ones.
    var lentCount: UInt {
        UInt(self[.lent].slots.count { $0.state == .held && !$0.isForgotten })
    }

    /// The number of lent connections that the limit counts.
    private var limitedCount: UInt {
        UInt(self[.lent].slots.count { $0.state == .held && !$0.isForgotten && !$0.isSnapshot })
    }

    func freeCount(_ desk: Desk) -> UInt { UInt(self[desk].free.count) }
}
