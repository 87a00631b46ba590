import Foundation
internal import Logging

/// Ships the store of one queue or pool, on a thread of its own, from its first opening until the queue or pool ends.
///
/// The thread does not hold the lock while it ships, and nobody waits for it but who asks for something: that what was
/// committed is shipped, that the log can be emptied, or that the thread lets go of the store.
final class Shipper: Sendable {
    let replication: Replication
    /// What messages call the store before it was opened.
    private let name: String
    let settings: CipherSettings
    let busyTimeout: Duration
    let acceptsOlderSlots: Bool
    let logger: Logger?
    let failures: FailureTeller
    /// Called after each attempt, on the thread.
    let told: @Sendable (_ status: ReplicationStatus, _ hasFailed: Bool) -> Void
    /// Runs the body while nobody else in this process writes to the store; see ``Replicator/Options/turn``. Set once, before
    /// the first opening.
    let turn = Guarded<@Sendable (() -> Void) -> Bool>({ _ in false })
    let state = Guarded(Standing())
    /// Wakes the thread.
    let bell = DispatchSemaphore(value: 0)
    private let process = ForkGuard.begin()

    struct Standing {
        /// The key of the store; `nil` while it is closed.
        var key: Key?
        /// The absolute path of the file that was opened first. A name may lead elsewhere later.
        var path: String?
        /// Why nothing is shipped until it is opened again.
        var refusal: DatabaseError?
        /// Whether the thread must let go of the store before it goes on, and whether it is to ship first.
        var letsGo = false
        var shipsBefore = false
        /// Whether it may have the store open.
        var isHolding = false
        var isStarted = false
        var hasEnded = false
        /// When it has to stop, by ``Shipper/now``.
        var stopsAt = UInt64.max
        var thread: pthread_t?
        var calls: [Call] = []
        var status = ReplicationStatus()
        /// Whether the last attempt did not ship what is there.
        var isFailing = false
        /// When what was shipped was committed, by a clock that does not jump.
        var shippedLook: ContinuousClock.Instant?
        var lastNumber = 0
    }

    /// What somebody waits for.
    struct Call {
        enum Purpose {
            /// That what was committed is in the repository.
            case shipping
            /// That the log can be emptied. The caller lets nobody write meanwhile.
            case emptying
            /// That the thread has let go of the store.
            case lettingGo
        }

        let number: Int
        let purpose: Purpose
        let came = ContinuousClock.now
        let tell: @Sendable (Result<Void, any Error>) -> Void
    }

    /// More time than it was given, for what cannot be stopped.
    private static let grace = 5.0

    init(
        _ replication: Replication,
        path: String,
        settings: CipherSettings,
        busyTimeout: Duration,
        acceptsOlderSlots: Bool,
        logger: Logger?,
        told: @escaping @Sendable (ReplicationStatus, Bool) -> Void
    ) {
        (self.replication, name, self.settings) = (replication, path, settings)
        failures = FailureTeller(replication.didFail)
        (self.busyTimeout, self.acceptsOlderSlots, self.logger) = (busyTimeout, acceptsOlderSlots, logger)
        self.told = told
    }

    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// The moment so many seconds from now.
    static func moment(in seconds: Double) -> UInt64 {
        let nanoseconds = min(max(0, seconds), 1e9) * 1e9
        return now + UInt64(nanoseconds)
    }

    /// The path of the store.
    var path: String { state.withLock { $0.path } ?? name }

    var status: ReplicationStatus {
        // In a forked child the lock may be held for ever.
        guard process == ForkGuard.current else { return ReplicationStatus() }
        return state.withLock { state in
            var status = state.status
            status.lag = state.shippedLook.map { .now - $0 }
            status.isActive = state.key != nil && state.refusal == nil
            return status
        }
    }

    /// Whether the last attempt failed, so that the log is needed for longer.
    var isFailing: Bool { state.withLock { $0.isFailing } }

    /// Whether the store is being shipped, or tried to be.
    var isShipping: Bool { state.withLock { $0.key != nil && $0.refusal == nil } }

    /// Whether the store counts as open.
    var isFollowing: Bool { state.withLock { $0.key != nil } }

    // MARK: What the queue or pool tells

