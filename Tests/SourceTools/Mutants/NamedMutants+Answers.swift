extension NamedMutant {
    /// What is read is what is there, and looking changes nothing.
    static let looks: [NamedMutant] = [
        .init(
            "a serialized copy is not compared",
            "SealedDB/Cipher/Copying/SerializedStore.swift",
            .expression,
            "try ContentDigest.of(copy) == ContentDigest.of(connection)",
            "true"
        ),
        .init(
            "a read that fails is not noted",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .statement,
            "sealeddb_note_read(code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ ? 0 : 1)",
            ""
        ),
        .init(
            "a failed read of a store, log or journal is not noted",
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            .expression,
            "PageWatch.note(read: GuardedVFS.own(file).pointee.xRead(file, bytes, count, offset))",
            "GuardedVFS.own(file).pointee.xRead(file, bytes, count, offset)"
        ),
        .init(
            "a failed read of a view is not noted",
            "SealedDB/Engine/Pages/FileView.swift",
            .expression,
            "PageWatch.note(read: view(file!).read(base(file!), into: buffer, at: offset))",
            "view(file!).read(base(file!), into: buffer, at: offset)"
        ),
        .init(
            "a disk that does not give a page is called damage",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .expression,
            "code == SQLITE_IOERR_CORRUPTFS",
            "false"
        ),
        .init(
            "a check that cannot go on forgets what it found",
            "SealedDB/Cipher/Verification/StructureCheck.swift",
            .expression,
            "error.code == SQLITE_ERROR || error.isOfStructure",
            "error.code == SQLITE_ERROR"
        ),
        .init(
            "looking opens a store as others do",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .expression,
            "looks ? StoreView.connection(for: self) : lockedConnection()",
            "lockedConnection()"
        ),
        .init(
            "what changed under a look is given out",
            "SealedDB/Cipher/Opening/StoreOpening+Looking.swift",
            .expression,
            "(connection.view as? StoreView)?.isStill() ?? true",
            "true"
        ),
        .init(
            "a file that changed while it was copied is put in place",
            "SealedDB/Cipher/Pages/StoreView.swift",
            .expression,
            "!view.isStill()",
            "false"
        ),
        .init(
            "a medium that cannot be written to is opened as others are",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .statement,
            "if !looks, isOnReadOnlyMedium { return try forLooking.open() }",
            ""
        ),
    ]

    /// Who has the key gets in.
    static let entrances: [NamedMutant] = [
        .init(
            "settings that lose the salt are taken for rekeying in place",
            "SealedDB/Cipher/Rotation/InPlaceRekey.swift",
            .statement,
            "try opening.settings.validate(for: newKey)",
            ""
        ),
        .init(
            "a lock that cannot be had is no error",
            "SealedDB/System/UsageLock.swift",
            .statement,
            "if isForReadingAlone, [EACCES, EPERM, EROFS].contains(number) { return nil }",
            "return nil"
        ),
        .init(
            "a ring is not tried again after a rotation beside it",
            "SealedDB/Keys/KeyRing+Opening.swift",
            .expression,
            "before != after",
            "false"
        ),
        .init(
            "a ring is tried again as it was",
            "SealedDB/Keys/KeyRing+Opening.swift",
            .statement,
            "ring = (try? ring.readAgain()) ?? ring",
            ""
        ),
        .init(
            "a ring that cannot be read makes known keys useless",
            "SealedDB/Keys/KeyOrigin.swift",
            .statement,
            "return (opened.result, FittingKey(key: opened.key, id: opened.id, needsRotation: !opened.isActive))",
            """
            if let problem { throw problem }
            return (opened.result, FittingKey(key: opened.key, id: opened.id, needsRotation: !opened.isActive))
            """
        ),
        .init(
            "a prompt does not see signals",
            "SealedDB/Keys/Terminal.swift",
            .expression,
            "descriptors[0].revents != 0",
            "false"
        ),
        .init(
            "a prompt keeps a signal to itself",
            "SealedDB/Keys/Terminal.swift",
            .statement,
            "if let signal { try pass(on: signal) }",
            ""
        ),
        .init(
            "a library that was updated is refused",
            "SealedDB/Engine/EngineChecks.swift",
            .expression,
            "versionNumber >= oldestVersionNumber",
            "versionNumber >= oldestVersionNumber && sourceID == Engine.sourceID"
        ),
    ]

    /// What is told is so.
    static let answers: [NamedMutant] = [
        .init(
            "an error shows the statements that follow",
            "SealedDB/Engine/Connection/Connection+Compiling.swift",
            .expression,
            "error(sql: String(decoding: piece, as: UTF8.self))",
            "error(sql: String(decoding: sql, as: UTF8.self))"
        ),
        .init(
            "SQLite gets all that follows with each statement",
            "SealedDB/Engine/Connection/Connection+Compiling.swift",
            .expression,
            "sql[text.range]",
            "sql[text.range.lowerBound...]"
        ),
        .init(
            "an authorizer that was removed stays in statements",
            "SealedDB/Engine/Hooks/Hooks.swift",
            .statement,
            """
            // one.
                        install()
            """,
            "if authorizer != nil { install() }"
        ),
        .init(
            "a wait is told of again with the next error",
            "SealedDB/Engine/Supervision/BusyWait.swift",
            .statement,
            // With its brace, because a question around the whole would be where it ends.
            "givenUp = nil }",
            ""
        ),
        .init(
            "a lock of the connection's own is told as another's",
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            .expression,
            "message != String(cString: sqlite3_errstr(code))",
            "false"
        ),
        .init(
            "a comment at the end is a second statement",
            "SealedDB/Engine/Connection/Connection.swift",
            .expression,
            "rest.hasStatement()",
            "end < bytes.count"
        ),
        .init(
            "a change to the schema behind a comment is not seen",
            "SealedDB/Engine/SQL/StatementKind.swift",
            .expression,
            "facts.contains(.schema) || StatementKind.schemaVerbs.contains(text.verb ?? \"\")",
            "false"
        ),
        .init(
            "generic code reads a column's type as a row",
            "SealedDB/Rows/RowDecoder.swift",
            .statement,
            "if let readable = readable(type, at: 0) { return try read(readable, as: type, at: 0) }",
            ""
        ),
        .init(
            "a row that a trigger keeps is reported missing",
            "SealedDB/Rows/Database+Records.swift",
            .expression,
            "try isThere()",
            "false"
        ),
        .init(
            "a row that came meanwhile counts as one that a trigger keeps",
            "SealedDB/Rows/Database+Records.swift",
            .expression,
            "isInTransaction",
            "true"
        ),
        .init(
            "no table counts as read by a pragma",
            "SealedDB/Engine/Hooks/Hooks.swift",
            .expression,
            "Hooks.pragmasWithoutRows.contains(String(cString: name).foldedForSQL)",
            "true"
        ),
        .init(
            "a commit that changes nothing observed is not told where all are",
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            .statement,
            "if changesAnything { transaction.changes[.anything] = .any }",
            ""
        ),
    ]
}
