/// What committed transactions have changed. https://www.sqlite.org/c3ref/update_hook.html
public struct DatabaseChanges: Sendable, Hashable {
    /// The changed rows by table, with the names as they were passed to ``Database/changes(in:database:)``. Never
    /// empty.
    public let tables: [String: ChangedRows]
}

/// The changes committed from now on, in the order of the commits: see ``Database/changes(in:database:)``.
///
/// Use it for one `for await` loop. The loop ends when its task is cancelled, and when the database, queue or pool is
/// released or shut down. Releasing the sequence ends the observation.
public struct DatabaseChangeSequence: AsyncSequence, Sendable {
    /// What one commit, or several that nobody waited for, has changed.
    public typealias Element = DatabaseChanges
    /// The sequence does not fail.
    public typealias Failure = Never

    private let signals: AsyncStream<Void>
    private let subscription: Subscription

    /// Ends the observation when the last reference is released.
    fileprivate final class Subscription: Sendable {
        let observer: ChangeObserver
        private let hub: WeakHub

        // @unchecked: a weak reference that is never assigned may be read by any thread.
        private struct WeakHub: @unchecked Sendable {
            weak var hub: ChangeHub?
        }

        init(_ observer: ChangeObserver, _ hub: ChangeHub) {
            self.observer = observer
            self.hub = WeakHub(hub: hub)
            hub.add(observer)
        }

        deinit {
            hub.hub?.remove(observer)
        }
    }

    init(tables: Set<String>, database: String, hub: ChangeHub) {
        let names = tables.map { (TableName($0, in: database), $0) }
        self.init(Dictionary(names, uniquingKeysWith: { first, _ in first }), hub)
    }

    init(_ tables: Set<TableName>, _ hub: ChangeHub) {
        self.init(Dictionary(uniqueKeysWithValues: tables.map { ($0, $0.table) }), hub)
    }

    private init(_ names: [TableName: String], _ hub: ChangeHub) {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observer = ChangeObserver(names: names, continuation: continuation)
        self.signals = signals
        self.subscription = Subscription(observer, hub)
    }

    /// Begins to wait for changes.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(signals: signals.makeAsyncIterator(), subscription: subscription)
    }

    /// Where one who waits for changes is.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var signals: AsyncStream<Void>.AsyncIterator
        fileprivate let subscription: Subscription

        /// Returns everything that has been committed since the last call. If that is nothing, waits for the next
        /// commit.
        public mutating func next() async -> DatabaseChanges? {
            await next(isolation: nil)
        }

        /// Waits for the next commit that changes one of the tables. `nil` when the queue or pool has ended, or the
        /// task was cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> DatabaseChanges? {
            while await signals.next(isolation: actor) != nil {
                if let tables = subscription.observer.take() { return DatabaseChanges(tables: tables) }
            }
            return nil
        }
    }
}
