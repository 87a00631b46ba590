import Foundation
internal import SQLiteEngine
import Synchronization

/// Sole owner of a `sqlite3 *` and of what is open on it: statements, blobs, backups.
final class Connection {
    private(set) var handle: OpaquePointer?
    /// Which thread may use it, and end its handles; `nil` where SQLite serialises the calls of all.
    let gate: ThreadGate?
    private let registry = Guarded(HandleRegistry())
    /// See ``noteUnnoticed(_:)``. Under a lock, because what is dropped may end on any thread.
    private let unnoticed = Guarded<DatabaseError?>(nil)
    let statementGuard = StatementGuard()
    /// Whether a statement may have had SQLite defer foreign keys. https://www.sqlite.org/pragma.html#pragma_defer_foreign_keys
    var mayDeferForeignKeys = false
    /// Files that the library has attached in plaintext, by the names of their schemas in small letters.
    var plaintextSchemas: Set<String> = []
    /// How much SQL text SQLite was given to compile.
    var compiledByteCount = 0
    /// Frames in the log at the last commit, once they are counted.
    var walFrameCount: Int32 = 0
    /// What `PRAGMA synchronous` was set to for "main", which attached files get too.
    var synchronous: String?
    /// Where the file of "main" was when it was opened; `nil` without a file.
    private(set) var mainDevice: dev_t?
    /// By the name of the attached file, in small letters; `main` for the file that is open. Given back at closing.
    var usageLocks: [String: UsageLock] = [:]
    /// What it reads the file through, if it only looks at it.
    var view: AnyObject?
    /// What closures of the caller threw, until it is met as a result code.
    var thrown = ThrownErrors()
    /// What SQLite calls meanwhile; kept as long as it may.
    var hooks: Hooks?
    /// What a page was like that the last call read, until it is met as a result code.
    var readFailure: PageWatch.Failure?
    /// Whether SQLite has told this connection that it, or its file, is of no use as it is; see ``noteUnfitness(_:)``.
    var isUnfit = false
    /// Whether ``hooks`` observe changes.
    var isObserved = false { didSet { chooseSteps() } }
    /// Whether statements may take a limited time only.
    private var isTimed = false { didSet { chooseSteps() } }
    /// Whether nothing is to be done around a step.
    private var stepsPlainly = true
    /// Whether it is to be asked before the next statement how much the transaction has changed.
    var asksForHeldChanges = false
    /// Whether a transaction is to be rolled back before the next statement, which could not be in a function that a
    /// statement calls.
    var owesRollback = false { didSet { asksForHeldChanges = asksForHeldChanges || owesRollback } }
    /// How many statements are being stepped, each in a function that the one before it calls.
    private(set) var depth = 0
    /// Whether a function ended the transaction of a writing statement that calls it, and that has to fail for it.
    private(set) var hasLostTransaction = false
    /// Who bounds and stops what runs on it; `nil` for nobody.
    var supervision: Supervision? {
        didSet {
            supervisor = supervision.map { .passUnretained($0) }
            isTimed = supervision?.timeLimit != nil
        }
    }
    /// The same, to be asked for each statement.
    private var supervisor: Unmanaged<Supervision>?
    /// How dates are stored and read as text; `nil` for seconds.
    var dateFormat: DateFormatter?
    /// Waits for locks in place of SQLite, on supervised connections.
    var busyWait: BusyWait?
    /// The thread that is in a hook, 0 for none, ``replaced`` while a backup writes to it.
    private let hookThread = Atomic<UInt>(0)
    /// No thread's number.
    private static let replaced = UInt.max

