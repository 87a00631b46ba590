import Foundation

/// The ``Ledger`` of a queue or pool behind a lock, for threads and tasks.
///
/// If a thread has to wait, it is parked. A task waits without blocking a thread (see ``TaskTurn``). The lock is
/// released before the ledger's answers are carried out: no caller is called under it, and no other lock is taken.
final class Reception: Sendable {
    typealias Books = Ledger<WaitingCall>
    typealias Place = Books.Place

    /// A call that waits, and how it is told the outcome.
    final class WaitingCall: Sendable {
        private let came = Instruments.isOn ? Reception.now : 0
        private let instruments: Instruments
        private let told: @Sendable (Result<Place, any Error>) -> Void

        fileprivate init(_ instruments: Instruments, _ told: @escaping @Sendable (Result<Place, any Error>) -> Void) {
            self.instruments = instruments
            self.told = told
        }

        func tell(_ outcome: Result<Place, any Error>) {
            if Instruments.isOn, case .success = outcome { instruments.waited(nanoseconds: Reception.now - came) }
            told(outcome)
        }
    }

    private struct State {
        var books: Books
        var maximumWait: TimeInterval?
        var idleObservers: [@Sendable () -> Void] = []
        /// The only timer, created for the first time limit. It is set to `alarm`.
        var timer: (any DispatchSourceTimer)?
        var alarm = UInt64.max

        /// Takes the observers that must be called now, because nobody holds or waits for a place any more.
        mutating func observersOfIdleness() -> [@Sendable () -> Void] {
            guard !idleObservers.isEmpty, books.isIdle else { return [] }
            defer { idleObservers = [] }
            return idleObservers
        }
    }

    private let state: Guarded<State>
    /// The serial queue of each place, on which the blocks of tasks run.
    private let queues: [[DispatchQueue]]
    /// Runs the timers, and tells tasks that they get no place. It is a queue of its own, because the other queues may
    /// be busy with callers' blocks.
    static let bell = DispatchQueue(label: "SealedDB.bell")
    private let process = ForkGuard.begin()
    let instruments: Instruments

    /// - Parameter readers: the number of connections that read.
    /// - Parameter lends: whether there are further connections, which are lent.
    init(readers: Int, lends: Bool, instruments: Instruments) {
        state = Guarded(State(books: Books(readers: readers, lends: lends)))
        queues = [("writer", 1), ("reader", readers)].map { name, count in
            (0..<count).map { DispatchQueue(label: "SealedDB.\(name).\($0)") }
        }
        self.instruments = instruments
    }

    deinit {
        state.withLock { $0.timer?.cancel() }
    }

    static var currentThread: UInt { ThreadGate.currentThread }
    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// How many seconds a call waits before it gives up; `nil` for no limit.
    var maximumWait: TimeInterval? {
        get { state.withLock { $0.maximumWait } }
        set { state.withLock { $0.maximumWait = newValue } }
    }

    /// Reads from the ledger.
    func look<T>(_ body: (Books) -> T) -> T { state.withLock { body($0.books) } }

    /// Whether the calling thread holds a place.
    var isInside: Bool {
        let thread = Reception.currentThread
        return look { $0.holdsSomething(thread) }
    }

    // MARK: Threads

    /// Waits for a place on this thread.
    /// - Parameter seconds: how long at most; `nil` for ``maximumWait``.
    func enter(
        _ desk: Books.Desk,
        call: StaticString,
        shareable: Bool = false,
        isForSnapshot: Bool = false,
        within seconds: Double? = nil
    ) throws(DatabaseError) -> Place {
        var request = Books.Request(desk: desk, call: call)
        request.thread = Reception.currentThread
        request.isShareable = shareable
        request.isForSnapshot = isForSnapshot
        return try park { state, waiter in
            request.limit = seconds ?? state.maximumWait
            return state.books.request(request, now: Reception.now, caller: waiter)
        }
    }

    /// Waits until this thread has the writer's place and no other place is held.
    /// - Parameter limit: how many seconds to wait before giving up; `nil` for no limit.
    func enterAlone(call: StaticString, limit: Double?, cancellation: Cancellation?) throws(DatabaseError) -> Place {
        var request = Books.Request(desk: .writer, call: call)
        request.thread = Reception.currentThread
        request.limit = limit
        let waiting = Withdrawable()
        cancellation?.observe { [weak self] in self?.withdraw(waiting) }
        defer { cancellation?.observe(nil) }
        return try park { state, waiter in
            if cancellation?.isSet == true { return .refused(.cancelled) }
            let answer = state.books.requestBarrier(request, now: Reception.now, caller: waiter)
            if case .waits(let ticket) = answer { waiting.ticket = ticket }
            return answer
        }
    }

