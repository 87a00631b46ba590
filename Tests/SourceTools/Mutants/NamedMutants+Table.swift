extension NamedMutant {
    static let all: [NamedMutant] =
        copies + keys + statements + locks + guards + siblings + batches + rest + looks + entrances + answers + ends
        + openings + logs + pages + slots + exports + replication + outsiders + overwritten + formerFiles + leftOut
        + around

    /// The key that a store gets can be had again.
    private static let keys: [NamedMutant] = [
        .init("another key is read again", "SealedDB/Keys/KeyProvenance.swift", .expression, "again == self", "true"),
        .init(
            "the key file is not synced",
            "SealedDB/Keys/SecretFile.swift",
            .statement,
            "try FileSystem.synchronizeIfPossible(descriptor, path)",
            ""
        ),
        .init(
            "the directory of the key file is not synced",
            "SealedDB/Keys/SecretFile.swift",
            .statement,
            "try synchronizeName(of: descriptor, path)",
            ""
        ),
        .init(
            "the key is not confirmed before the swap",
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            .statement,
            "try new.confirm(for: copy, isBrief: prepared != nil)",
            ""
        ),
        .init(
            "the key is not confirmed before a new store is there",
            "SealedDB/Cipher/Copying/NewStore.swift",
            .statement,
            "if confirmsKey { try sealing.confirm(for: copy) }",
            ""
        ),
        .init(
            "the key is not confirmed before a restore",
            "SealedDB/Cipher/Conversion/StoreRestore.swift",
            .statement,
            "try sealing.confirm(for: copy)",
            ""
        ),
        .init(
            "the children of a key command are not killed",
            "SealedDB/Keys/KeyCommand.swift",
            .statement,
            "kill(-process, SIGKILL)",
            "kill(process, SIGKILL)"
        ),
    ]

    /// A call that fails says so, and what it has not done is not kept.
    private static let statements: [NamedMutant] = [
        .init(
            "the result of a reset is ignored",
            "SealedDB/Engine/Statement/Statement.swift",
            .expression,
            "code == SQLITE_OK || isFailureKnown()",
            "code == SQLITE_OK || true"
        ),
        .init(
            "the result of a statement's end is ignored",
            "SealedDB/Engine/Statement/PreparedStatement.swift",
            .expression,
            "isUnderway ? code : SQLITE_OK",
            "SQLITE_OK"
        ),
        .init(
            "a failure that nobody looked at does not fail the block",
            "SealedDB/Database/Database+Errors.swift",
            .expression,
            "configuration.failsBlocksAfterIgnoredErrors",
            "false"
        ),
        .init(
            "an outermost savepoint is not released after it was rolled back",
            "SealedDB/Database/Database+Transactions.swift",
            .statement,
            "try connection.run(\"RELEASE SAVEPOINT \\(quoted(name))\")",
            ""
        ),
        .init(
            "a parameter that was not bound keeps an old value",
            "SealedDB/Engine/Statement/Statement.swift",
            .expression,
            "boundCount == parameterCount",
            "true"
        ),
        .init(
            "a damaged page is not told of",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .expression,
            "sealeddb_end_page_watch(watch) != 0 ? code : readFailed(code)",
            "sealeddb_end_page_watch(watch) != 0 ? code : code"
        ),
        .init(
            "a damaged page is not told of at a statement's end",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .expression,
            "sealeddb_end_page_watch(watch) != 0 ? code : whereDamaged(code)",
            "sealeddb_end_page_watch(watch) != 0 ? code : code"
        ),
        .init(
            "key schedules stay in memory that is not locked, although memory security was asked for",
            "SealedDB/Cipher/Settings/MemorySecurity.swift",
            .statement,
            "PageContexts.stopForMemorySecurity()",
            ""
        ),
        .init(
            "SQLCipher's own functions cannot be asked for",
            "SealedDB/Engine/Pages/PageContexts.swift",
            .expression,
            "value.pointee != 0",
            "false"
        ),
        .init(
            "the deadline of a statement stays when it has ended",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .statement,
            "deadline = nil",
            ""
        ),
        .init(
            "the decoder's memory of types leaves the type out",
            "SealedDB/Rows/RowDecoder.swift",
            .expression,
            "known.index == index && known.type == ObjectIdentifier(type)",
            "known.index == index"
        ),
    ]

    private static let locks: [NamedMutant] = [
        .init(
            "a barrier that was given up keeps others out",
            "SealedDB/Concurrency/Turns/Ledger.swift",
            .expression,
            "barriers.remove(at: index)",
            "barriers[index]"
        ),
        .init(
            "a lock on a file that was removed counts",
            "SealedDB/System/UsageLock.swift",
            .expression,
            "lock.isNamed()",
            "true"
        ),
        .init(
            "two who leave at the same time leave the lock file",
            "SealedDB/System/UsageLock.swift",
            .expression,
            "!removeIfLast()",
            "!removeIfLast() && false"
        ),
        .init(
            "who has a lock file that is not the named one removes the other's",
            "SealedDB/System/UsageLock.swift",
            .expression,
            "(try? isNamed()) == true",
            "true"
        ),
        .init(
            "who has the store open is not looked for before the swap",
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            .statement,
            "try source.requireNobodyElse()",
            ""
        ),
        .init(
            "a database that left its block is used",
            "SealedDB/Engine/Supervision/ThreadGate.swift",
            .expression,
            "!isInside",
            "false"
        ),
    ]

    private static let guards: [NamedMutant] = [
        .init(
            "what a statement has attached is not looked at",
            "SealedDB/Engine/Statement/Statement.swift",
            .statement,
            "try connection.requireSealedAttachments()",
            ""
        ),
        .init(
            "an ATTACH whose text was misread is let through",
            "SealedDB/Engine/Guard/StatementGuard.swift",
            .expression,
            "misreadingOfAttach ?? rules?.refusal(ofAttached: file)",
            "rules?.refusal(ofAttached: file)"
        ),
        .init(
            "a pragma whose text was misread is let through",
            "SealedDB/Engine/Guard/StatementGuard.swift",
            .expression,
            "misreading(ofPragma: name) ?? rules?.refusal(ofPragma: name, value: value)",
            "rules?.refusal(ofPragma: name, value: value)"
        ),
        .init(
            "a block ends the library's transaction",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .expression,
            "statement.prepared.controlsTransaction",
            "false"
        ),
        .init(
            "a store without authentication codes is recognised unasked",
            "SealedDB/Cipher/Verification/StoreRecognition.swift",
            .expression,
            "$0.usesHMAC || triesUnauthenticated || !settings.parameters.usesHMAC",
            "true"
        ),
    ]

    /// What stands beside a store, and what its names are.
    private static let siblings: [NamedMutant] = [
        .init(
            "a log's header is not looked at",
            "SealedDB/Cipher/Logs/LogHeader.swift",
            .expression,
            "computedChecksum(isBigEndian: isBigEndian).bytes[...] == checksum",
            "true"
        ),
        .init(
            "the end of the second last transaction may be damaged",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "count > 1 || isBehindCommit",
            "count > 1"
        ),
        .init(
            "a log of another store is written into it",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .statement,
            "try LogDamage.requireOwnPages(ofStore: file, onlyReads: !mayWrite, cipher: cipher, store: connection)",
            ""
        ),
        .init(
            "a damaged journal is put back",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .statement,
            "try JournalDamage.requireNone(ofStore: file, cipher: try recognition.pageCipher(), store: connection)",
            ""
        ),
        .init(
            "records that would not be put back are not compared",
            "SealedDB/Cipher/Logs/JournalDamage.swift",
            .expression,
            "contents == cipher.contents(stored[...], number: number)",
            "true"
        ),
        .init(
            "a journal may cut the store off",
            "SealedDB/Cipher/Logs/JournalDamage.swift",
            .expression,
            "journal.originalPageCount < pageCount",
            "false"
        ),
        .init(
            "an old file with another name is spoilt",
            "SealedDB/Cipher/Rotation/RotationSource.swift",
            .expression,
            "status.st_nlink == 0",
            "true"
        ),
        .init(
            "a second name is not looked for before the swap",
            "SealedDB/Cipher/Rotation/RotationSource.swift",
            .statement,
            "try place.requireOneName()",
            ""
        ),
        .init(
            "attached files may have two names",
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            .statement,
            "try StoreName.requireOnly(path, isReadOnly: connection.isReadOnly)",
            ""
        ),
        .init(
            "commits go to a file without its name",
            "SealedDB/Engine/Hooks/Hooks.swift",
            .statement,
            "try hooks.connection?.requireNamedFiles()",
            ""
        ),
        .init(
            "the index of a stranger is believed",
            "SealedDB/System/JournalName.swift",
            .statement,
            "return !isOfStranger(name)",
            "return true"
        ),
        .init(
            "a key in a misspelt statement is shown",
            "SealedDB/Engine/Connection/Connection+Compiling.swift",
            .expression,
            "SQLStatementText.mayHoldKey(piece)",
            "false"
        ),
        .init(
            "a file may have the name of what belongs to another store",
            "SealedDB/System/TemporaryFile.swift",
            .statement,
            "try StoreName.requireOwn(target)",
            ""
        ),
        .init(
            "a key may have the name of what belongs to a store",
            "SealedDB/Keys/SecretFile.swift",
            .statement,
            "try StoreName.requireOwn(path, reason: .unsafeKeyFile)",
            ""
        ),
        .init(
            "closed standard streams are left closed",
            "sealdb/SealdbCommand.swift",
            .expression,
            "sealeddb_take_standard_descriptors() == 0",
            "true"
        ),
        .init(
            "a signal hides that a script was committed",
            "sealdb/Commands/ExecCommand.swift",
            .statement,
            "SignalWatch.start()",
            ""
        ),
        .init(
            "numbers are imported as others",
            "sealdb/Support/Input/Importer.swift",
            .expression,
            "NumberForm.isKept(Array(record.bytes(at: index))[...], asReal: type == .real)",
            "true"
        ),
        .init(
            "damaged pages are rekeyed in place",
            "SealedDB/Cipher/Rotation/InPlaceRekey.swift",
            .statement,
            "try requireAuthenticPages(connection)",
            ""
        ),
        .init(
            "a file that changes is imported",
            "sealdb/Support/Input/Importer.swift",
            .expression,
            "try input.isUnchanged()",
            "true"
        ),
        .init(
            "a commit whose end is unknown is told as undone",
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            .expression,
            "[\"truncate\", \"persist\"].contains(mode)",
            "false"
        ),
        .init(
            "pages behind the end of the database count",
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            .expression,
            "scan.damagedPages(ofFirst: last, cipher, marks: marks, free: noted, progress: tell)",
            "scan.damagedPages(ofFirst: .max, cipher, marks: marks, free: noted, progress: tell)"
        ),
        .init(
            "a check of pages alone believes every list of free pages",
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            .expression,
            "structure ?? .quick",
            "structure"
        ),
        .init(
            "a copy of a store with pages that are not authentic is not looked at as a whole",
            "SealedDB/Cipher/Copying/StoreCopy+Pages.swift",
            .expression,
            "file.holdsBlank",
            "false"
        ),
        .init(
            "a cancellation hides every error",
            "SealedDB/Concurrency/Turns/TaskTurn.swift",
            .expression,
            "isSet && isCutShort",
            "isSet"
        ),
        .init(
            "a cancelled rotation hides every error",
            "SealedDB/Concurrency/DatabaseAccess+Rotation.swift",
            .expression,
            "(error as? DatabaseError)?.underlyingError is CancellationError",
            "true"
        ),
    ]

    private static let batches: [NamedMutant] = [
        .init(
            "stores that were not begun count as complete",
            "sealdb/Batch/BatchRunner.swift",
            .expression,
            "$0 == .done || $0 == .unchanged",
            "$0 == .done || $0 == .unchanged || $0 == .notBegun"
        ),
        .init(
            "a batch that only looks cannot be stopped",
            "sealdb/Batch/StoreWork.swift",
            .statement,
            "try control.check()",
            ""
        ),
        .init(
            "a batch that rotates cannot be stopped",
            "sealdb/Batch/RotationBatch.swift",
            .statement,
            "try runner.control.check()",
            ""
        ),
        .init(
            "a journal is believed that another user may change",
            "sealdb/Batch/JournalFile.swift",
            .expression,
            "status.st_mode & 0o022 != 0",
            "false"
        ),
        .init(
            "a key file is replaced and its old key not kept",
            "SealedDB/Keys/Replacement/KeyFileReplacement.swift",
            .statement,
            "try keepFormerKey()",
            ""
        ),
        .init(
            "a key file is replaced although the kept old key was not found",
            "SealedDB/Keys/Replacement/KeyFileReplacement.swift",
            .expression,
            "formerKey() == key",
            "formerKey() == key || true"
        ),
        .init(
            "a key file is replaced before all stores have the new key",
            "sealdb/Batch/KeyFilePlan.swift",
            .statement,
            "guard state.groups[place].missing.isEmpty else { return nil }",
            ""
        ),
        .init(
            "a new key file that is missing counts as one that was put in place",
            "sealdb/Batch/KeyFilePlan.swift",
            .expression,
            "begun == nil",
            "false"
        ),
        .init(
            "a dry run of a backup removes others",
            "sealdb/Backup/DatedBackups.swift",
            .statement,
            "guard !isLooking else { return (plan, nil) }",
            ""
        ),
        .init(
            "backups later than the clock count",
            "sealdb/Backup/DatedBackups.swift",
            .expression,
            "stamp.seconds > new.stamp.seconds",
            "false"
        ),
        .init(
            "a journal is opened behind a link",
            "sealdb/Batch/JournalFile.swift",
            .expression,
            "access | O_NOFOLLOW",
            "access"
        ),
    ]

    private static let rest: [NamedMutant] = [
        .init(
            "the arguments of merge are swapped as they are read",
            "SealedDB/FullText/Database+FullText.swift",
            .expression,
            ".merge(pages: numbers[0], segments: numbers[1])",
            ".merge(pages: numbers[1], segments: numbers[0])"
        ),
        .init(
            "the arguments of merge are swapped as they are written",
            "SealedDB/FullText/Database+FullText.swift",
            .expression,
            #""merge=\(pages),\(segments)""#,
            #""merge=\(segments),\(pages)""#
        ),
    ]
}
