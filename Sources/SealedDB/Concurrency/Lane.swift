import Foundation

/// Hands out a fixed number of places, each of which stands for one connection, to threads and to tasks.
///
/// Whoever finds no free place waits in a ``WaitingLine``: a thread is parked, a task costs no thread. The place is
/// handed on directly, so that nobody jumps the line. Tasks' work runs on one Dispatch queue for each place, which is
/// all the threads that a lane ever takes.
final class Lane: Sendable {
    /// Somebody who wants a place.
    // @unchecked: what changes is written under the lane's lock, or before the wake-up that follows it.
    final class Turn: @unchecked Sendable {
        /// Whether it may follow another one within a shared transaction.
        let isShareable: Bool
        let priority: TaskPriority
        fileprivate let thread: UInt
        fileprivate let start: (@Sendable (_ place: Int) -> Void)?
        fileprivate let refused: (@Sendable (any Error) -> Void)?
        fileprivate let signal: DispatchSemaphore?
        fileprivate let came = Instruments.isOn ? DispatchTime.now().uptimeNanoseconds : 0
        fileprivate var place: Int?
        fileprivate var ticket: WaitingLine<Turn>.Ticket?

        /// A thread, which is parked.
        fileprivate init(isShareable: Bool) {
            self.isShareable = isShareable
            priority = Task.currentPriority
            thread = Lane.currentThread
            start = nil
            refused = nil
            signal = DispatchSemaphore(value: 0)
        }

        /// A task: either `start` is called, on the place's own thread, or `refused`.
        init(
            isShareable: Bool,
            priority: TaskPriority,
            start: @escaping @Sendable (_ place: Int) -> Void,
            refused: @escaping @Sendable (any Error) -> Void
        ) {
            self.isShareable = isShareable
            self.priority = priority
            self.start = start
            self.refused = refused
            thread = 0
            signal = nil
        }
    }

    private struct State {
        /// The one that was used last is lent first: its page cache is warm.
        var free: [Int]
        /// The thread that uses each place; 0 for none.
        var threads: [UInt]
        var line = WaitingLine<Turn>()
        var maximumWait: TimeInterval?
        var refusal: DatabaseError?
        var idleObservers: [@Sendable () -> Void] = []

        var isIdle: Bool { free.count == threads.count && line.isEmpty }
    }

    private let state: Guarded<State>
    private let executors: [DispatchQueue]
    private let name: String
    let instruments: Instruments

    init(places: Int, name: String, instruments: Instruments) {
        self.name = name
        self.instruments = instruments
        state = Guarded(State(free: Array((0..<places).reversed()), threads: Array(repeating: 0, count: places)))
        executors = (0..<places).map { DispatchQueue(label: "SealedDB.\(name).\($0)") }
    }

    static var currentThread: UInt { UInt(pthread_self()) }

    /// Seconds that somebody waits before giving up; `nil` for ever.
    var maximumWait: TimeInterval? {
        get { state.withLock { $0.maximumWait } }
        set { state.withLock { $0.maximumWait = newValue } }
    }

    /// Whether the calling thread has a place.
    var isInside: Bool {
        let thread = Lane.currentThread
        return state.withLock { $0.threads.contains(thread) }
    }

    // MARK: Coming

    /// Waits for a place, on this thread.
    func enter(shareable: Bool = false) throws(DatabaseError) -> Int {
        try enter(shareable: shareable, isRepeated: false)
    }

    private func enter(shareable: Bool, isRepeated: Bool) throws(DatabaseError) -> Int {
        let thread = Lane.currentThread
        var turn: Turn?
        let (outcome, limit) = state.withLock { state -> (Result<Int?, DatabaseError>, TimeInterval?) in
            if !isRepeated, state.threads.contains(thread) { return (.failure(.nestedCall), nil) }
            if let refusal = state.refusal { return (.failure(refusal), nil) }
            if let place = state.free.popLast() {
                state.threads[place] = thread
                return (.success(place), nil)
            }
            let waiting = Turn(isShareable: shareable)
            turn = waiting
            waiting.ticket = state.line.append(waiting, priority: waiting.priority)
            return (.success(nil), state.maximumWait)
        }
        if let place = try outcome.get() { return place }
        return try wait(turn!, limit: limit)
    }

    /// Waits for every place, one after the other in the line. Two threads that did so at once would wait for each other.
    func enterAll() throws(DatabaseError) {
        var entered: [Int] = []
        do throws(DatabaseError) {
            for _ in executors { entered.append(try enter(shareable: false, isRepeated: !entered.isEmpty)) }
        } catch {
            for place in entered { leave(place) }
            throw error
        }
    }

    /// Gives back what ``enterAll()`` took.
    func leaveAll() {
        for place in executors.indices { leave(place) }
    }