    /// A connection was opened with this key.
    /// - Parameter openedPath: the absolute path of its file.
    /// - Throws: if the store must not be opened without being shipped, or is another one than before.
    func storeWasOpened(with key: Key, at openedPath: String) throws(DatabaseError) {
        guard process == ForkGuard.current else { return }
        let (first, isOpen, isFirst, isNew) = state.withLock { state in
            let first = state.path ?? openedPath
            guard !state.hasEnded, ExactText(first) == ExactText(openedPath) else {
                return (first, false, false, false)
            }
            let isNew = state.key != key
            if isNew { (state.key, state.refusal, state.stopsAt) = (key, nil, state.letsGo ? state.stopsAt : .max) }
            state.path = first
            return (first, true, state.shippedLook == nil, isNew)
        }
        guard ExactText(first) == ExactText(openedPath) else { throw Shipper.isOtherStore(openedPath, first) }
        guard isOpen else { return }
        if isNew {
            startThread()
            bell.signal()
        }
        // Whoever opens it meanwhile waits as well.
        guard isFirst, replication.isRequiredForOpening else { return }
        do throws(DatabaseError) {
            try ship()
        } catch {
            letGo(ships: false, within: 0)
            throw error.adding(context: "\(path) is opened only if it can be shipped to \(replication.repository)")
        }
    }

    private func startThread() {
        let isMissing = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
        guard isMissing else { return }
        let thread = Thread { [self] in
            state.withLock { $0.thread = pthread_self() }
            ShippingThread(self).run()
        }
        thread.name = "SealedDB.shipper"
        thread.start()
    }

    /// Makes the thread let go of the store, and waits for that. The next opening goes on.
    /// - Parameters:
    ///   - ships: whether it ships what is there before.
    ///   - seconds: how long that may take.
    /// - Returns: whether it has let go. What hangs in the system may take longer.
    @discardableResult
    func letGo(ships: Bool, within seconds: Double) -> Bool {
        guard process == ForkGuard.current else { return true }
        let end = ships ? Shipper.moment(in: seconds) : Shipper.now
        let waiter = DispatchSemaphore(value: 0)
        let mustWait = state.withLock { state in
            state.key = nil
            state.letsGo = true
            // Who wants it sooner has it sooner.
            state.stopsAt = min(state.stopsAt, end)
            state.shipsBefore = ships
            guard state.isHolding, state.thread != pthread_self() else { return false }
            state.lastNumber += 1
            state.calls.append(Call(number: state.lastNumber, purpose: .lettingGo) { _ in waiter.signal() })
            return true
        }
        bell.signal()
        guard mustWait else { return true }
        let limit = DispatchTime(uptimeNanoseconds: end) + Shipper.grace
        let hasLetGo = waiter.wait(timeout: limit) == .success
        if !hasLetGo {
            logger?.error("the repository does not answer, so the store is still held", metadata: ["store": "\(path)"])
        }
        return hasLetGo
    }

    /// Ships what is there, has the connections closed, and lets go of the store.
    ///
    /// It is the last that has the store open, so that its log stays as it is, and the next opening goes on there.
    /// - Parameter seconds: how long shipping may take.
    func close(within seconds: Double, _ closeConnections: () -> Void) {
        let end = Shipper.moment(in: seconds)
        // What could not be shipped is in the status and in the log, and comes with the next opening.
        if isFollowing { try? ship(within: seconds) }
        closeConnections()
        let now = Shipper.now
        letGo(ships: true, within: end > now ? Double(end - now) / 1e9 : 0)
    }

    /// Has what is being shipped stop, at once.
    func hurry() {
        guard process == ForkGuard.current else { return }
        state.withLock { $0.stopsAt = Shipper.now }
    }

    /// Lets go of the store for good, without shipping anything, and ends the thread.
    func end() {
        guard process == ForkGuard.current else { return }
        // Who has waited for that in vain does not wait twice.
        if !state.withLock({ $0.letsGo }) { letGo(ships: false, within: 0) }
        state.withLock { ($0.hasEnded, $0.key) = (true, nil) }
        bell.signal()
    }

    // MARK: What callers ask for

