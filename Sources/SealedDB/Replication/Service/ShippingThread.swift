import Foundation
internal import Logging

/// What the thread of a ``Shipper`` does.
///
/// Not for several threads at once: only the shipper's own has it.
final class ShippingThread {
    private let shipper: Shipper
    private var state: Guarded<Shipper.Standing> { shipper.state }
    private var following: (key: Key, replicator: Replicator?)?
    /// The mark of the repository, so that another one that is mounted in its place is noticed.
    private var mark: RepositoryMark?
    private var nextAttempt = ContinuousClock.now
    private var retention = RetentionSchedule()
    /// What was logged last, and when.
    private var logged: (message: String, time: ContinuousClock.Instant)?

    /// The same failure is not logged more often.
    private static let pauseOfLog: Duration = .seconds(60)
    /// More in one segment shows that so much was committed meanwhile that the log should not begin anew yet.
    private static let bytesOfBusyStore: Int64 = 1 << 20
    private static let mostRounds = 4

    init(_ shipper: Shipper) {
        self.shipper = shipper
    }

    private enum Order {
        case letGo(ships: Bool)
        case end
        case rest
        case follow(Key, isCalled: Bool)
    }

    func run() {
        while true {
            switch nextOrder() {
            case .letGo(let ships):
                if ships, following != nil { attempt(hasCalls: false) }
                letGo()
            case .end: return letGo()
            case .rest: shipper.bell.wait()
            case .follow(let key, let isCalled):
                if let open = following, open.key != key { close() }
                if following == nil { (following, nextAttempt) = ((key, nil), .now) }
                let pause = nextAttempt - .now
                guard isCalled || pause <= .zero else {
                    // Either way the loop looks again.
                    _ = shipper.bell.wait(timeout: .now() + pause.seconds)
                    continue
                }
                attempt(hasCalls: isCalled)
                nextAttempt = .now + .seconds(shipper.replication.pause)
            }
        }
    }

    private func nextOrder() -> Order {
        state.withLock { state in
            if state.letsGo { return .letGo(ships: state.shipsBefore) }
            if state.hasEnded { return .end }
            guard let key = state.key, state.refusal == nil else { return .rest }
            state.isHolding = true
            return .follow(key, isCalled: !state.calls.isEmpty)
        }
    }

    // MARK: Letting go

    /// Gives the repository back, and lets go of the store.
    private func close() {
        mark = following?.replicator?.mark ?? mark
        following?.replicator?.close()
        following = nil
    }

    private func letGo() {
        close()
        let calls = state.withLock { state in
            (state.letsGo, state.isHolding, state.stopsAt) = (false, false, .max)
            guard state.key != nil, !state.hasEnded else {
                defer { state.calls = [] }
                return state.calls
            }
            return take(&state) { $0.purpose == .lettingGo }
        }
        for call in calls { call.tell(call.purpose == .lettingGo ? .success(()) : .failure(Shipper.closed)) }
    }

    private func take(_ state: inout Shipper.Standing, _ isWanted: (Shipper.Call) -> Bool) -> [Shipper.Call] {
        let taken = state.calls.filter(isWanted)
        state.calls.removeAll(where: isWanted)
        return taken
    }

    private func tell(_ outcome: Result<Void, any Error>, _ isMeant: (Shipper.Call) -> Bool) {
        for call in state.withLock({ take(&$0, isMeant) }) { call.tell(outcome) }
    }

    // MARK: Shipping

    private func attempt(hasCalls: Bool) {
        let began = ContinuousClock.now
        do throws(DatabaseError) {
            let replicator = try replicator()
            var report = try replicator.shipWithoutRelief()
            let unseen = Replicator.lostSight(report, of: shipper.path)
            succeeded(replicator, report, unseen)
            let retentionFailure = removeOld(replicator, after: report)
            if hasCalls { try emptyLog(replicator, began) }
            var rounds = 0
            while replicator.needsRelief, report.byteCount > ShippingThread.bytesOfBusyStore,
                rounds < ShippingThread.mostRounds
            {
                report = try replicator.shipWithoutRelief()
                succeeded(replicator, report)
                rounds += 1
            }
            try replicator.relieve()
            ended(with: unseen ?? retentionFailure, isShipped: true)
            letLogGo()
        } catch {
            failed(error, began)
        }
    }

    private func replicator() throws(DatabaseError) -> Replicator {
        guard let open = following else { throw Shipper.closed }
        if let replicator = open.replicator { return replicator }
        let (state, turn, replication) = (self.state, shipper.turn, shipper.replication)
        let mayGoOn = { @Sendable in state.withLock { $0.stopsAt } > Shipper.now }
        var access = RepositoryAccess()
        access.bytesPerSecond = replication.maximumBytesPerSecond
        access.allowsPlainHTTP = replication.allowsPlainHTTP
        access.isEnding = { !mayGoOn() }
        var options = Replicator.Options()
        options.snapshotInterval = replication.snapshotInterval
        options.adopts = replication.acceptsMovedStore
        options.busyTimeout = shipper.busyTimeout
        options.acceptsOlderSlots = shipper.acceptsOlderSlots
        options.mayGoOn = mayGoOn
        options.turn = { body in turn.withLock { $0 }(body) }
        let replicator = try Replicator(
            path: shipper.path,
            key: open.key,
            cipherSettings: shipper.settings,
            directory: replication.repository,
            access: access,
            options: options,
            mark: mark
        )
        following?.replicator = replicator
        return replicator
    }