    private func wait(_ turn: Turn, limit: TimeInterval?) throws(DatabaseError) -> Int {
        if let limit, turn.signal!.wait(timeout: .now() + limit) == .timedOut {
            if remove(turn) { throw waitedTooLong(limit) }
            // Out of the line at the last moment: whoever took it out still has the place, and signals when that is over.
            turn.signal!.wait()
        } else if limit == nil {
            turn.signal!.wait()
        }
        let place = state.withLock { _ in turn.place }
        if let place { return place }
        throw state.withLock { $0.refusal } ?? .notOpen
    }

    /// Has the turn of a task start when a place is free, or refuses it.
    func enqueue(_ turn: Turn, isCancelled: () -> Bool) {
        let (free, refusal, limit) = state.withLock { state -> (Int?, (any Error)?, TimeInterval?) in
            // Asked under the lock: whoever cancels looks for the turn in the line afterwards.
            if isCancelled() { return (nil, CancellationError(), nil) }
            if let refusal = state.refusal { return (nil, refusal, nil) }
            if let place = state.free.popLast() { return (place, nil, nil) }
            turn.ticket = state.line.append(turn, priority: turn.priority)
            return (nil, nil, state.maximumWait)
        }
        if let free { start(turn, at: free) }
        if let refusal { turn.refused?(refusal) }
        if let limit {
            DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak turn] in
                if let turn { self.withdraw(turn, because: self.waitedTooLong(limit)) }
            }
        }
    }

    /// Refuses the turn of a task if it still waits.
    func withdraw(_ turn: Turn, because error: any Error) {
        if remove(turn) { turn.refused?(error) }
    }

    /// False if it is not in the line any more.
    private func remove(_ turn: Turn) -> Bool {
        state.withLock { state in
            guard let ticket = turn.ticket, state.line.remove(ticket) != nil else { return false }
            return true
        }
    }

    // MARK: Going

    /// Ends the use of a place: the next in line gets it.
    func leave(_ place: Int) {
        let (next, observers) = state.withLock { state -> (Turn?, [@Sendable () -> Void]) in
            if let next = state.line.popFirst() { return (hand(place, to: next, &state), []) }
            state.threads[place] = 0
            state.free.append(place)
            guard state.isIdle else { return (nil, []) }
            defer { state.idleObservers = [] }
            return (nil, state.idleObservers)
        }
        if let next { wake(next, at: place) }
        for observer in observers { observer() }
    }

    /// Takes the next in line if that one may share a transaction. The place is its own with ``wake(_:at:)``.
    func nextShareable(at place: Int) -> Turn? {
        state.withLock { state in
            guard let first = state.line.first, first.isShareable, let next = state.line.popFirst() else { return nil }
            return hand(place, to: next, &state)
        }
    }

    private func hand(_ place: Int, to turn: Turn, _ state: inout State) -> Turn {
        turn.place = place
        state.threads[place] = turn.thread
        return turn
    }

    func wake(_ turn: Turn, at place: Int) {
        if Instruments.isOn { instruments.waited(nanoseconds: DispatchTime.now().uptimeNanoseconds - turn.came) }
        if let signal = turn.signal { signal.signal() } else { start(turn, at: place) }
    }

    private func start(_ turn: Turn, at place: Int) {
        executors[place].async { [self] in
            let thread = Lane.currentThread
            state.withLock { $0.threads[place] = thread }
            turn.start!(place)
        }
    }

    // MARK: All places

    /// Takes all places that nobody uses now. They are given back with ``leave(_:)``.
    func takeFree() -> [Int] {
        let thread = Lane.currentThread
        return state.withLock { state in
            defer { state.free = [] }
            for place in state.free { state.threads[place] = thread }
            return state.free
        }
    }

    /// How many places are in use.
    var busyCount: Int { state.withLock { $0.threads.count - $0.free.count } }

    /// How many wait.
    var waitingCount: Int { state.withLock { $0.line.count } }

    var isRefusing: Bool { state.withLock { $0.refusal != nil } }

    /// From now on nobody is let in, for this reason.
    func refuse(because error: DatabaseError) {
        state.withLock { $0.refusal = error }
    }

    /// Sends away those who wait, for the reason of the refusal.
    func dismissWaiting() {
        let (all, refusal) = state.withLock { state in (state.line.removeAll(), state.refusal ?? .notOpen) }
        for turn in all {
            turn.signal?.signal()
            turn.refused?(refusal)
        }
    }

    /// Runs the work on the thread of a place that nobody has.
    func onOwnThread(at place: Int, _ work: @escaping @Sendable () -> Void) {
        executors[place].async(execute: work)
    }

    /// Calls back once every place is free and nobody waits.
    func whenIdle(_ observer: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            if !state.isIdle { state.idleObservers.append(observer) }
            return state.isIdle
        }
        if isIdle { observer() }
    }

    private func waitedTooLong(_ limit: TimeInterval) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                All connections of the \(name) were in use for \(limit) s. The block was not called; try again.
                """
        )
    }
}