    /// Ships now, and waits until all that was committed before is in the repository.
    func ship(within seconds: Double? = nil) throws(DatabaseError) {
        try wait(for: .shipping, within: seconds)
    }

    /// Has the log moved into the store, and reads nothing of it any more. The caller lets nobody write meanwhile.
    func letLogGo(within seconds: Double) throws(DatabaseError) {
        try wait(for: .emptying, within: seconds)
    }

    // @unchecked: `outcome` is written before the signal, and read after it.
    private final class Waiting: @unchecked Sendable {
        var outcome: Result<Void, any Error>?
        let signal = DispatchSemaphore(value: 0)
    }

    private func wait(for purpose: Call.Purpose, within seconds: Double?) throws(DatabaseError) {
        // It would wait for itself, or try for ever what has just failed.
        guard state.withLock({ $0.thread }) != pthread_self(), !failures.isTellingHere else { throw Shipper.ownThread }
        let waiting = Waiting()
        let number = try add(purpose) { outcome in
            waiting.outcome = outcome
            waiting.signal.signal()
        }
        let limit = seconds.map { DispatchTime(uptimeNanoseconds: Shipper.moment(in: $0)) } ?? .distantFuture
        if waiting.signal.wait(timeout: limit) == .timedOut {
            guard withdraw(number) == nil else { throw Shipper.tookTooLong }
            // It is being told just now.
            waiting.signal.wait()
        }
        guard case .failure(let error)? = waiting.outcome else { return }
        throw error as? DatabaseError ?? Shipper.closed
    }

    /// Like ``ship(within:)``, but does not block a thread.
    func ship() async throws {
        let ticket = Guarded<(number: Int?, isCancelled: Bool)>((nil, false))
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let number: Int
                do throws(DatabaseError) {
                    number = try add(.shipping) { continuation.resume(with: $0) }
                } catch {
                    return continuation.resume(throwing: error)
                }
                let isCancelled = ticket.withLock { ticket in
                    ticket.number = number
                    return ticket.isCancelled
                }
                if isCancelled { withdraw(number)?.tell(.failure(CancellationError())) }
            }
        } onCancel: {
            let number = ticket.withLock { ticket in
                ticket.isCancelled = true
                return ticket.number
            }
            if let number { withdraw(number)?.tell(.failure(CancellationError())) }
        }
    }

    private func add(
        _ purpose: Call.Purpose,
        _ tell: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) throws(DatabaseError) -> Int {
        guard process == ForkGuard.current else { throw .forked }
        let added = state.withLock { state -> Result<Int, DatabaseError> in
            if let refusal = state.refusal { return .failure(refusal) }
            guard state.key != nil, !state.hasEnded else { return .failure(Shipper.closed) }
            state.lastNumber += 1
            state.calls.append(Call(number: state.lastNumber, purpose: purpose, tell: tell))
            return .success(state.lastNumber)
        }
        bell.signal()
        return try added.get()
    }

    /// Takes a call back.
    /// - Returns: `nil` if it is answered already.
    private func withdraw(_ number: Int) -> Call? {
        state.withLock { state in
            guard let index = state.calls.firstIndex(where: { $0.number == number }) else { return nil }
            return state.calls.remove(at: index)
        }
    }

    static let closed = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .shutDown,
        message: """
            The queue or pool was closed, so that its store is not shipped. What was committed is in the store, and is shipped \
            when it is open again.
            """
    )

    private static func isOtherStore(_ path: String, _ first: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .misuse,
            message: """
                The store was \(first) when it was first opened here, and would be \(path) now: the working directory is \
                another one, or a symbolic link. The repository is that of the first. Nothing was opened or shipped. Make \
                another queue or pool, with an absolute path.
                """
        )
    }

    private static let ownThread = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            `didFail`, or what gets the messages of the log, asks for the store to be shipped: the thread that ships cannot wait \
            for itself, and what has just failed would be tried for ever. Nothing was done. Ask from another thread.
            """
    )

    private static let tookTooLong = DatabaseError(
        extendedCode: SQLITE_BUSY,
        reason: .busy,
        message: """
            What was committed is not in the repository yet. It is in the store, and is shipped as soon as the repository \
            takes it.
            """
    )
}
