/// A mistake that no test can notice, or that makes no difference to anybody, with the reason.
struct Explained: Sendable {
    let file: String
    let function: String
    let operation: Mutant.Operator
    /// What the changed code has in it.
    let text: String
    /// Which of those that are the same in all that is above; `nil` for all of them.
    let repetition: Int?
    let reason: String

    init(
        _ file: String,
        _ function: String,
        _ operation: Mutant.Operator,
        _ text: String,
        repetition: Int? = nil,
        _ reason: String
    ) {
        self.file = file
        self.function = function
        self.operation = operation
        self.text = text
        self.repetition = repetition
        self.reason = reason
    }

    static func reason(for mutant: Mutant) -> String? {
        all.first {
            $0.file == mutant.file && $0.function == mutant.function && $0.operation == mutant.operation
                && mutant.original.contains($0.text) && ($0.repetition ?? mutant.repetition) == mutant.repetition
        }?.reason
    }

    private static let all: [Explained] = cipher + copies + engine + keys + commands + others

    private static let others: [Explained] = [
        .init(
            "SealedDB/Engine/SQL/SQLStatementText.swift",
            "readVacuum",
            .assignmentDropped,
            "isFirst = false",
            "what stands behind INTO is not asked for again"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "guardedMethods",
            .alwaysTrue,
            "methods.pointee.iVersion >= 2",
            "each VFS that there is has these methods"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionAdditions.swift",
            "install",
            .errorSwallowed,
            "try function.register(on: connection)",
            "SQLite has taken the function before, and refuses it later for want of memory alone"
        ),
        .init(
            "SealedDB/Database/Files/Database+Keys.swift",
            "rotateKey",
            .alwaysTrue,
            "!KeySlots.exist(beside: path)",
            "the shipper goes on afterwards in any case"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "look",
            .alwaysTrue,
            "!Search.isOfKernel(process)",
            "tests run as root, who may look into all processes"
        ),
        .init(
            "SealedDB/Database/Files/Database+Backup.swift",
            "hasPagesInFiles",
            .alwaysTrue,
            "mainFilePath != nil",
            "a database in memory always has the other locking mode, which is asked for next"
        ),
        .init(
            "SealedDB/System/UsageLock.swift",
            "wait",
            .assignmentDropped,
            "pause = min(pause * 2",
            "it asks more often"
        ),
        .init(
            "sealdb/Commands/DiffCommand.swift",
            "encode",
            .errorSwallowed,
            "try difference.encode(to: encoder)",
            "JSON takes all that is in there"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "isOfKernel",
            .bindingFails,
            "FileSystem.kernelText",
            "root, as whom tests run, may look into every process"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "readsAll",
            .partDropped,
            "!isWhole",
            "SQLCipher 4.6 gives out the damaged page"
        ),
        .init(
            "SealedDB/Concurrency/Instruments.swift",
            "logged",
            .callDropped,
            "log.record(bytes)",
            "it is compiled with the trait Metrics alone"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+HeldChanges.swift",
            "holdChangesOfAttachedFiles",
            .alwaysTrue,
            "schema != \"main\"",
            "the main file is set to what it is set to already"
        ),
        .init(
            "SealedDB/Engine/Pages/FileView.swift",
            "closure",
            .assignmentDropped,
            "table.xSync",
            "a file that is only read is never synced"
        ),
        .init(
            "SealedDB/Keys/SourcedKey.swift",
            "newKey",
            .alwaysFalse,
            "key == stale",
            "the key that does not fit is tried once more"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionAdditions.swift",
            "install",
            .alwaysFalse,
            "!mayBeKeyedLater",
            "only a library without FTS5 refuses a tokenizer, and then no connection has taken it"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Compiling.swift",
            "compile",
            .bounds,
            "piece.count <= Int32.max",
            "a text of exactly 2 GiB; SQLite refuses all that are longer than 1,000,000,000 bytes"
        ),
        .init(
            "sealdb/Commands/RestoreCommand.swift",
            "run",
            .errorSwallowed,
            "The store that was there is now",
            "what cannot be written is told by the flush that follows"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "init",
            .callDropped,
            "sqlite3_close_v2(handle)",
            "nothing is lost but memory, which the leak sanitizer finds"
        ),
        .init(
            "SealedDB/Concurrency/Instruments.swift",
            "write",
            .callDropped,
            "failures.increment()",
            "counts only with the trait Metrics, whose tests are not among these"
        ),
        .init(
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            "add",
            .notAsked,
            "observed.contains(name)",
            "what is not observed is left out again where changes are told"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Structure.swift",
            "checksPagesFirst",
            .notAsked,
            "lastIndex(of: \"IntegrityCk\")",
            "for programs that no version of SQLite makes so far"
        ),
        .init(
            "SealedDB/System/FileSystem.swift",
            "synchronize",
            .bounds,
            "descriptor >= 0",
            "differs for descriptor 0 alone, which a process without standard input has"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "isKnown",
            .partDropped,
            "numbers.count >= 2",
            "every version of SQLCipher has a point in it"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLTokenizer.swift",
            "advance",
            .offByOne,
            "position + 1",
            "a number that begins with a point is two tokens then, and nobody asks for numbers"
        ),
        .init(
            "sealdb/Batch/JournalFile.swift",
            "check",
            .alwaysTrue,
            "fstat(descriptor, &status) == 0",
            "fails for no open file"
        ),
        .init(
            "SealedDB/System/FileSystem.swift",
            "openExclusively",
            .bounds,
            "descriptor >= 0",
            "differs for descriptor 0 alone, which a process without standard input has"
        ),
        .init(
            "SealedDB/Engine/Statement/MessageValues.swift",
            "end",
            .notAsked,
            "text.starts(with: start)",
            "differs only where SQLite finds parameters that the tokenizer does not, and random texts compare the two"
        ),
        .init(
            "SealedDB/Engine/Pages/BlobHandle.swift",
            "reopen",
            .assignmentDropped,
            "hasExpired = code != SQLITE_OK",
            "SQLite refuses a blob that could not be moved by itself"
        ),
        .init(
            "SealedDB/Database/Database+Errors.swift",
            "clarified",
            .alwaysTrue,
            "error.code == SQLITE_NOTADB",
            "it is asked again where the header is looked at"
        ),
        .init(
            "SealedDB/Engine/Pages/Backup.swift",
            "init",
            .callDropped,
            "source.requireNoHook()",
            "who copies asks the source something before, which a hook may not either"
        ),
        .init(
            "SealedDB/Engine/Functions/ThrownErrors.swift",
            "keep",
            .offByOne,
            "count + 1",
            "who meets the code takes the last error, and no other one is waited for by then"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "isTimed",
            .partDropped,
            "!isTimed",
            "the hooks are attached afterwards, by which it is computed again"
        ),
        .init(
            "SealedDB/Engine/Pages/FileView.swift",
            "closure",
            .assignmentDropped,
            "isReserved?.pointee = 0",
            "SQLite does not ask for locks of a file that cannot change"
        ),
        .init(
            "SealedDB/Engine/Hooks/Hooks.swift",
            "settleChanges",
            .alwaysTrue,
            "isObserved",
            "where nobody observes, nothing was collected"
        ),
        .init(
            "sealdb/Batch/StoreWork.swift",
            "encode",
            .errorSwallowed,
            "encode(exitCode",
            "a number can be encoded always"
        ),
        .init(
            "sealdb/Batch/BatchProgress.swift",
            "redraw",
            .bounds,
            "$0.key < $1.key",
            "no two stores are in work under one number"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "withConnection",
            .alwaysTrue,
            "sqlite3_deserialize(handle",
            "without the image there is no table to read, and the check fails by that"
        ),
        .init(
            "sealdb/Batch/StoreItem.swift",
            "size",
            .alwaysTrue,
            "stat(path, &status) == 0",
            "what stat does not fill in is 0, which is the answer then"
        ),
        .init(
            "SealedDB/Concurrency/Turns/WaitingLine.swift",
            "skip",
            .bounds,
            "head > 64",
            "gaps are closed one turn earlier"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "requireNobodyElse",
            .alwaysTrue,
            "attempt > 0",
            "it pauses once more, before the first look"
        ),
        .init(
            "SealedDB/Engine/Statement/StatementCache.swift",
            "setCapacity",
            .alwaysFalse,
            "size < min(capacity",
            "the same statements are found in longer chains"
        ),
        .init(
            "SealedDB/System/StoreName.swift",
            "isLeftByKilledSwap",
            .partDropped,
            "lstat(",
            "it is still called, and what it does not fill in is no store"
        ),
        .init(
            "sealdb/Batch/JournalFile.swift",
            "state",
            .callDropped,
            "close(descriptor)",
            "the process ends when it has shown the state"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "begin",
            .notAsked,
            "SelfTest.passes()",
            "there is no SQLCipher at hand that does not pass"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Writer.swift",
            "report",
            .partDropped,
            "part.failure != nil",
            "it is counted only with the trait Metrics, in whose build a test looks at the number"
        ),
        .init(
            "SealedDB/Engine/Statement/Statement.swift",
            "clearBindings",
            .callDropped,
            "prepared.clear(pointer)",
            "a statement that lacks values does not run, and the next ones replace these"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Database+Supervision.swift",
            "supervised",
            .alwaysTrue,
            "scope != .block",
            "what a block leaves open is ended once more at the end of its turn"
        ),
        .init(
            "SealedDB/Engine/Functions/FunctionBox.swift",
            "lastState",
            .assignmentDropped,
            "slot.pointee = nil",
            "SQLite frees this memory right after, and nobody reads it"
        ),
        .init(
            "SealedDB/Database/Files/Database+Serialization.swift",
            "requireAuthenticPages",
            .callDropped,
            "requireAut",
            "it does nothing where the engine's pages can be watched, as in this build"
        ),
        .init(
            "SealedDB/Database/Database+Opening.swift",
            "configure",
            .errorSwallowed,
            "connection.holdChanges()",
            "this pragma fails only without memory"
        ),
        .init(
            "sealdb/Batch/StoreWork.swift",
            "encode",
            .errorSwallowed,
            "container.encode(store.status, forKey: .status)",
            "a text is always encoded"
        ),
        .init(
            "SealedDB/Database/Statements/Database+SingleValues.swift",
            "value",
            .errorSwallowed,
            "rows.closeWithError()",
            "what writes has run to its end by then, and what reads commits nothing"
        ),
        .init(
            "sealdb/Batch/JournalState.swift",
            "init",
            .partDropped,
            "$0.event == .begin",
            "only these records name a batch"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Opening.swift",
            "open",
            .alwaysTrue,
            "!isFirstDone.withLock",
            "connections are then opened one after the other"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Switches.swift",
            "set",
            .errorSwallowed,
            "sealeddb_switch",
            "a switch that SQLite does not take gives no answer, which is refused next"
        ),
        .init(
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            "settle",
            .partDropped,
            "hasEnded",
            "SQLite asks for the lock before it calls the commit hook, so that no commit begins that finds it taken"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "look",
            .alwaysTrue,
            "[EACCES, EPERM].contains(errno)",
            repetition: 0,
            "a process that has ended has no status either, by which it is left out"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "keyedProbe",
            .alwaysTrue,
            "sqlite3_open_v2(",
            "fails without memory only, and nothing can be asked of what is not open"
        ),
        .init(
            "SealedDB/System/FileSystem.swift",
            "isOnReadOnlyMedium",
            .alwaysTrue,
            "statvfs(path, &status) == 0",
            "what statvfs does not fill in has no flags"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "init",
            .callDropped,
            "keepToOneThread()",
            "the engines are built to sort on no threads of their own until they are told to"
        ),
        .init(
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            "settleEnd",
            .alwaysTrue,
            "hasNews.load(ordering: .relaxed)",
            "the lock is taken, and nothing is found to tell"
        ),
        .init(
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            "settle",
            .callDropped,
            "hasNews.store(false",
            "the next end takes the lock, and finds nothing to tell"
        ),
    ]
}