    /// - Returns: why not all was removed. All is shipped, whatever becomes of that.
    private func removeOld(_ replicator: Replicator, after report: Replicator.Report) -> DatabaseError? {
        guard let count = shipper.replication.maximumSnapshotCount, retention.isDue(after: report) else { return nil }
        do throws(DatabaseError) {
            // How many these are nobody asks.
            _ = try retention.removeOld(replicator) { times in times.indices.map { $0 < count } }
            return nil
        } catch {
            return error
        }
    }

    /// What was committed before the look that the repository has now is there.
    /// - Parameter unseen: why some of it is not there all the same.
    private func succeeded(_ replicator: Replicator, _ report: Replicator.Report, _ unseen: DatabaseError? = nil) {
        guard let look = replicator.shippedLook else { return }
        let calls = state.withLock { state in
            state.shippedLook = look
            state.status.lastSuccess = Date(timeIntervalSince1970: Double(report.shippedAt) / 1000)
            state.status.generation = report.generation
            return take(&state) { $0.purpose == .shipping && $0.came <= look }
        }
        for call in calls { call.tell(unseen.map { .failure($0) } ?? .success(())) }
    }

    private func emptyLog(_ replicator: Replicator, _ began: ContinuousClock.Instant) throws(DatabaseError) {
        let calls = state.withLock { take(&$0) { $0.purpose == .emptying && $0.came <= began } }
        guard !calls.isEmpty else { return }
        let outcome = Result { () throws(DatabaseError) in try replicator.relieveLog() }
        for call in calls { call.tell(outcome.mapError { $0 }) }
        try outcome.get()
        // What was read from the log is not there any more.
        try replicator.shipRest()
    }

    // MARK: What came of it

    private func failed(_ error: DatabaseError, _ began: ContinuousClock.Instant) {
        let mustStop = state.withLock { $0.stopsAt <= Shipper.now }
        // Who stops it is told that it was closed, and the next shipper goes on.
        if mustStop, error.reason == .interrupted {
            return tell(.failure(Shipper.closed)) { $0.purpose != .lettingGo && $0.came <= began }
        }
        let isFinal = !Replicator.mayPass(error)
        if isFinal {
            close()
            // It is another repository, and whoever opens the store again has been told.
            if error.reason == .unverified { mark = nil }
            let isLettingGo = state.withLock { state in
                if state.key != nil { state.refusal = error }
                return state.letsGo
            }
            // The log is not kept for somebody who does not read it.
            if !isLettingGo { letGoOfRefused() }
        }
        ended(with: error, isShipped: false) {
            tell(.failure(error)) { $0.purpose != .lettingGo && (isFinal || $0.came <= began) }
        }
        if !isFinal { letLogGo() }
    }

    private func letGoOfRefused() {
        let calls = state.withLock { state in
            state.isHolding = false
            return take(&state) { $0.purpose == .lettingGo }
        }
        for call in calls { call.tell(.success(())) }
    }

    /// The log is not kept for the repository for ever: a full disk would stop all who write.
    private func letLogGo() {
        guard let limit = shipper.replication.maximumUnshippedBytes,
            let bytes = following?.replicator?.unshippedBytes(), bytes > limit
        else { return }
        close()
        if let key = state.withLock({ $0.key }) { following = (key, nil) }
        shipper.logger?.error(
            "the log is not kept any more for what could not be shipped, so that the next shipping begins a generation",
            metadata: ["store": "\(shipper.path)", "bytes": "\(bytes)", "limit": "\(limit)"]
        )
    }

    /// - Parameter tellCallers: tells those who wait, who find the status already. Messages come after that, as whoever gets
    ///   them may wait for these.
    private func ended(with error: DatabaseError?, isShipped: Bool, _ tellCallers: () -> Void = {}) {
        let bytes = following?.replicator?.unshippedBytes() ?? logSize()
        state.withLock { state in
            state.isFailing = !isShipped
            state.status.lastError = error
            state.status.unshippedBytes = bytes
            if error != nil { state.status.failureCount += 1 }
        }
        tellCallers()
        shipper.told(shipper.status, error != nil)
        log(error, isShipped: isShipped)
        if let error { shipper.failures.add(error) }
    }

    /// What the log has at most, if it is not known how much of it was shipped.
    private func logSize() -> Int64 {
        // A log that is not there has no bytes, and one that cannot be examined is told of by its error.
        guard let status = try? FileSystem.statusIfPresent(shipper.path + "-wal") else { return 0 }
        return Int64(status.st_size)
    }

    private func log(_ error: DatabaseError?, isShipped: Bool) {
        guard let logger = shipper.logger else { return }
        guard let error else {
            if logged != nil { logger.notice("the store is shipped again", metadata: ["store": "\(shipper.path)"]) }
            logged = nil
            return
        }
        let isKnown = logged.map { $0.message.isSame(as: error.message) && .now - $0.time < ShippingThread.pauseOfLog }
        guard isKnown != true else { return }
        logged = (error.message, .now)
        let metadata = [
            "store": shipper.path, "repository": shipper.replication.repository, "error": error.description,
        ]
        let isTriedAgain = isShipped || Replicator.mayPass(error)
        let message: Logger.Message =
            switch (isShipped, isTriedAgain) {
            case (true, _): "the store is shipped, but not all has gone well"
            case (false, true): "the store could not be shipped, and it is tried again"
            case (false, false): "the store is not shipped any more, until it is closed and opened again"
            }
        logger.log(
            level: isTriedAgain ? .warning : .error,
            message,
            metadata: metadata.mapValues { .string($0) }
        )
    }
}