    /// https://www.sqlite.org/c3ref/open.html
    init(
        path: String,
        flags: Int32,
        vfs: String? = nil,
        gate: ThreadGate? = nil
    ) throws(DatabaseError) {
        Engine.start()
        if flags & SQLITE_OPEN_URI != 0 {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "URI filenames are off, because they can hold a key. Pass a path without SQLITE_OPEN_URI."
            )
        }
        if path.utf8.contains(0) {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .misuse,
                message: "The path holds a NUL byte, at which the system would cut it off. Nothing was opened."
            )
        }
        self.gate = gate
        let mutex = gate == nil ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX
        let cleared = flags & ~(SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOMUTEX)
        // Libraries built with SQLITE_USE_URI take "file:" for a URI whatever the flags say.
        let literal = path.hasPrefix("file:") ? "./" + path : path
        let vfs = try GuardedVFS.name(guarding: vfs)
        let code = sqlite3_open_v2(literal, &handle, cleared | mutex, vfs)
        guard code == SQLITE_OK else {
            let error = Connection.openError(handle, code: code, path: path)
            // It never opened.
            sqlite3_close_v2(handle)
            handle = nil
            throw error
        }
        // It only sets a flag, and cannot fail.
        sqlite3_extended_result_codes(handle, 1)
        installAuthorizer()
        // What cannot be examined has a number that no file has.
        mainDevice = mainFilePath.map { (try? FileSystem.status($0))?.st_dev ?? .max }
    }

    deinit {
        close()
    }

    // MARK: Gate

    private static var currentThread: UInt { ThreadGate.currentThread }

    /// Whether this thread may make SQLite end a handle.
    private var mayEnd: Bool {
        let thread = Connection.currentThread
        guard hookThread.load(ordering: .relaxed) != thread else { return false }
        return gate?.isInside ?? true
    }

    /// Ends what was dropped where nobody could end it; for the thread inside the gate.
    func endOrphans() {
        end(registry.withLock { $0.takeOrphans() })
    }

    // MARK: Hooks

    /// Runs a closure of the caller that may not use the connection.
    func withinHook<T>(_ closure: () throws -> T) rethrows -> T {
        let outer = hookThread.exchange(Connection.currentThread, ordering: .relaxed)
        defer { hookThread.store(outer, ordering: .relaxed) }
        return try closure()
    }

    /// Runs what replaces all that the connection has. Between the steps of a backup SQLite lets nobody use its destination,
    /// and does not look. https://www.sqlite.org/c3ref/backup_finish.html
    func whileReplaced<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let outer = hookThread.exchange(Connection.replaced, ordering: .relaxed)
        defer { hookThread.store(outer, ordering: .relaxed) }
        return try body()
    }

    /// SQLite allows no use of a connection from within its hooks, nor while a backup writes to it.
    @inline(__always)
    func requireNoHook() throws(DatabaseError) {
        let thread = hookThread.load(ordering: .relaxed)
        if thread != 0 { throw thread == Connection.replaced ? .beingReplaced : .usedByHook }
    }

    /// Whether SQLite is at work further up the call stack, so that the connection cannot be closed.
    var isRunning: Bool { depth > 0 || hookThread.load(ordering: .relaxed) == Connection.currentThread }

    // MARK: Steps

    /// Whether nobody has to be asked before a statement runs.
    @inline(__always)
    func startsFreely(_ isReadOnly: Bool) -> Bool {
        guard !asksForHeldChanges else { return false }
        guard let supervisor else { return true }
        guard depth == 0 else { return false }
        return supervisor._withUnsafeGuaranteedRef { $0.startsFreely(isReadOnly) }
    }

    /// Before the first step of a statement, unless it ``startsFreely(_:)``.
    @inline(never)
    func willStart(_ statement: Statement) throws(DatabaseError) {
        if owesRollback, depth == 0 {
            owesRollback = false
            guard rollBack() else {
                owesRollback = true
                throw .transactionLost
            }
        }
        // What ends the transaction is not refused for what could not be written of it.
        let prepared = statement.prepared
        if asksForHeldChanges, depth == 0, !prepared.controlsTransaction, !prepared.controlsSavepoint {
            try writeHeldChanges()
        }
        try supervision?.willStart(statement)
    }

    /// https://www.sqlite.org/c3ref/step.html
    @inline(__always)
    func step(_ statement: Statement, _ pointer: OpaquePointer) -> Int32 {
        watchingPages {
            guard depth == 0, stepsPlainly else { return nestedStep(statement, pointer) }
            depth = 1
            defer { depth = 0 }
            hasLostTransaction = false
            return sqlite3_step(pointer)
        }
    }

    private func chooseSteps() { stepsPlainly = !isObserved && !isTimed }

    /// In a function that another statement calls, under observation, or for a limited time.
    @inline(never)
    private func nestedStep(_ statement: Statement, _ pointer: OpaquePointer) -> Int32 {
        depth += 1
        defer { depth -= 1 }
        guard depth > 1 else {
            hasLostTransaction = false
            guard isTimed, let supervision else { return observedStep(statement, pointer) }
            return supervision.stepping(statement) {
                isObserved ? observedStep(statement, pointer) : sqlite3_step(pointer)
            }
        }
        let wasInTransaction = !isAutocommit
        let code = isObserved ? observedStep(statement, pointer) : sqlite3_step(pointer)
        // SQLite would let the outer statement go on writing without a transaction, and report success for what it loses.
        if wasInTransaction, isAutocommit, hasRunningWriter { hasLostTransaction = true }
        return code
    }

    // MARK: Handles

    /// Owns the handle from now on; also ends those that were dropped where nobody could.
    func register(_ handle: any ConnectionHandle) {
        let mayEnd = mayEnd
        end(
            registry.withLock { registry in
                registry.add(handle)
                return mayEnd ? registry.takeOrphans() : HandleRegistry.Claim()
            }
        )
    }

    private func register(_ statement: Statement) {
        let hasOrphans = registry.withLock { registry in
            registry.add(statement)
            return registry.hasOrphans
        }
        if hasOrphans, mayEnd { endOrphans() }
    }

    /// Ends the handle, now if this thread may, else when the owner of the gate comes by.
    func end(_ handle: any ConnectionHandle) {
        ending(handle) { end($0) }
    }

    /// Ends what was claimed, and notes what could not be completed.
    private func end(_ claim: HandleRegistry.Claim) {
        claim.end(on: handle) { code, statement in noteUnnoticed(endFailure(code, of: statement)) }
    }

    /// Has the handle's pointer ended outside the lock, because SQLite may call something that takes it. Nothing is claimed
    /// if somebody else has it, or if this thread may not end it.
    func ending<T>(_ handle: any ConnectionHandle, _ body: (HandleRegistry.Claim) throws -> T) rethrows -> T {
        let (mayEnd, thread) = (mayEnd, Connection.currentThread)
        let claimed = registry.withLock { registry -> HandleRegistry.Claim in
            registry.willEnd(thread)
            if mayEnd { return registry.claim(handle) }
            registry.orphan(handle)
            return HandleRegistry.Claim()
        }
        defer { registry.withLock { $0.hasEnded(thread) } }
        return try body(claimed)
    }

    /// Ends the blobs that are open.
    func endBlobs() {
        for blob in registry.withLock({ $0.all(BlobHandle.self) }) { end(blob) }
    }

    // MARK: Statements

    /// Prepares the first statement of `sql`, or takes it from the cache. The statement's pointer is `nil` for empty or
    /// comment-only text. https://www.sqlite.org/c3ref/prepare.html
    func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        let key = StatementCache.Key(sql)
        if let statement = takeFromCache(key) { return try permitted(statement) }
        return try Array(sql.utf8).withUnsafeBufferPointer { bytes throws(DatabaseError) in
            let (statement, end) = try prepare(bytes, from: 0)
            var rest = SQLTokenizer(bytes, from: end)
            statement.hasTail = rest.hasStatement()
            if statement.kind == .reusable, !statement.hasTail { statement.prepared.cacheKey = key }
            return statement
        }
    }

    private func takeFromCache(_ key: StatementCache.Key) -> Statement? {
        let (statement, hasOrphans) = registry.withLock { registry -> (Statement?, Bool) in
            guard let prepared = registry.takeFromCache(key) else { return (nil, false) }
            let statement = Statement(prepared, connection: self)
            registry.add(statement)
            return (statement, registry.hasOrphans)
        }
        if hasOrphans, mayEnd { endOrphans() }
        return statement
    }

    /// Prepares the next statement of a script, and tells where it ends.
    func prepare(
        _ sql: UnsafeBufferPointer<UInt8>,
        from start: Int
    ) throws(DatabaseError) -> (Statement, end: Int) {
        let (prepared, end) = try compile(sql, from: start)
        let statement = Statement(prepared, connection: self)
        if prepared.pointer != nil { register(statement) }
        return (try permitted(statement), end)
    }

    /// The statement, unless the present block may not have it.
    private func permitted(_ statement: Statement) throws(DatabaseError) -> Statement {
        guard let supervision else { return statement }
        do throws(DatabaseError) {
            try supervision.check(statement)
        } catch {
            statement.close()
            throw error
        }
        return statement
    }

    /// Ends a use of the statement: it goes back to the cache, or is finalised, now if this thread may, else when the
    /// owner of the gate comes by.
    /// - Returns: why its execution could not be completed, if it ends now.
    func release(_ statement: Statement) -> DatabaseError? {
        let (mayEnd, thread) = (mayEnd, Connection.currentThread)
        // Its user is let go here, outside of the lock: nobody else may be keeping it alive.
        let taken = registry.withLock { registry -> Statement.Taken? in
            guard let taken = registry.claim(statement) else { return nil }
            if mayEnd { registry.willEnd(thread) } else { registry.orphan(taken.prepared) }
            return taken
        }
        guard mayEnd, let prepared = taken?.prepared, let pointer = prepared.pointer else { return nil }
        var failure: DatabaseError?
        if statement.hasRun {
            let code = prepared.reset(pointer)
            if code != SQLITE_OK { failure = endFailure(code, of: prepared) }
        }
        var surplus: PreparedStatement? = prepared
        if prepared.cacheKey != nil, !statement.hasFailed, failure == nil {
            prepared.clear(pointer)
            surplus = registry.withLock { registry in
                let surplus = registry.keep(prepared)
                if surplus == nil { registry.hasEnded(thread) }
                return surplus
            }
        }
        guard let surplus else { return nil }
        // It has ended already.
        surplus.end { _, _ in }
        registry.withLock { $0.hasEnded(thread) }
        return failure
    }

    /// Keeps a failure that no call could throw, the first one until it is taken: who ends a block looks whether there is
    /// one. From any thread.
    func noteUnnoticed(_ failure: DatabaseError) {
        unnoticed.withLock { if $0 == nil { $0 = failure } }
    }

    /// What was noted since the last time.
    func takeUnnoticedFailure() -> DatabaseError? {
        unnoticed.withLock { failure in
            defer { failure = nil }
            return failure
        }
    }

    /// Ends the uses that keep somebody alive: those of result sets.
    func endUses() {
        if mayEnd { endOrphans() }
        for statement in registry.withLock({ $0.statements { $0.user != nil } }) { statement.close() }
    }

    /// Whether a result set is in use.
    var isInUse: Bool { registry.withLock { !$0.statements { $0.activeUser != nil }.isEmpty } }

    private var hasRunningWriter: Bool { registry.withLock { !$0.statements { $0.isRunningWriter }.isEmpty } }

    /// Finalises the statements that are kept for later; those in use are not touched.
    func clearCache() {
        end(registry.withLock { $0.clearCache() })
    }

    /// How many statements are kept for later uses; 0 for none.
    func setCacheCapacity(_ capacity: Int) {
        end(registry.withLock { $0.setCacheCapacity(capacity) })
    }

    /// Ends every handle and closes. Idempotent.
    /// - Returns: false if SQLite still had something of this connection in use; it is then closed when that ends. Also
    ///   false, with nothing done, while ``isRunning``.
    @discardableResult
    func close() -> Bool {
        guard let handle else { return true }
        guard !isRunning else { return false }
        detach(handle)
        // After SQLite, which may still move its log into the file.
        defer { releaseLocks() }
        if PageWatch.during(handle, { sqlite3_close(handle) }) != SQLITE_BUSY { return true }
        // Always OK: what is in use ends it.
        sqlite3_close_v2(handle)
        return false
    }

    /// Leaves the connection as it is, with its memory and its file descriptor, until the process ends.
    func abandon() {
        guard let handle, !isRunning else { return }
        detach(handle)
        releaseLocks()
    }

    private func releaseLocks() {
        for lock in usageLocks.values { lock.release() }
    }

    /// Ends all that uses the handle, and forgets it.
    private func detach(_ handle: OpaquePointer) {
        end(registry.withLock { $0.close() })
        // What other threads have dropped this very moment is gone soon.
        while registry.withLock({ $0.isEnding(besides: Connection.currentThread) }) { sched_yield() }
        settleChanges()
        hooks?.detach(from: handle)
        hooks = nil
        // What outlives this object must not ask it. It is only remembered, which cannot fail.
        sqlite3_set_authorizer(handle, nil, nil)
        self.handle = nil
        guardRules = nil
    }
}

extension DatabaseError {
    fileprivate static var usedByHook: DatabaseError {
        @inline(never) get {
            DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    A hook, authorizer or progress handler used the database that called it, which SQLite does not \
                    allow. Nothing was executed. Do it after the statement, or on another connection.
                    """
            )
        }
    }

    fileprivate static var beingReplaced: DatabaseError {
        @inline(never) get {
            DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "A backup is writing to this database. Nothing was executed. Use it when the backup has ended."
            )
        }
    }
}
