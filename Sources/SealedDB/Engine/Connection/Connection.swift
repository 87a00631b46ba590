internal import CSealedDBSystem
import Foundation
internal import SQLiteEngine
import Synchronization

/// The sole owner of a `sqlite3 *` and of everything that is open on it: statements, blobs and backups.
final class Connection {
    private(set) var handle: OpaquePointer?
    /// Decides which thread may use the connection and end its handles; `nil` if SQLite serializes the calls of all
    /// threads.
    let gate: ThreadGate?
    private let registry = Guarded(HandleRegistry())
    /// See ``noteUnnoticed(_:)``. A lock guards it, because a dropped handle may end on any thread.
    private let unnoticed = Guarded<DatabaseError?>(nil)
    let statementGuard = StatementGuard()
    /// Whether a statement may have turned on deferred foreign keys.
    /// https://www.sqlite.org/pragma.html#pragma_defer_foreign_keys
    var mayDeferForeignKeys = false
    /// Whether SQL of the caller may have begun a savepoint.
    var mayHoldSavepoints = false
    /// The schema names, in lower case, of files that the library has attached in plaintext.
    var plaintextSchemas: Set<ExactText> = []
    /// Whether the main file is a new one that is removed if anything fails, so that nothing of it is stored then.
    var isDraft = false
    /// How many bytes of SQL text SQLite has compiled.
    var compiledByteCount = 0
    /// The number of frames in the log at the last commit, if ``countWALFrames()`` was called.
    var walFrameCount: Int32 = 0
    /// The value of `PRAGMA synchronous` set for "main". Attached files get the same value.
    var synchronous: String?
    /// The device of the file of "main" when it was opened; `nil` for a database without a file.
    private(set) var mainDevice: dev_t?
    /// The file of "main", once it is known that it stood at its path.
    var mainFile: stat?
    /// The usage locks, by lower-case schema name of the attached file; `main` for the main file. Closing releases
    /// them.
    var usageLocks: [ExactText: UsageLock] = [:]
    /// The salt that its passphrase was derived with; `nil` for another key.
    var derivationSalt: [UInt8]?
    /// What the connection reads the file through, if it only views the file.
    var view: AnyObject?
    /// Errors that closures of the caller threw, until their result code arrives.
    var thrown = ThrownErrors()
    /// The callbacks that SQLite calls. They are retained as long as SQLite may call them.
    var hooks: Hooks?
    /// The failed page that the last call read, until its result code arrives.
    var readFailure: PageWatch.Failure?
    /// Whether a first page was read whose code is wrong: one that is damaged, or of another key.
    var hasRefusedFirstPage = false
    /// Whether SQLite has reported that this connection, or its file, is unusable; see ``noteUnfitness(_:)``.
    var isUnfit = false
    /// Whether ``hooks`` observe changes.
    var isObserved = false { didSet { chooseSteps() } }
    /// Whether statements have a time limit.
    private var isTimed = false { didSet { chooseSteps() } }
    /// Whether a step needs no work before or after it.
    private var stepsPlainly = true
    /// Whether to check, before the next statement, how much the transaction has changed.
    var asksForHeldChanges = false
    /// Whether a result set or blob that writes may be unfinished, outside a transaction; see ``requireNoOpenWriter()``.
    var mayHaveOpenWriter = false
    /// Whether to roll back a transaction before the next statement. Within a function that a statement calls, the
    /// rollback was not possible.
    var owesRollback = false { didSet { asksForHeldChanges = asksForHeldChanges || owesRollback } }
    /// How many steps are nested: each but the first runs in a function that the previous statement calls.
    private(set) var depth = 0
    /// Whether a function ended the transaction of the writing statement that calls it, so that this statement must
    /// fail.
    private(set) var hasLostTransaction = false
    /// Limits and stops what runs on this connection; `nil` for no supervision.
    var supervision: Supervision? {
        didSet {
            supervisor = supervision.map { .passUnretained($0) }
            statementGuard.supervision = supervision
            isTimed = supervision?.timeLimit != nil
        }
    }
    /// The same object, without reference counting, because every statement asks it.
    private var supervisor: Unmanaged<Supervision>?
    /// The format in which dates are stored and read as text; `nil` for numbers of seconds.
    var dateFormat: DateFormatter?
    /// Waits for locks instead of SQLite's own handler, on supervised connections.
    var busyWait: BusyWait?
    private let process = ForkGuard.begin()
    /// Whether this is a child of the process that opened the connection: SQLite must not be called with it.
    @inline(__always)
    var isForked: Bool { process != ForkGuard.current }
    /// The thread that is in a hook; 0 for none; ``replaced`` while a backup writes to this connection.
    private let hookThread = Atomic<UInt>(0)
    /// A value that no thread has as its number.
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
        try FileSystem.requireNoNUL(path)
        self.gate = gate
        let mutex = gate == nil ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX
        let cleared = flags & ~(SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOMUTEX)
        // Libraries built with SQLITE_USE_URI treat "file:" as the start of a URI whatever the flags are.
        let literal = path.begins(with: "file:") ? "./" + path : path
        let vfs = try GuardedVFS.name(guarding: vfs)
        // In a variable, because Swift would watch a property whose address is given away at each access, and so at each row.
        var opened: OpaquePointer?
        // SQLite takes what stands there for the system's reason, also where it has refused the path itself.
        errno = 0
        let code = sqlite3_open_v2(literal, &opened, cleared | mutex, vfs)
        guard code == SQLITE_OK else {
            let error = Connection.openError(opened, code: code, path: path)
            // The database was never open, so closing the handle cannot fail.
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        guard hasNameInUTF8 else {
            // Nothing was read yet, so there is nothing that closing could lose.
            sqlite3_close_v2(handle)
            handle = nil
            throw .nameNotUTF8(path)
        }
        // A former connection may have had this address.
        sealeddb_forget_failures(UnsafeMutableRawPointer(handle))
        // This only sets a flag, and cannot fail.
        sqlite3_extended_result_codes(handle, 1)
        keepToOneThread()
        installAuthorizer()
        // If the file cannot be examined, this is a device number that no file has.
        mainDevice = mainFilePath.map { (try? FileSystem.status($0))?.st_dev ?? .max }
    }

