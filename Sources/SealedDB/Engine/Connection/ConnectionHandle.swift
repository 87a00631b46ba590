internal import SQLiteEngine

/// Something of SQLite's that must end before its connection does: an open blob, a backup. Statements have a list of
/// their own.
protocol ConnectionHandle: AnyObject {
    /// Gives the pointer away, once. For the connection alone, under its lock.
    func takePointer() -> OpaquePointer?
    /// Returns SQLite's code: not what an earlier call has reported, but what went wrong with the end itself.
    static func end(_ pointer: OpaquePointer) -> Int32
}

/// Which handles a connection has, who may end them, and which of them wait for that.
///
/// Handles may be dropped by anybody on any thread. Each pointer is therefore claimed exactly once, under the lock around
/// the registry, by whoever ends it: its last user or the closing connection.
// @unchecked: the pointers are only handed from one owner to the next, under the lock.
struct HandleRegistry: @unchecked Sendable {
    /// What now belongs to whoever holds this. It is let go outside of the lock, because its end may call anything.
    // @unchecked: as for the registry.
    struct Claim: @unchecked Sendable {
        fileprivate(set) var pointers: [(pointer: OpaquePointer, kind: any ConnectionHandle.Type)] = []
        fileprivate var statements: [PreparedStatement] = []
        /// What the statements' users kept alive.
        fileprivate var users: [AnyObject] = []

        var first: OpaquePointer? { pointers.first?.pointer }
        var isEmpty: Bool { pointers.isEmpty && statements.isEmpty && users.isEmpty }

        /// - Parameters:
        ///   - connection: what they belong to. The end of a blob commits what it was part of, and may read pages for that.
        ///   - failed: called for each end that went wrong, with the statement, if it is one's.
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
    /// The statements in use, each of which is retained for its place in the list.
    private var statements: Unmanaged<Statement>?
    private var orphans = Claim()
    private var cache = StatementCache()
    private var isClosed = false
    /// The threads that are ending something which they have claimed.
    private var enders: [UInt] = []

    mutating func add(_ handle: any ConnectionHandle) {
        open[ObjectIdentifier(handle)] = handle
    }

    /// Takes the pointer out of the handle; nothing if somebody else did.
    mutating func claim(_ handle: any ConnectionHandle) -> Claim {
        var claim = Claim()
        open[ObjectIdentifier(handle)] = nil
        if let pointer = handle.takePointer() { claim.pointers = [(pointer, type(of: handle))] }
        return claim
    }

    /// A thread ends what it has claimed, until ``hasEnded(_:)``.
    mutating func willEnd(_ thread: UInt) { enders.append(thread) }

    mutating func hasEnded(_ thread: UInt) {
        if let index = enders.firstIndex(of: thread) { enders.remove(at: index) }
    }

    /// Whether a thread other than this one is ending something.
    func isEnding(besides thread: UInt) -> Bool { enders.contains { $0 != thread } }

    /// Takes the pointer out of the handle, for ``takeOrphans()``.
    mutating func orphan(_ handle: any ConnectionHandle) {
        orphans.pointers += claim(handle).pointers
    }

    var hasOrphans: Bool { !orphans.isEmpty }

    mutating func takeOrphans() -> Claim {
        defer { orphans = Claim() }
        return orphans
    }

    /// The handles of one kind that are in use.
    func all<Handle: ConnectionHandle>(_ kind: Handle.Type) -> [Handle] {
        open.values.compactMap { $0 as? Handle }
    }

    /// Takes everything; nothing is kept from now on.
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

    /// Takes it out of the list; `nil` if somebody else did.
    mutating func claim(_ statement: Statement) -> Statement.Taken? {
        guard let taken = statement.take() else { return nil }
        let (next, previous) = (statement.nextInUse, statement.previousInUse)
        (statement.nextInUse, statement.previousInUse) = (nil, nil)
        next?._withUnsafeGuaranteedRef { $0.previousInUse = previous }
        if let previous { previous._withUnsafeGuaranteedRef { $0.nextInUse = next } } else { statements = next }
        // Not the last reference: the caller has one.
        Unmanaged.passUnretained(statement).release()
        return taken
    }

    /// For ``takeOrphans()``.
    mutating func orphan(_ statement: PreparedStatement) { orphans.statements.append(statement) }

    /// The statements in use for which `condition` holds.
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

    /// Keeps a claimed statement; returns what is to be finalised.
    mutating func keep(_ statement: PreparedStatement) -> PreparedStatement? {
        // Closed by another thread meanwhile, which could not know of this statement.
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
