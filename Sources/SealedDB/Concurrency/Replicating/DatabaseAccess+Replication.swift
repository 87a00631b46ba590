extension DatabaseQueue {
    /// How far the store has been shipped; `nil` without a ``Configuration/replication``. Does not wait, and may be called
    /// anywhere.
    public var replicationStatus: ReplicationStatus? { shipper?.status }

    /// Ships now, and returns when all that was committed before the call is in the repository, durably.
    ///
    /// ```swift
    /// try queue.write { db in try db.executeUpdate("INSERT INTO payment (sum) VALUES (?)", values: [100]) }
    /// try queue.replicate()
    /// ```
    /// Waits for no block, but opens the store if it is closed. How long it takes is up to the repository.
    /// - Throws: ``DatabaseError`` if the store has no ``Configuration/replication``, or could not be shipped: what was
    ///   committed is in the store then, and is shipped later unless the message says otherwise.
    public func replicate() throws {
        let shipper = try Shipper.required(shipper)
        if !shipper.isFollowing { try writer.inDatabase { _ in } }
        try shipper.ship()
    }

    /// Like the synchronous form, but does not block a thread that tasks share.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled, and it is not known whether what was
    ///   committed is in the repository.
    public func replicate() async throws {
        let shipper = try Shipper.required(shipper)
        if !shipper.isFollowing { try await writer.inDatabase { _ in } }
        try await shipper.ship()
    }
}

extension DatabasePool {
    /// How far the store has been shipped; `nil` without a ``Configuration/replication``. Does not wait, and may be called
    /// anywhere.
    public var replicationStatus: ReplicationStatus? { shipper?.status }

    /// Ships now, and returns when all that was committed before the call is in the repository, durably.
    ///
    /// Waits for no block, but opens the store if it is closed. How long it takes is up to the repository.
    /// - Throws: ``DatabaseError`` if the store has no ``Configuration/replication``, or could not be shipped: what was
    ///   committed is in the store then, and is shipped later unless the message says otherwise.
    public func replicate() throws {
        let shipper = try Shipper.required(shipper)
        if !shipper.isFollowing { try writer.inDatabase { _ in } }
        try shipper.ship()
    }

    /// Like the synchronous form, but does not block a thread that tasks share.
    /// - Throws: as the synchronous form; `CancellationError` if the task was cancelled, and it is not known whether what was
    ///   committed is in the repository.
    public func replicate() async throws {
        let shipper = try Shipper.required(shipper)
        if !shipper.isFollowing { try await writer.inDatabase { _ in } }
        try await shipper.ship()
    }
}

extension Shipper {
    fileprivate static func required(_ shipper: Shipper?) throws(DatabaseError) -> Shipper {
        if let shipper { return shipper }
        throw DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The configuration of the queue or pool has no replication, so nothing is shipped. Give it one."
        )
    }
}
