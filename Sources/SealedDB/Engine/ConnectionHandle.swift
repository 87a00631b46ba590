/// Something of SQLite's that must end before its connection does: a prepared statement, an open blob, a backup.
protocol ConnectionHandle: AnyObject {
    /// Gives the pointer away, once. For the connection alone, under its lock.
    func takePointer() -> OpaquePointer?
    /// Whether it is writing further up the call stack.
    var isRunningWriter: Bool { get }
    static func end(_ pointer: OpaquePointer)
}

extension ConnectionHandle {
    var isRunningWriter: Bool { false }
}

/// Which handles a connection has, who may end them, and which of them wait for that.
///
/// Handles may be dropped by anybody on any thread. Each pointer is therefore claimed exactly once, under the lock around
/// the registry, by whoever ends it: its last user or the closing connection.
// @unchecked: the pointers are only handed from one owner to the next, under the lock.
struct HandleRegistry: @unchecked Sendable {
    /// Pointers that now belong to whoever holds this.
    // @unchecked: as for the registry.
    struct Claim: @unchecked Sendable {
        fileprivate(set) var pointers: [(pointer: OpaquePointer, kind: any ConnectionHandle.Type)] = []

        var first: OpaquePointer? { pointers.first?.pointer }

        func end() {
            for (pointer, kind) in pointers { kind.end(pointer) }
        }

        fileprivate mutating func add(_ pointers: [OpaquePointer]) {
            self.pointers += pointers.map { ($0, Statement.self) }
        }
    }

    private var open: [ObjectIdentifier: any ConnectionHandle] = [:]
    private var orphans = Claim()
    private var cache = StatementCache()
    private var isClosed = false
    /// The threads that are ending something which they have claimed.
    private var enders: [UInt] = []

    var hasRunningWriter: Bool { open.values.contains { $0.isRunningWriter } }

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
        all.add(cache.removeAll())
        isClosed = true
        return all
    }

    // MARK: Statements that wait for their next use

    mutating func takeFromCache(_ sql: String) -> StatementCache.Entry? { cache.take(sql) }

    /// Keeps a claimed statement; returns what is to be finalised.
    mutating func keep(_ entry: StatementCache.Entry, for sql: String) -> Claim {
        // Closed by another thread meanwhile, which could not know of this statement.
        surplus(isClosed ? [entry.pointer] : cache.put(entry, for: sql))
    }

    mutating func clearCache() -> Claim { surplus(cache.removeAll()) }

    mutating func setCacheCapacity(_ capacity: Int) -> Claim { surplus(cache.setCapacity(capacity)) }

    private func surplus(_ pointers: [OpaquePointer]) -> Claim {
        var claim = Claim()
        claim.add(pointers)
        return claim
    }
}
