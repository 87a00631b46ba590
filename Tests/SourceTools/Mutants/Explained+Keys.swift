extension Explained {
    /// What is left of the system, keys, opening and rotation.
    static let keys: [Explained] = [
        .init(
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            "attach",
            .alwaysFalse,
            "!connection.rollBack()",
            "if rolling back fails, DETACH fails too within the transaction, and the same handler closes the "
                + "connection and throws the same error"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            "attach",
            .callDropped,
            "connection.close()",
            "outside a transaction DETACH of a schema that nothing reads cannot fail, except for want of memory"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            "runAttach",
            .alwaysTrue,
            "mainHasKey",
            "with a main file without a key, KEY '' means no key, as its absence does"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            "explained",
            .alwaysTrue,
            "isFile",
            "only a file can have pages that are no database: what is in memory or temporary is new"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening+Authentication.swift",
            "requireAuthenticPages",
            .alwaysTrue,
            "settings.parameters.usesHMAC",
            "without codes the verification that follows finds no damaged pages: the check only saves its time"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening+Lock.swift",
            "lockedConnection",
            .callDropped,
            "connection.close()",
            "the connection closes itself when its last reference goes, which is at the same brace "
                + "(Connection.deinit)"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "open",
            .alwaysTrue,
            "key != nil",
            "without a key only deserialize runs there; whether its connection is closed or abandoned after "
                + "SQLITE_NOMEM is no difference a caller sees"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "unlock",
            .alwaysTrue,
            "flags & SQLITE_OPEN_READONLY == 0",
            "refuseEmptied() refuses an empty file with a key unless SQLITE_OPEN_CREATE is given, which no "
                + "caller gives together with READONLY"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "applyKey",
            .alwaysTrue,
            "code == SQLITE_OK",
            "sqlite3_key fails only for want of memory, and every statement after it fails then too"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "createFirstPage",
            .partDropped,
            "!start.isEmpty",
            "StoreHeader.isPlaintext of no bytes is false anyway (hasMagic needs 16)"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "close",
            .partDropped,
            "other.close()",
            "both connections have only read, without open statements: sqlite3_close cannot fail for them"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "close",
            .partDropped,
            "isClosed",
            "both connections have only read, without open statements: sqlite3_close cannot fail for them"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "state",
            .alwaysTrue,
            "reading.close()",
            "the closing of connections that have only read cannot fail"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "moveOn",
            .alwaysTrue,
            "!reading.other.isAutocommit",
            "ROLLBACK outside a transaction fails, and its error is dropped (try?)"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "note",
            .alwaysTrue,
            "count > 0",
            "a store in WAL mode has a page at least, so the count is never 0"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "complete",
            .alwaysTrue,
            "pending.isEmpty",
            "copyPending(upTo: .max) ends only when nothing is pending, or throws"
        ),
        .init(
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            "state",
            .alwaysTrue,
            "end.isWholeInFile",
            "if the log is not whole in the file, the checkpoint that follows leaves a log (settled is nil) or "
                + "changes the file (hasSameFile is false)"
        ),
        .init(
            "SealedDB/Cipher/Rotation/InPlaceRekey.swift",
            "run",
            .callDropped,
            "connection.close()",
            "the connection closes itself when its last reference goes, which is at the same throw"
        ),
        .init(
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            "init",
            .callDropped,
            "target.close()",
            "the connection closes itself when its last reference goes, which is at the same throw"
        ),
        .init(
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            "advance",
            .partDropped,
            "isBlocked",
            "while it is blocked isNearlyComplete is true whatever restartCount says, and nothing else reads "
                + "that"
        ),
        .init(
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            "free",
            .alwaysTrue,
            "writable >= 0",
            "with a descriptor of -1 fstat fails next, and the function returns as well"
        ),
        .init(
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            "free",
            .alwaysTrue,
            "status.isSameFile(as: file)",
            "/proc/self/fd/N of an O_PATH descriptor opens the very file that the descriptor refers to"
        ),
        .init(
            "SealedDB/Cipher/Rotation/RotationSource.swift",
            "leaveWAL",
            .alwaysTrue,
            "try connection.text(\"PRAGMA journal_mode = DELETE\") == \"delete\"",
            "SQLite answers PRAGMA journal_mode = DELETE of a file in WAL mode with the new mode or an error "
                + "(SQLITE_BUSY), never with wal"
        ),
        .init(
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            "method",
            .alwaysTrue,
            "pages.totals.count > 0",
            "an empty file is refused when the source is opened (needsContents), so a store has a page"
        ),
        .init(
            "SealedDB/Cipher/Rotation/ServiceCopy.swift",
            "needsRelief",
            .earlyReturn,
            "false",
            "the replaced expression is the same value (false)"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Changes.swift",
            "trial",
            .alwaysTrue,
            "secret.isEqual(to: opened.secret)",
            "the session was opened by the same key, for which the data key was authenticated; what a slot of "
                + "this key unwraps is cached, and the same"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Making.swift",
            "initialize",
            .alwaysTrue,
            "salt.count == Key.saltByteCount",
            "StoreOpening.existing refuses a file without pages (needsContents) before"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Making.swift",
            "initialize",
            .callDropped,
            "_ = connection.rollBack()",
            "the connection is closed by the defer above, which rolls back"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Making.swift",
            "create",
            .alwaysFalse,
            "copy.isInPlace",
            "moveIn() throws nothing after its rename has succeeded; only a file system that reports a failure "
                + "of a rename that it did (NFS) gets here"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Replacing.swift",
            "importSlots",
            .callDropped,
            "file.close()",
            "the connection closes itself when its last reference goes, which is at the same throw"
        ),
        .init(
            "SealedDB/Cipher/Slots/StoreOpening+Slots.swift",
            "repair",
            .alwaysTrue,
            "!connection.isReadOnly",
            "BEGIN IMMEDIATE fails on a connection that can only read, and that error is dropped there"
        ),
        .init(
            "SealedDB/Cipher/Slots/StoreOpening+Slots.swift",
            "repair",
            .alwaysTrue,
            "now.needsRepair",
            "SlotFiles.repair writes only the files that are not as they should be: none"
        ),
        .init(
            "SealedDB/Keys/Key.swift",
            "raw",
            .partDropped,
            "key.count == rawByteCount",
            "a precondition on what the callers in this module pass, all of them constants or checked before"
        ),
        .init(
            "SealedDB/Keys/Key.swift",
            "raw",
            .partDropped,
            "salt.count == saltByteCount",
            "a precondition on what the callers in this module pass, all of them constants or checked before"
        ),
        .init(
            "SealedDB/Keys/Slots/NewSlotFiles.swift",
            "same",
            .alwaysTrue,
            "fstat(descriptor, &status) == 0",
            "the status is zero then, so that the next condition (S_IFREG) is false as well"
        ),
        .init(
            "SealedDB/Keys/Slots/OpenedSlots.swift",
            "open",
            .alwaysTrue,
            "failure?.reason != .malformedSlots",
            "all errors of this kind come from requireAuthentic of the same file and data key, and have the "
                + "same text"
        ),
        .init(
            "SealedDB/Keys/Slots/SealedSlots.swift",
            "init",
            .alwaysTrue,
            "self.table == table",
            "text and parser are inverse for each table that the parser takes at all; others fail in the parser"
        ),
        .init(
            "SealedDB/Keys/Slots/SlotFiles+Writing.swift",
            "removeLeftovers",
            .alwaysTrue,
            "descriptor >= 0",
            "with a descriptor of -1 the lock fails, and closing it does nothing"
        ),
        .init(
            "SealedDB/Keys/Slots/SlotTable+Text.swift",
            "today",
            .alwaysTrue,
            "gmtime_r(&time, &parts) != nil",
            "gmtime_r fails only for years beyond 32 bits"
        ),
        .init(
            "SealedDB/Keys/Terminal.swift",
            "awaitInput",
            .alwaysTrue,
            "errno == EINTR",
            "the pollfds are valid: poll fails by a signal only (EINTR), or for want of memory"
        ),
        .init(
            "SealedDB/Keys/Terminal.swift",
            "awaitInput",
            .alwaysTrue,
            "read(signals, &number, 1) == 1",
            "a byte is there when poll says so; only this thread reads the pipe"
        ),
        .init(
            "SealedDB/Keys/Terminal.swift",
            "awaitInput",
            .alwaysTrue,
            "descriptors[1].revents != 0",
            "poll without a timeout returns with one of the two descriptors ready"
        ),
        .init(
            "SealedDB/System/Users/MountTable.swift",
            "init",
            .alwaysTrue,
            "fields.count > 2",
            "each line of mountinfo has at least ten fields"
        ),
        .init(
            "SealedDB/System/Users/MountTable.swift",
            "init",
            .alwaysTrue,
            "fields.count > dash + 3",
            "each line of mountinfo has three fields behind the dash"
        ),
        .init(
            "SealedDB/System/FileSystem.swift",
            "resolve",
            .deferDropped,
            "defer { free(resolved) }",
            "the memory of a path is lost, which the leak sanitizer tells"
        ),
        .init(
            "SealedDB/System/JournalName.swift",
            "mayStrangersMakeFiles",
            .partDropped,
            "stat(store, &status) != 0",
            "if stat fails the status stays zero, so that st_mode & S_IWGRP == 0 is true as well"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "seal",
            .partDropped,
            "nonce.count == nonceByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "seal",
            .partDropped,
            "plaintext.count == keyByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "seal",
            .partDropped,
            "key.count == keyByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "open",
            .partDropped,
            "key.count == keyByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "open",
            .partDropped,
            "sealed.count == sealedByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/KeyWrapping.swift",
            "open",
            .partDropped,
            "nonce.count == nonceByteCount",
            "a precondition on constants of this module"
        ),
        .init(
            "SealedDB/System/Users/LockHolders.swift",
            "inTheWay",
            .alwaysTrue,
            "fields.count >= 8",
            "each line of /proc/locks and of fdinfo has eight fields or nine"
        ),
        .init(
            "SealedDB/System/Users/LockHolders.swift",
            "processes",
            .alwaysTrue,
            "place > 0",
            "no line of /proc/locks begins with a file: the process stands before it"
        ),
        .init(
            "SealedDB/System/Users/LockHolders.swift",
            "insert",
            .alwaysTrue,
            "fields.count == 8",
            "only lines with -> have nine fields, and their second field is not POSIX"
        ),
        .init(
            "SealedDB/System/Users/LockHolders.swift",
            "insert",
            .alwaysTrue,
            "fields[1] == \"POSIX\"",
            "other kinds of locks with a process (FLOCK, LEASE) begin at byte 0, which is neither a store's nor "
                + "an index's; those of descriptions have the process -1"
        ),
        .init(
            "SealedDB/Cipher/Recovery/TreePage.swift",
            "localSize",
            .bounds,
            "size <= most",
            "where both are equal, what follows gives the same size"
        ),
        .init(
            "SealedDB/System/FileSystem.swift",
            "isOnReadOnlyMedium",
            .bounds,
            "fields.count > 2",
            "a line of the kernel has ten fields or more, or is empty"
        ),
        .init(
            "SealedDB/System/UsageLock.swift",
            "release",
            .alwaysTrue,
            "descriptor >= 0",
            "without a descriptor, each of the calls fails and does nothing"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            "contents",
            .callDropped,
            "connection.close()",
            "a connection that nobody has any more closes itself"
        ),
        .init(
            "SealedDB/Cipher/Verification/StoreRecognition.swift",
            "isOfPrerelease",
            .alwaysTrue,
            "page.count == parameters.pageSize",
            "a page of another size is never authentic"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogDamage.swift",
            "requireNoneInFile",
            .bounds,
            "loss.count > 0",
            "where nothing is lost, both ways return that"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogDamage.swift",
            "requireNoneInFile",
            .alwaysTrue,
            "loss.count > 0",
            "where nothing is lost, both ways return that"
        ),
        .init(
            "SealedDB/Cipher/Settings/CipherSettings.swift",
            "differsFromCompatibility",
            .partDropped,
            "$0.name == pragma",
            "settings that are as the compatibility has them are set once more"
        ),
    ]
}
