extension NamedMutant {
    /// What outsiders made to happen with a store in use, its names and its repository.
    static let outsiders: [NamedMutant] = [
        .init(
            "a rotation removes the log of a store that was moved to its place",
            "SealedDB/Cipher/Rotation/RotationSource.swift",
            .expression,
            "try isOver(sibling, suffix, status)",
            "true"
        ),
        .init(
            "a key is removed from its ring before a rotation that has confirmed it is over",
            "SealedDB/Keys/KeyProvenance.swift",
            .statement,
            "try hold?.add(ring: path, timeout: isBrief ? 1 : 10)",
            ""
        ),
        .init(
            "a trigger that is compiled while a statement runs makes the store forget its slots",
            "SealedDB/Engine/Guard/StatementGuard.swift",
            .expression,
            "SQLStatementText.verb(of: String(cString: sql)) == \"vacuum\"",
            "true"
        ),
        .init(
            "a rollback that a block of write was refused becomes a commit",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .expression,
            "statement.sql.flatMap({ SQLStatementText.verb(of: $0) }) == \"rollback\"",
            "scope == .reading"
        ),
        .init(
            "whoever reads by a second name misses the log",
            "SealedDB/System/StoreName.swift",
            .statement,
            "if let resolved { try requireOneName(resolved) }",
            "if let resolved, !isReadOnly { try requireOneName(resolved) }"
        ),
        .init(
            "a commit that fails behind the log is told as undone",
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            .expression,
            "!Connection.beforeMomentOfLog.contains(code)",
            "code == Connection.notSynced"
        ),
        .init(
            "retention removes what a lost snapshot needs",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .expression,
            "contents.strays.first",
            "ObjectName?.none"
        ),
        .init(
            "the end of an older generation is not missed",
            "SealedDB/Replication/Restoring/RestorePlan.swift",
            .expression,
            "chain.digest != lastDigest",
            "false"
        ),
        .init(
            "what is somebody else's is taken for a history",
            "sealdb/Shell/ShellHistory.swift",
            .expression,
            "start == expected",
            "true"
        ),
        .init(
            "a key that has the name of a store's index is overwritten",
            "SealedDB/System/StoreName.swift",
            .statement,
            "try JournalName.requireNothingElse(beside: resolved ?? path)",
            ""
        ),
        .init(
            "a journal ends with its first part",
            "SealedDB/Cipher/Recovery/JournalRecords.swift",
            .expression,
            "start == 0 || !RollbackJournal.isEndMark(bytes)",
            "start == 0"
        ),
        .init(
            "who opened the store before it had slots makes it forget them",
            "SealedDB/Engine/Guard/GuardRules.swift",
            .expression,
            "hasSlots || !addsRows",
            "hasSlots"
        ),
        .init(
            "a commit whose journal somebody removed is told as undone",
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            .expression,
            "code == ResultCode.SQLITE_IOERR_DELETE_NOENT.rawValue",
            "false"
        ),
        .init(
            "a log that steps over the page of locks ends the store",
            "SealedDB/Cipher/Copying/StoredPages.swift",
            .expression,
            "number == lockPage",
            "false"
        ),
    ]
}