    // @unchecked: `outcome` is written before the signal, and read after it.
    private final class Parked: @unchecked Sendable {
        var outcome: Result<Place, any Error>?
        let signal = DispatchSemaphore(value: 0)
    }

    private func park(_ ask: (inout State, () -> WaitingCall) -> Books.Answer) throws(DatabaseError) -> Place {
        // In a forked child, a thread that exists only in the parent may hold the lock.
        guard process == ForkGuard.current else { throw .forked }
        var parked: Parked?
        let answer = withLock { state in
            ask(&state) {
                let new = Parked()
                parked = new
                return WaitingCall(instruments) { outcome in
                    new.outcome = outcome
                    new.signal.signal()
                }
            }
        }
        switch answer {
        case .granted(let place): return place
        case .refused(let error): throw error
        case .waits: parked!.signal.wait()
        }
        switch parked!.outcome! {
        case .success(let place): return place
        case .failure(let error): throw error as? DatabaseError ?? .cancelled
        }
    }

    // MARK: Tasks

    /// The ticket of a call that waits and can be cancelled.
    // @unchecked: only used under the reception's lock.
    class Withdrawable: @unchecked Sendable {
        fileprivate var ticket: Books.Ticket?
    }

    /// Requests a place for a task. The task is told when it has one, or why it gets none.
    func enter(_ request: Books.Request, isAlone: Bool, for turn: TaskTurn) {
        guard process == ForkGuard.current else { return turn.told(.failure(DatabaseError.forked)) }
        var request = request
        let answer = withLock { state -> Books.Answer? in
            // Checked under the lock: a cancellation sets the flag first, and then looks for the ticket under the lock.
            if turn.stop.isSet { return nil }
            let waiter = { WaitingCall(self.instruments) { outcome in turn.told(outcome) } }
            let answer: Books.Answer
            if isAlone {
                answer = state.books.requestBarrier(request, now: Reception.now, caller: waiter)
            } else {
                request.limit = state.maximumWait
                answer = state.books.request(request, now: Reception.now, caller: waiter)
            }
            if case .waits(let ticket) = answer { turn.ticket = ticket }
            return answer
        }
        switch answer {
        case nil: turn.told(.failure(CancellationError()))
        case .granted(let place): turn.told(.success(place))
        case .refused(let error): turn.told(.failure(error))
        case .waits: break
        }
    }

    /// Refuses a call that is cancelled, if it still waits.
    func withdraw(_ waiting: Withdrawable) {
        let withdrawn = withLock { state in
            waiting.ticket.flatMap { state.books.withdraw($0, now: Reception.now) }
        }
        guard let withdrawn else { return }
        withdrawn.caller.tell(.failure(CancellationError()))
        grant(withdrawn.grants)
    }

    func raise(_ waiting: Withdrawable, to priority: TaskPriority) {
        withLock { state in
            if let ticket = waiting.ticket, let raised = state.books.raise(ticket, to: priority) {
                waiting.ticket = raised
            }
        }
    }

    /// Records that the holder of a place now runs on this thread; 0 for no thread at present.
    func begin(_ place: Place, thread: UInt = Reception.currentThread) {
        withLock { $0.books.begin(place, thread: thread) }
    }

    /// The holder of a lent connection keeps it for a snapshot.
    func keep(_ place: Place) { withLock { $0.books.keep(place) } }

    func queue(of place: Place) -> DispatchQueue { queues[place.desk.rawValue][place.number] }

    // MARK: Going

    /// Gives a place back. The caller must have entered the database; this leaves it.
    func leave(_ place: Place, _ database: Database) {
        let content: Books.Content = database.isOpen ? .open : database.isToBeKept ? .reopens : .nothing
        database.leave()
        guard !release(place, content) else { return }
        database.enter()
        database.close()
        database.leave()
        _ = release(place, .nothing)
    }

    /// Gives back a place that has no connection.
    func leave(_ place: Place) { _ = release(place, .nothing) }

    private func release(_ place: Place, _ content: Books.Content) -> Bool {
        let (release, observers) = withLock { state in
            (state.books.release(place, content, now: Reception.now), state.observersOfIdleness())
        }
        guard case .done(let grants) = release else { return false }
        grant(grants)
        for observer in observers { observer() }
        return true
    }

    /// Gives the place to the next call in line if that call may share the transaction. The returned call has the place
    /// now, and must be told so.
    func passOn(_ place: Place) -> WaitingCall? {
        withLock { $0.books.passOn(place) }
    }