    deinit {
        close()
    }

    // MARK: Gate

    private static var currentThread: UInt { ThreadGate.currentThread }

    /// Whether this thread may end a SQLite handle.
    private var mayEnd: Bool {
        guard !isForked else { return false }
        let thread = Connection.currentThread
        guard hookThread.load(ordering: .relaxed) != thread else { return false }
        return gate?.isInside ?? true
    }

    /// Ends handles that were dropped where no thread could end them. Only for the thread inside the gate.
    func endOrphans() {
        end(registry.withLock { $0.takeOrphans() })
    }

    // MARK: Hooks

    /// Runs a closure of the caller that must not use the connection.
    func withinHook<T>(_ closure: () throws -> T) rethrows -> T {
        let outer = hookThread.exchange(Connection.currentThread, ordering: .relaxed)
        defer { hookThread.store(outer, ordering: .relaxed) }
        return try closure()
    }

    /// Runs `body`, which replaces the whole database. Between the steps of a backup, nobody may use its destination,
    /// and SQLite does not check this. https://www.sqlite.org/c3ref/backup_finish.html
    func whileReplaced<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let outer = hookThread.exchange(Connection.replaced, ordering: .relaxed)
        defer { hookThread.store(outer, ordering: .relaxed) }
        return try body()
    }

    /// Throws within a hook, and while a backup writes to this connection: SQLite then allows no use of it.
    @inline(__always)
    func requireNoHook() throws(DatabaseError) {
        let thread = hookThread.load(ordering: .relaxed)
        if thread != 0 { throw thread == Connection.replaced ? .beingReplaced : .usedByHook }
    }

    /// Whether SQLite is at work further up the call stack, so that the connection cannot be closed.
    var isRunning: Bool { depth > 0 || hookThread.load(ordering: .relaxed) == Connection.currentThread }

    // MARK: Steps

    /// Whether a statement may start without any check.
    @inline(__always)
    func startsFreely(_ isReadOnly: Bool) -> Bool {
        guard !asksForHeldChanges, !mayHaveOpenWriter else { return false }
        guard let supervisor else { return true }
        guard depth == 0 else { return false }
        return supervisor._withUnsafeGuaranteedRef { $0.startsFreely(isReadOnly) }
    }

    /// Call this before the first step of a statement, unless ``startsFreely(_:)`` is true.
    @inline(never)
    func willStart(_ statement: Statement) throws(DatabaseError) {
        if owesRollback, depth == 0 {
            owesRollback = false
            guard rollBack() else {
                owesRollback = true
                throw .transactionLost
            }
        }
        let prepared = statement.prepared
        if mayHaveOpenWriter, !prepared.isReadOnly || prepared.controlsTransaction {
            try requireNoOpenWriter(statement)
        }
        // A statement that ends the transaction must not fail because held changes could not be written.
        if asksForHeldChanges, depth == 0, !prepared.controlsTransaction, !prepared.controlsSavepoint {
            try writeHeldChanges()
        }
        try supervision?.willStart(statement)
    }

    /// https://www.sqlite.org/c3ref/step.html
    @inline(__always)
    func step(_ statement: Statement, _ pointer: OpaquePointer) -> Int32 {
        // A transaction that the step begins would stay open although the step fails. One that is open has to end by a step.
        if sealeddb_some_have_failed() != 0, isAutocommit, let code = formerFailure() { return code }
        return watchingPages {
            guard depth == 0, stepsPlainly else { return nestedStep(statement, pointer) }
            depth = 1
            defer { depth = 0 }
            hasLostTransaction = false
            return sqlite3_step(pointer)
        }
    }

    private func chooseSteps() { stepsPlainly = !isObserved && !isTimed }

    /// Steps within a function that another statement calls, under observation, or with a time limit.
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
        // SQLite would let the outer statement continue without a transaction, and report success for changes that are
        // lost.
        if wasInTransaction, isAutocommit, hasRunningWriter { hasLostTransaction = true }
        return code
    }

    // MARK: Handles

    /// Takes ownership of the handle. Also ends handles that were dropped where no thread could end them.
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

    /// Ends the handle: now if this thread may, otherwise when the owner of the gate next can.
    func end(_ handle: any ConnectionHandle) {
        ending(handle) { end($0) }
    }

    /// Ends what was claimed, and records failures.
    private func end(_ claim: HandleRegistry.Claim) {
        guard !claim.isEmpty else { return }
        claim.end(on: handle) { code, statement in noteUnnoticed(endFailure(code, of: statement)) }
        settleEnd()
    }

    /// Claims the handle's pointer, and lets `body` end it outside the lock, because SQLite may call code that takes
    /// the lock. Nothing is claimed if the pointer was already taken, or if this thread may not end it.
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

    /// Ends the open blobs.
    func endBlobs() {
        for blob in registry.withLock({ $0.all(BlobHandle.self) }) { end(blob) }
    }

    // MARK: Statements

    /// Prepares the first statement of `sql`, or takes it from the cache. The statement's pointer is `nil` if the text
    /// is empty or only a comment. https://www.sqlite.org/c3ref/prepare.html
    func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        guard !isForked else { throw .forked }
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

    /// Prepares the next statement of a script, and returns the offset at which it ends.
    func prepare(
        _ sql: UnsafeBufferPointer<UInt8>,
        from start: Int
    ) throws(DatabaseError) -> (Statement, end: Int) {
        guard !isForked else { throw .forked }
        let (prepared, end) = try compile(sql, from: start)
        let statement = Statement(prepared, connection: self)
        if prepared.pointer != nil { register(statement) }
        return (try permitted(statement), end)
    }

    /// Returns the statement. Closes it and throws if the rules of the present block forbid it.
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

    /// Ends a use of the statement. It returns to the cache or is finalized: now if this thread may, otherwise when the
    /// owner of the gate next can.
    /// - Returns: why its execution could not be completed, if it ends now.
    func release(_ statement: Statement) -> DatabaseError? {
        let (mayEnd, thread) = (mayEnd, Connection.currentThread)
        // The user of the statement is released here, outside the lock: this may be its last reference.
        let taken = registry.withLock { registry -> Statement.Taken? in
            guard let taken = registry.claim(statement) else { return nil }
            if mayEnd { registry.willEnd(thread) } else { registry.orphan(taken.prepared) }
            return taken
        }
        guard mayEnd, let prepared = taken?.prepared, let pointer = prepared.pointer else {
            return isForked && taken != nil && statement.hasRun && !statement.isReadOnly ? .forked : nil
        }
        var failure: DatabaseError?
        if statement.hasRun {
            let code = prepared.reset(pointer)
            if code != SQLITE_OK { failure = endFailure(code, of: prepared) }
            if !prepared.isReadOnly { settleEnd() }
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
        // The statement was reset above, so ending it reports nothing new.
        surplus.end { _, _ in }
        registry.withLock { $0.hasEnded(thread) }
        return failure
    }

    /// Records a failure that no call could throw. The first failure is kept until it is taken. Blocks check for one at
    /// their end. May be called from any thread.
    func noteUnnoticed(_ failure: DatabaseError) {
        unnoticed.withLock { if $0 == nil { $0 = failure } }
    }

    /// Takes the failure recorded since the last call, if there is one.
    func takeUnnoticedFailure() -> DatabaseError? {
        unnoticed.withLock { failure in
            defer { failure = nil }
            return failure
        }
    }

    /// Closes the statements that keep a user alive: those of result sets.
    func endUses() {
        if mayEnd { endOrphans() }
        for statement in registry.withLock({ $0.statements { $0.user != nil } }) { statement.close() }
    }

    /// Whether a result set is in use.
    var isInUse: Bool { registry.withLock { !$0.statements { $0.activeUser != nil }.isEmpty } }

    var hasRunningWriter: Bool { registry.withLock { !$0.statements { $0.isRunningWriter }.isEmpty } }

    /// Finalizes the statements in the cache. Statements in use are not affected.
    func clearCache() {
        end(registry.withLock { $0.clearCache() })
    }

    /// Sets how many statements are kept for later uses; 0 for none.
    func setCacheCapacity(_ capacity: Int) {
        end(registry.withLock { $0.setCacheCapacity(capacity) })
    }

    /// Ends every handle and closes the connection. Calling it again has no effect.
    /// - Returns: false if something of this connection is still in use by SQLite, which then closes the connection
    ///   when that ends. Also false while ``isRunning``; then nothing is done.
    @discardableResult
    func close() -> Bool {
        guard let handle else { return true }
        guard !isForked else {
            forget()
            return false
        }
        guard !isRunning else { return false }
        detach(handle)
        // The locks are released after closing, because SQLite may still move its log into the file.
        defer { releaseLocks() }
        if PageWatch.during(handle, { sqlite3_close(handle) }) != SQLITE_BUSY {
            sealeddb_forget_failures(UnsafeMutableRawPointer(handle))
            return true
        }
        // Always OK: the connection closes when what is in use ends.
        sqlite3_close_v2(handle)
        return false
    }

    /// Leaves the SQLite connection as it is, with its memory and file descriptor, until the process ends.
    func abandon() {
        guard let handle, !isRunning else { return }
        Connection.abandoned.withLock { $0.append(UInt(bitPattern: handle)) }
        detach(handle)
        releaseLocks()
    }

    /// What was left so. Whoever looks for leaks finds here that it is meant.
    private static let abandoned = Guarded<[UInt]>([])

    /// For a child of the process that opened it, whose files, log and locks it shares: nothing of them is touched, and what
    /// there is in memory stays there.
    private func forget() {
        _ = registry.withLock { $0.close() }
        for lock in usageLocks.values { _ = Unmanaged.passRetained(lock) }
        handle = nil
    }

    private func releaseLocks() {
        for lock in usageLocks.values { lock.release() }
    }

    /// Ends everything that uses the handle, and forgets the handle.
    private func detach(_ handle: OpaquePointer) {
        end(registry.withLock { $0.close() })
        // Another thread may be ending something right now. It finishes soon.
        while registry.withLock({ $0.isEnding(besides: Connection.currentThread) }) { sched_yield() }
        settleChanges()
        hooks?.detach(from: handle)
        hooks = nil
        // The handle may outlive this object, and must not call it. This only sets a pointer, and cannot fail.
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
