internal import SQLiteEngine

/// A SQLite object that must end before its connection: an open blob or a backup. Statements have a separate list.
protocol ConnectionHandle: AnyObject {
    /// Gives the pointer away, at most once. Only the connection calls this, under its lock.
    func takePointer() -> OpaquePointer?
    /// Ends the object. Returns SQLite's code for a failure of the end itself, not one that an earlier call has
    /// reported.
    static func end(_ pointer: OpaquePointer) -> Int32
}

/// Tracks the handles of a connection, and those that wait for a thread that may end them.
///
/// Any thread may drop a handle. So each pointer is claimed exactly once, under the registry's lock, by whoever ends
/// it: its last user or the closing connection.
// @unchecked: the pointers only pass from one owner to the next, under the lock.
struct HandleRegistry: @unchecked Sendable {
    /// Pointers that belong to the holder of this claim. They end outside the lock, because ending may call anything.
    // @unchecked: as for the registry.
    struct Claim: @unchecked Sendable {
        fileprivate(set) var pointers: [(pointer: OpaquePointer, kind: any ConnectionHandle.Type)] = []
        fileprivate var statements: [PreparedStatement] = []
        /// The users of the statements, which the statements kept alive.
        fileprivate var users: [AnyObject] = []

        var first: OpaquePointer? { pointers.first?.pointer }
        var isEmpty: Bool { pointers.isEmpty && statements.isEmpty && users.isEmpty }

        /// - Parameters:
        ///   - connection: the connection of these handles. Ending a blob may commit a transaction, and read pages for
        ///     that.
        ///   - failed: called for each end that failed, with the statement if there is one.
        func end(
            on connection: OpaquePointer?,
            _ failed: (_ code: Int32, _ statement: PreparedStatement?) -> Void
        ) {
            for (pointer, kind) in pointers {
                let code = PageWatch.during(connection) { kind.end(pointer) }
                if code != SQLITE_OK { failed(code, nil) }
            }
            for statement in statements { statement.end(failed) }
        }

        fileprivate mutating func add(_ taken: Statement.Taken) {
            statements.append(taken.prepared)
            if let user = taken.user { users.append(user) }
        }
    }

    private var open: [ObjectIdentifier: any ConnectionHandle] = [:]
    /// The first of the statements in use, a linked list. The list retains each of them.
    private var statements: Unmanaged<Statement>?
    private var orphans = Claim()
    private var cache = StatementCache()
    private var isClosed = false
    /// The threads that are ending something they have claimed.
    private var enders: [UInt] = []

    mutating func add(_ handle: any ConnectionHandle) {
        open[ObjectIdentifier(handle)] = handle
    }

    /// Claims the pointer of the handle. The claim is empty if the pointer was already taken.
    mutating func claim(_ handle: any ConnectionHandle) -> Claim {
        var claim = Claim()
        open[ObjectIdentifier(handle)] = nil
        if let pointer = handle.takePointer() { claim.pointers = [(pointer, type(of: handle))] }
        return claim
    }

    /// Records that a thread ends what it has claimed, until ``hasEnded(_:)``.
    mutating func willEnd(_ thread: UInt) { enders.append(thread) }

    mutating func hasEnded(_ thread: UInt) {
        if let index = enders.firstIndex(of: thread) { enders.remove(at: index) }
    }

    /// Whether any thread but this one is ending something.
    func isEnding(besides thread: UInt) -> Bool { enders.contains { $0 != thread } }

    /// Claims the pointer of the handle, and keeps it for ``takeOrphans()``.
    mutating func orphan(_ handle: any ConnectionHandle) {
        orphans.pointers += claim(handle).pointers
    }

    var hasOrphans: Bool { !orphans.isEmpty }

    mutating func takeOrphans() -> Claim {
        defer { orphans = Claim() }
        return orphans
    }

    /// Returns the handles of one kind that are in use.
    func all<Handle: ConnectionHandle>(_ kind: Handle.Type) -> [Handle] {
        open.values.compactMap { $0 as? Handle }
    }

    /// Claims everything. From now on, nothing is kept.
    mutating func close() -> Claim {
        var all = takeOrphans()
        for handle in Array(open.values) { all.pointers += claim(handle).pointers }
        while let statement = statements?.takeUnretainedValue(), let taken = claim(statement) { all.add(taken) }
        all.statements += cache.removeAll()
        isClosed = true
        return all
    }

    // MARK: Statements in use

    mutating func add(_ statement: Statement) {
        let entry = Unmanaged.passRetained(statement)
        statement.nextInUse = statements
        statements?._withUnsafeGuaranteedRef { $0.previousInUse = entry }
        statements = entry
    }

    /// Removes the statement from the list; `nil` if it was already removed.
    mutating func claim(_ statement: Statement) -> Statement.Taken? {
        guard let taken = statement.take() else { return nil }
        let (next, previous) = (statement.nextInUse, statement.previousInUse)
        (statement.nextInUse, statement.previousInUse) = (nil, nil)
        next?._withUnsafeGuaranteedRef { $0.previousInUse = previous }
        if let previous { previous._withUnsafeGuaranteedRef { $0.nextInUse = next } } else { statements = next }
        // This does not release the last reference: the caller has one.
        Unmanaged.passUnretained(statement).release()
        return taken
    }

    /// Keeps a claimed statement for ``takeOrphans()``.
    mutating func orphan(_ statement: PreparedStatement) { orphans.statements.append(statement) }

    /// Returns the statements in use for which `condition` holds.
    func statements(where condition: (Statement) -> Bool) -> [Statement] {
        var result: [Statement] = []
        var candidate = statements
        while let entry = candidate {
            let statement = entry.takeUnretainedValue()
            if condition(statement) { result.append(statement) }
            candidate = statement.nextInUse
        }
        return result
    }

    // MARK: Statements that wait for their next use

    mutating func takeFromCache(_ key: StatementCache.Key) -> PreparedStatement? { cache.take(key) }

    /// Keeps a claimed statement in the cache. Returns the statement that must be finalized, if any.
    mutating func keep(_ statement: PreparedStatement) -> PreparedStatement? {
        // Another thread may have closed the registry in the meantime, without knowing of this statement.
        isClosed ? statement : cache.put(statement)
    }

    mutating func clearCache() -> Claim { surplus(cache.removeAll()) }

    mutating func setCacheCapacity(_ capacity: Int) -> Claim { surplus(cache.setCapacity(capacity)) }

    private func surplus(_ statements: [PreparedStatement]) -> Claim {
        var claim = Claim()
        claim.statements = statements
        return claim
    }
}