    private func grant(_ grants: [Books.Grant]) {
        for grant in grants { grant.caller.tell(.success(grant.place)) }
    }

    // MARK: Time

    private func withLock<T>(_ body: (inout State) -> T) -> T {
        state.withLock { state in
            defer {
                // This happens under the lock, so that no later alarm displaces this one. It calls nobody.
                if state.books.nextDeadline < state.alarm { setAlarm(&state) }
            }
            return body(&state)
        }
    }

    private func setAlarm(_ state: inout State) {
        state.alarm = state.books.nextDeadline
        let isNew = state.timer == nil
        let timer = state.timer ?? DispatchSource.makeTimerSource(queue: Reception.bell)
        state.timer = timer
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: state.alarm))
        guard isNew else { return }
        timer.setEventHandler { [weak self] in self?.expire() }
        timer.activate()
    }

    private func expire() {
        let (expired, grants, observers) = withLock { state in
            state.alarm = .max
            let (expired, grants) = state.books.expire(now: Reception.now)
            return (expired, grants, state.observersOfIdleness())
        }
        for (waiter, error) in expired { waiter.tell(.failure(error)) }
        grant(grants)
        for observer in observers { observer() }
    }

    // MARK: All places

    func setMaximumLent(_ maximum: UInt) {
        grant(withLock { $0.books.setMaximumLent(maximum, now: Reception.now) })
    }

    /// Takes the free places, so that their connections can be closed. The connections of the other places are closed
    /// when these are given back.
    func forget(_ desks: [Books.Desk]) -> [Place] { take { $0.forget(desks, thread: $1) } }

    /// Takes the free places, so that their connections can be closed for now. The places keep them, and they are
    /// opened again when they are needed.
    func setAside(_ desks: [Books.Desk]) -> [Place] { take { $0.setAside(desks, thread: $1) } }

    /// Takes the places that were forgotten while there was a barrier.
    func takeForgotten() -> [Place] { take { $0.takeForgotten(thread: $1) } }

    /// A forked child takes nothing: the lock and the connections are its parent's.
    private func take(_ body: (inout Books, _ thread: UInt) -> [Place]) -> [Place] {
        guard process == ForkGuard.current else { return [] }
        let thread = Reception.currentThread
        return withLock { body(&$0.books, thread) }
    }

    func takeWriterIfFree(call: StaticString) -> Place? {
        guard process == ForkGuard.current else { return nil }
        let thread = Reception.currentThread
        return withLock { $0.books.takeWriterIfFree(call: call, thread: thread) }
    }

    /// From now on, refuses calls from threads that hold no place, and from tasks.
    func drain() { withLock { $0.books.drain() } }

    /// Ends the use for good. Refuses new calls, and waits until the others have ended. After the grace, or if the task
    /// is cancelled, it refuses those that wait and stops those that run.
    /// - Parameter stop: stops the running statements.
    func shutDown(interruptingAfter grace: Duration?, stop: @escaping @Sendable () -> Void) async {
        drain()
        let interrupt: @Sendable () -> Void = { [self] in
            let waiting = withLock { $0.books.dismiss() }
            stop()
            for waiter in waiting { waiter.tell(.failure(DatabaseError.shutDown)) }
            for observer in withLock({ $0.observersOfIdleness() }) { observer() }
        }
        let timer = grace.map { grace in
            let timer = DispatchSource.makeTimerSource(queue: Reception.bell)
            timer.setEventHandler(handler: interrupt)
            timer.schedule(deadline: .now() + grace.seconds)
            timer.activate()
            return timer
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in whenIdle { continuation.resume() } }
        } onCancel: {
            interrupt()
        }
        timer?.cancel()
    }

    private func whenIdle(_ observer: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            if !state.books.isIdle { state.idleObservers.append(observer) }
            return state.books.isIdle
        }
        if isIdle { observer() }
    }
}

extension DatabaseError {
    fileprivate static let cancelled = DatabaseError(
        extendedCode: SQLITE_INTERRUPT,
        message: "The caller was cancelled while it waited for the others. Its block was not called.",
        underlyingError: CancellationError()
    )
}

/// Tells a thread that works for a task that the task was cancelled.
final class Cancellation: Sendable {
    private let flag = StopFlag()
    private let observer = Guarded<(@Sendable () -> Void)?>(nil)

    var isSet: Bool { flag.isSet }

    /// Sets the closure that a later ``set()`` calls; `nil` removes it. A cancellation before this call does not call
    /// it.
    func observe(_ callback: (@Sendable () -> Void)?) { observer.withLock { $0 = callback } }

    func set() {
        flag.set()
        observer.withLock { $0 }?()
    }
}
