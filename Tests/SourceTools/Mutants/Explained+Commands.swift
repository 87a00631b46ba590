extension Explained {
    /// What is left of the command, of a single database, and of a sample.
    static let commands: [Explained] = [
        .init(
            "SealedDB/Database/Database+Replication.swift",
            "followForShipping",
            .alwaysTrue,
            "try connection.text(\"PRAGMA main.journal_mode\") == \"wal\"",
            "the same opening has just set the mode and thrown if it could not; another process would have to "
                + "change it between the two statements"
        ),
        .init(
            "SealedDB/Database/Database+Replication.swift",
            "resumeShipping",
            .alwaysTrue,
            "isOpen",
            "without an open connection there is no main file path, which the next condition asks for"
        ),
        .init(
            "SealedDB/Database/Database+Replication.swift",
            "endShipping",
            .alwaysTrue,
            "shipper.isFollowing",
            "a shipper that follows nothing has let go at once, so the call changes nothing and returns true"
        ),
        .init(
            "SealedDB/Database/Files/Database+Backup.swift",
            "load",
            .alwaysFalse,
            "error.reason == .unverified",
            "nobody but this connection can write to a database in memory, and it copies from a file in one "
                + "transaction: the comparison fails only if memory itself is damaged"
        ),
        .init(
            "SealedDB/Database/Files/Database+Backup.swift",
            "load",
            .callDropped,
            "additions.hooks.changes.everythingChanged()",
            "as the condition before it"
        ),
        .init(
            "SealedDB/Database/Files/Database+Backup.swift",
            "backup",
            .alwaysTrue,
            "pages.totals.count > 0",
            "a store with a key has a page as soon as it is open, and one that was emptied since is refused"
        ),
        .init(
            "SealedDB/Database/Files/Database+Cipher.swift",
            "addRandom",
            .alwaysTrue,
            "!bytes.isEmpty",
            "SQLCipher answers no \"0\" to a blob without bytes, so the other condition is false already"
        ),
        .init(
            "sealdb/Batch/StoreRotation.swift",
            "attempt",
            .alwaysTrue,
            "!isLooking",
            "a plan would flush a directory, which changes no file and no answer"
        ),
        .init(
            "sealdb/Commands/ExecCommand.swift",
            "commit",
            .alwaysTrue,
            "database.isInTransaction",
            "after SQLITE_BUSY from COMMIT the transaction always stays open"
        ),
        .init(
            "sealdb/Commands/ExecCommand.swift",
            "execute",
            .alwaysTrue,
            "showsWhatIsStored",
            "false only where exec itself has begun the transaction, and there every statement that succeeds "
                + "leaves it open"
        ),
        .init(
            "sealdb/Keyring/KeyringAuditCommand.swift",
            "hasRetired",
            .alwaysTrue,
            "error.reason == .wrongKey",
            "the keys of the ring were tried just before and proved wrong, so only a store that changes between "
                + "the two could fail otherwise"
        ),
        .init(
            "sealdb/Commands/InfoCommand.swift",
            "result",
            .alwaysTrue,
            "result.info.details != nil",
            "with a key, what does not open is thrown, and what opens has details"
        ),
        .init(
            "sealdb/Batch/StoreWork.swift",
            "status",
            .partDropped,
            "!isUnchanged",
            "no command makes a report that is a plan and unchanged: migrate says either, backup never says "
                + "unchanged"
        ),
        .init(
            "sealdb/Commands/SchemaCommands.swift",
            "shown",
            .alwaysFalse,
            "ResultOutput.isTerminal",
            "on a terminal the output itself escapes what is written to it"
        ),
        .init(
            "SealedDB/Database/Database+Opening.swift",
            "configure",
            .alwaysTrue,
            "!configuration.allowsCipherStatements",
            "on an empty file the settings write nothing, and a key and cipher settings that SQL gives after "
                + "them work as before (a test holds that); only settings are in force sooner"
        ),
        .init(
            "sealdb/Commands/RestoreCommand.swift",
            "run",
            .callDropped,
            "pipe?.remove()",
            "deinit removes the directory too, when the function returns"
        ),
        .init(
            "SealedDB/Cipher/Verification/PageMarks.swift",
            "hold",
            .alwaysTrue,
            "marks[Int(number - 1)] != 0",
            "saves the mark of a page that has none; the mark of a page equals 0 in one of 2^64 cases"
        ),
        .init(
            "SealedDB/Concurrency/ServiceRotation.swift",
            "run",
            .callDropped,
            "try confirmNewKey()",
            "the rotation of the slot confirms the key too, only while others wait"
        ),
        .init(
            "SealedDB/System/UsageLock.swift",
            "isNamed",
            .alwaysTrue,
            "lstat(path, &named) == 0",
            "a status that was not filled in is that of no file, so the answer is false as well; an error other "
                + "than ENOENT leads to another try"
        ),
        .init(
            "SealedDB/Cipher/Slots/StoreOpening+Slots.swift",
            "hasUnnamedStore",
            .callDropped,
            "file.close()",
            "a Connection closes in its deinit, at the end of the same scope"
        ),
        .init(
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            "begin",
            .errorSwallowed,
            "_ = try backup.step(pages: 0)",
            "SQLite keeps a fatal error of a backup, and the next step returns it"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "copyAll",
            .alwaysFalse,
            "served != nil",
            "the target is closed next, which detaches everything"
        ),
        .init(
            "SealedDB/Engine/Statement/HeldValue.swift",
            "isUTF8",
            .alwaysTrue,
            "rest.contains(where: { $0 >= 0x80 })",
            "saves the check of ASCII, which is valid UTF-8"
        ),
        .init(
            "SealedDB/Cipher/Recovery/Salvage.swift",
            "hasTable",
            .errorSwallowed,
            "try statement.bind(name, at: 1)",
            "binding a short text fails without memory only"
        ),
        .init(
            "SealedDB/Cipher/Recovery/Salvage.swift",
            "run",
            .errorSwallowed,
            "try target.run(\"BEGIN IMMEDIATE\")",
            "nobody else has the new file; where it fails, COMMIT fails at the end"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "needsIndex",
            .notAsked,
            "FileSystem.exists(path)",
            "access(path, R_OK) == 0, which is asked next, is false for a file that is not there"
        ),
        .init(
            "SealedDB/Keys/Replacement/KeyFileReplacement.swift",
            "keepFormerKey",
            .errorSwallowed,
            "try requireNoOtherFormerKey(than: key)",
            "the next statement reads the same file and throws too, with another message"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "withDescriptors",
            .alwaysTrue,
            "answer != 1",
            "saves a search, which finds nobody where the kernel says that nobody has it open"
        ),
        .init(
            "SealedDB/Cipher/Recovery/TreePage.swift",
            "bytes",
            .alwaysTrue,
            "position >= bytes.startIndex",
            "readers begin at an offset that was read unsigned or compared before, in a slice that begins at 0"
        ),
        .init(
            "sealdb/Commands/DiffCommand.swift",
            "encode",
            .errorSwallowed,
            "try paths.encode(to: encoder)",
            "encoding two strings cannot fail"
        ),
        .init(
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            "run",
            .alwaysTrue,
            "!LockHolders.hasLocks(on: resolved + \"-shm\", ifUnknown: true)",
            "who has a lock on the index of the log has one on the store, which is asked next"
        ),
        .init(
            "SealedDB/Database/Database+Opening.swift",
            "opening",
            .partDropped,
            "flags & SQLITE_OPEN_READONLY != 0",
            "only commands set looksIfUnreadable, and only for connections that are read-only (package setting)"
        ),
        .init(
            "SealedDB/Keys/KeyCommand.swift",
            "read",
            .bounds,
            "ready < 0",
            "where nothing is ready, the line before has gone on"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "prepareTarget",
            .errorSwallowed,
            "PRAGMA foreign_keys = OFF",
            "it sets a flag of the connection, and has nothing that could fail"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "close",
            .earlyReturn,
            "for part in parts { part.close() }",
            "statements end themselves when nobody has them any more"
        ),
        .init(
            "sealdb/Batch/BatchProgress.swift",
            "redraw",
            .bounds,
            "now - last < .milliseconds(100)",
            "a display that is drawn after exactly 100 ms or a nanosecond later"
        ),
        .init(
            "SealedDB/System/Users/FileUsers.swift",
            "look",
            .alwaysTrue,
            "!ProcessDescriptors.hasEnded(process, errno)",
            "whether a process has ended is asked once more by its status"
        ),
        .init(
            "sealdb/Keyring/KeyringCommand.swift",
            "run",
            .errorSwallowed,
            "try JSONReport.complete(",
            "what cannot be written is told by the flush at the end, and names can always be encoded"
        ),
    ]
}
