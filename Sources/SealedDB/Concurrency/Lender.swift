import Foundation

/// The pool's books: who has which connection, who waits. Opens and closes nothing itself.
final class Lender: Sendable {
    /// The right to use one connection: a kept one, or a new one that the borrower opens.
    // @unchecked: the connection is the borrower's alone.
    struct Loan: @unchecked Sendable {
        let database: Database?
        fileprivate let generation: Int
        fileprivate let borrower: UInt
    }

    /// A caller at the limit. It owns the loan once it has been signalled.
    // @unchecked: `loan` is written before the signal and read after it, or under the lock.
    private final class Waiter: @unchecked Sendable {
        let thread: UInt
        let isNested: Bool
        let signal = DispatchSemaphore(value: 0)
        var loan: Loan?

        init(thread: UInt, isNested: Bool) {
            self.thread = thread
            self.isNested = isNested
        }
    }

    // @unchecked: all of it is used under the lock, and idle connections by nobody.
    private struct Books: @unchecked Sendable {
        var idle: [Database] = []
        /// How many of them are closed: those that were given back so come first, and are lent last.
        var closedCount = 0
        /// Loans of this generation, by thread.
        var lent: [UInt: UInt] = [:]
        /// Loans of any generation, by thread: who has one is waited for.
        var held: [UInt: UInt] = [:]
        var waiters: [Waiter] = []
        var generation = 0
        var maximum: UInt = 0
        var maximumWait: TimeInterval?
        var refusal: DatabaseError?
        /// Whether only threads that have a connection already get another one.
        var isPaused = false
        var idleObservers: [@Sendable () -> Void] = []

        var lentCount: UInt { lent.values.reduce(0, +) }
        var isIdle: Bool { held.isEmpty }

        mutating func lend(to thread: UInt) -> Loan {
            let database = idle.popLast()
            closedCount = min(closedCount, idle.count)
            lent[thread, default: 0] += 1
            held[thread, default: 0] += 1
            return Loan(database: database, generation: generation, borrower: thread)
        }

        static func countDown(_ thread: UInt, in loans: inout [UInt: UInt]) {
            let left = loans[thread, default: 1] - 1
            loans[thread] = left == 0 ? nil : left
        }

        /// Whether a loan is possible at once.
        func hasRoom(for thread: UInt, isNested: Bool) -> Bool {
            if isPaused, !isNested, held[thread] == nil { return false }
            return !idle.isEmpty || maximum == 0 || lentCount < maximum
        }

        /// Serves those who wait as far as possible, and returns them to be signalled.
        mutating func serveWaiters() -> [Waiter] {
            var served: [Waiter] = []
            while let index = waiters.firstIndex(where: { hasRoom(for: $0.thread, isNested: $0.isNested) }) {
                let waiter = waiters.remove(at: index)
                waiter.loan = lend(to: waiter.thread)
                served.append(waiter)
            }
            return served
        }

        /// Whether every connection is held by a thread that waits for another one.
        func isDeadlock(with thread: UInt) -> Bool {
            let waiting = Set(waiters.map(\.thread)).union([thread])
            return lent.allSatisfy { $0.value == 0 || waiting.contains($0.key) }
        }
    }

    private let books = Guarded(Books())

    var maximum: UInt {
        get { books.withLock { $0.maximum } }
        set {
            let served = books.withLock { books in
                books.maximum = newValue
                return books.serveWaiters()
            }
            for waiter in served { waiter.signal.signal() }
        }
    }

    var maximumWait: TimeInterval? {
        get { books.withLock { $0.maximumWait } }
        set { books.withLock { $0.maximumWait = newValue } }
    }

    var counts: (idle: UInt, lent: UInt) {
        books.withLock { (UInt($0.idle.count - $0.closedCount), $0.lentCount) }
    }

    /// From now on nobody who is not waiting already gets a connection.
    func refuse(because error: DatabaseError) {
        books.withLock { $0.refusal = error }
    }

