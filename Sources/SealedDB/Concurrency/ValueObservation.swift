/// A value that is read from a store, now and again after each commit that changes it: see
/// ``DatabaseQueue/observe(_:)`` and ``DatabasePool/observe(_:)``.
///
/// Each `for try await` loop observes on its own. Its first value comes at once, the next ones only if they are not equal
/// to the one before by `==`, for which some texts of different bytes are equal. Values do not queue up: what is committed while the loop is busy arrives as one value.
///
/// The loop ends without an error when its task is cancelled, or when the queue or pool is shut down. It ends with the
/// error of a read that fails. It keeps the queue or pool alive.
public struct ValueObservation<Value: Equatable & Sendable>: AsyncSequence, Sendable {
    /// What is observed.
    public typealias Element = Value
    /// What the block or the store throws, which ends the sequence.
    public typealias Failure = any Error

    fileprivate let access: any DatabaseAccess
    fileprivate let hub: ChangeHub
    fileprivate let fetch: @Sendable (Database) throws -> Value

    /// Begins an observation. Each iterator has its own.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observation: self) }

    /// An observation that has begun.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let observation: ValueObservation
        private var tables: Set<TableName> = []
        private var changes: DatabaseChangeSequence.AsyncIterator?
        /// Whether the last value comes from tables that were observed before it was read.
        private var isUpToDate = false
        private var isOver = false
        private var last: Value?

        fileprivate init(observation: ValueObservation) { self.observation = observation }

        /// Waits for the next value.
        public mutating func next() async throws -> Value? { try await next(isolation: nil) }

        /// Returns the value at once the first time, and later when it has changed; `nil` when the queue or pool has
        /// ended or the task was cancelled. Throws what the block throws.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Value? {
            while !isOver {
                isOver = true
                if isUpToDate { guard await changes?.next(isolation: actor) != nil else { return nil } }
                guard let (value, read) = try await observation.read() else { return nil }
                isOver = false
                isUpToDate = changes != nil && read.isSubset(of: tables)
                if !isUpToDate {
                    tables.formUnion(read)
                    changes = DatabaseChangeSequence(tables, observation.hub).makeAsyncIterator()
                }
                if value != last {
                    last = value
                    return value
                }
            }
            return nil
        }
    }

    /// Returns the value, and the tables that it comes from; `nil` if nobody waits for it any more.
    private func read() async throws -> (Value, Set<TableName>)? {
        do {
            return try await access.read { [fetch] db in
                try db.additions.hooks.recordingReads { try fetch(db) }
            }
        } catch is CancellationError where Task.isCancelled {
            return nil
        } catch let error as DatabaseError where error.reason == .shutDown {
            return nil
        }
    }
}

extension DatabaseQueue {
    /// Observes a value that a block reads.
    ///
    /// ```swift
    /// let open = queue.observe { db in try db.executeQuery("SELECT * FROM task WHERE done = 0").all(Task.self) }
    /// for try await tasks in open { show(tasks) }
    /// ```
    /// The block runs as in `read`: once at the beginning, and after each commit of this queue to a table that it
    /// has read. Which tables these are is asked of SQLite, so the block may read whatever it needs, also views. If it
    /// uses a pragma that reads more than the schema and settings, such as `integrity_check`, it runs after each
    /// commit. It must depend on nothing else that changes. Commits of other queues, pools or processes are not seen,
    /// nor those to a file that is attached twice by its other name.
    ///
    /// Nothing happens before the loop begins.
    public func observe<Value: Equatable & Sendable>(
        _ block: @escaping @Sendable (Database) throws -> Value
    ) -> ValueObservation<Value> {
        ValueObservation(access: self, hub: changeHub, fetch: block)
    }
}

extension DatabasePool {
    /// Observes a value that a block reads, as ``DatabaseQueue/observe(_:)`` does. The block runs on a connection that
    /// reads, so it keeps no writer waiting.
    public func observe<Value: Equatable & Sendable>(
        _ block: @escaping @Sendable (Database) throws -> Value
    ) -> ValueObservation<Value> {
        ValueObservation(access: self, hub: changeHub, fetch: block)
    }
}