    /// A kept connection, the right to open one, or a wait for either.
    /// - Parameter isNested: whether the thread has a connection of `read` or `write`.
    func borrow(isNested: Bool) throws(DatabaseError) -> Loan {
        let thread = UInt(pthread_self())
        let waiter = Waiter(thread: thread, isNested: isNested)
        let (outcome, limit) = books.withLock { books -> (Result<Loan?, DatabaseError>, TimeInterval?) in
            if let refusal = books.refusal { return (.failure(refusal), nil) }
            let isFirst = books.waiters.isEmpty || books.isPaused
            if isFirst, books.hasRoom(for: thread, isNested: isNested) {
                return (.success(books.lend(to: thread)), nil)
            }
            // Who waits for the end of a pause holds nothing that others wait for.
            if !books.isPaused || books.held[thread] != nil, books.isDeadlock(with: thread) {
                return (.failure(.poolExhausted), nil)
            }
            books.waiters.append(waiter)
            return (.success(nil), books.maximumWait)
        }
        if let loan = try outcome.get() { return loan }
        guard let limit else {
            waiter.signal.wait()
            return waiter.loan!
        }
        if waiter.signal.wait(timeout: .now() + limit) == .success { return waiter.loan! }
        let late = books.withLock { books -> Loan? in
            books.waiters.removeAll { $0 === waiter }
            return waiter.loan
        }
        if let late { return late }
        throw DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "All connections of the pool were in use for \(limit) s. The block was not called; try again."
        )
    }

    /// Ends a loan whose connection was not opened, or was closed.
    func giveUp(_ loan: Loan) {
        settle(loan, keeping: nil)
    }

    /// Ends a loan, unless the connection is not to be kept. Then its borrower closes it first, because whoever waits until
    /// nothing is lent counts on that.
    func takeBack(_ loan: Loan, _ database: Database) -> Bool {
        settle(loan, keeping: Handed(databases: [database]))
    }

    @discardableResult
    private func settle(_ loan: Loan, keeping kept: Handed?) -> Bool {
        let served = books.withLock { books -> [Waiter]? in
            // Otherwise forgotten meanwhile.
            let isOfNow = loan.generation == books.generation
            if let kept {
                // The limit may have been lowered.
                guard isOfNow, books.maximum == 0 || books.lentCount + UInt(books.idle.count) <= books.maximum else {
                    return nil
                }
                books.idle += kept.databases
            }
            Books.countDown(loan.borrower, in: &books.held)
            if isOfNow { Books.countDown(loan.borrower, in: &books.lent) }
            return books.serveWaiters()
        }
        guard let served else { return false }
        for waiter in served { waiter.signal.signal() }
        let observers = books.withLock { books -> [@Sendable () -> Void] in
            guard books.isIdle else { return [] }
            defer { books.idleObservers = [] }
            return books.idleObservers
        }
        for observer in observers { observer() }
        return true
    }

    /// Lets nobody begin who has no connection yet, until ``resume()``.
    func pause() {
        books.withLock { $0.isPaused = true }
    }

    var isPaused: Bool { books.withLock { $0.isPaused } }

    func resume() {
        let served = books.withLock { books in
            books.isPaused = false
            return books.serveWaiters()
        }
        for waiter in served { waiter.signal.signal() }
    }

    /// Waits until nothing is lent.
    func waitUntilIdle() {
        let idle = DispatchSemaphore(value: 0)
        whenIdle { idle.signal() }
        idle.wait()
    }

    /// Whether the calling thread has a connection.
    var isInside: Bool {
        let thread = UInt(pthread_self())
        return books.withLock { $0.held[thread] != nil }
    }

    /// Calls back once nothing is lent.
    func whenIdle(_ observer: @escaping @Sendable () -> Void) {
        let isIdle = books.withLock { books in
            if !books.isIdle { books.idleObservers.append(observer) }
            return books.isIdle
        }
        if isIdle { observer() }
    }

    /// Connections that were taken out of the books.
    struct SetAside {
        let databases: [Database]
        fileprivate let generation: Int
    }

    /// Takes the idle connections, for whoever has paused it and waited until nothing is lent.
    func setAside() -> SetAside {
        let (taken, generation) = books.withLock { books in
            defer { (books.idle, books.closedCount) = ([], 0) }
            return (Handed(databases: books.idle), books.generation)
        }
        return SetAside(databases: taken.databases, generation: generation)
    }

    /// False if all were to be closed for good meanwhile.
    func takeBack(_ aside: SetAside, areClosed: Bool) -> Bool {
        let handed = Handed(databases: aside.databases)
        return books.withLock { books in
            guard aside.generation == books.generation else { return false }
            books.idle = handed.databases + books.idle
            if areClosed { books.closedCount += handed.databases.count }
            return true
        }
    }

    /// Begins anew; returns the idle connections.
    func forgetAll() -> [Database] {
        let (forgotten, served) = books.withLock { books -> (Handed, [Waiter]) in
            let idle = Handed(databases: books.idle)
            (books.idle, books.closedCount) = ([], 0)
            books.lent = [:]
            books.generation += 1
            return (idle, books.serveWaiters())
        }
        for waiter in served { waiter.signal.signal() }
        return forgotten.databases
    }

    // @unchecked: on its way into the books or out of them.
    private struct Handed: @unchecked Sendable {
        let databases: [Database]
    }
}

extension DatabaseError {
    fileprivate static let poolExhausted = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .misuse,
        message: """
            Every connection of the pool is held by a block that waits for another one, so this would wait for ever. \
            The block was not called. Use the Database that the outer block was given, or raise the pool's limit.
            """
    )
}
