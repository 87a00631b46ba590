extension NamedMutant {
    /// What has begun ends, and what was copied is all there.
    static let ends: [NamedMutant] = [
        .init(
            "the failure of one block is left to the next",
            "SealedDB/Concurrency/Connections/Database+Supervision.swift",
            .statement,
            "_ = connection?.takeUnnoticedFailure()",
            "_ = connection"
        ),
        .init(
            "a writer that is open when an observation begins is not told",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .expression,
            "sqlite3_get_autocommit($0) == 0 || sqlite3_txn_state($0, nil) == SQLITE_TXN_WRITE",
            "sqlite3_get_autocommit($0) == 0"
        ),
        .init(
            "a number is a truth value to a type that tries several",
            "SealedDB/Rows/ColumnDecoder.swift",
            .expression,
            "stored == 0 || stored == 1",
            "true"
        ),
        .init(
            "a property is stored that is read as another value",
            "SealedDB/Rows/RowEncoder.swift",
            .expression,
            "stored.isReadAsAnother(than: value)",
            "false"
        ),
        .init(
            "a function gets a text's bytes in the encoding of the store",
            "SealedDB/Engine/Functions/FunctionArguments.swift",
            .expression,
            "type == .text",
            "false"
        ),
        .init(
            "numeric keys of dictionaries are shown",
            "SealedDB/Values/CodingFailure.swift",
            .expression,
            #"key.stringValue == "Index \(index)""#,
            "true"
        ),
        .init(
            "what another open writer may undo is reported as done",
            "SealedDB/Engine/Connection/Connection.swift",
            .statement,
            "try requireNoOpenWriter(statement)",
            "_ = statement"
        ),
        .init(
            "nobody notes that a result set that writes is open",
            "SealedDB/Engine/Statement/Statement.swift",
            .statement,
            "connection.mayHaveOpenWriter = connection.isAutocommit",
            "_ = connection"
        ),
        .init(
            "a forked child goes on with its parent's statements",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .expression,
            "!isForked",
            "true"
        ),
        .init(
            "words of rows are shown in messages",
            "SealedDB/Engine/Statement/MessageValues.swift",
            .expression,
            "!isChosen && !MessageWords.isUsual(message[word]) && !isOwn(message[word])",
            "false"
        ),
        .init(
            "a former key file that is there already is not synced",
            "SealedDB/Keys/Replacement/KeyFileReplacement.swift",
            .expression,
            "SecretFile.durableContents(atPath: formerFile, what: what)",
            "SecretFile.contents(atPath: formerFile, what: what)"
        ),
        .init(
            "a key goes from its ring before the store with another one is there for good",
            "sealdb/Keyring/KeyringAuditCommand.swift",
            .statement,
            "try synchronizeDirectory(of: store.identity)",
            "_ = store"
        ),
        .init(
            "a rotation says that a store has its key before it is there for good",
            "sealdb/Batch/StoreRotation.swift",
            .statement,
            "try synchronizeDirectory(of: store.identity)",
            "_ = store"
        ),
        .init(
            "OpenSSL tears itself down while threads end",
            "SealedDB/Engine/Engine.swift",
            .expression,
            "sealeddb_skip_openssl_cleanup()",
            "1"
        ),
        .init(
            "a time of creation that cannot be read is none",
            "SealedDB/System/FileIdentity.swift",
            .statement,
            "throw .unexamined(name)",
            "return nil"
        ),
        .init(
            "a look at one moment holds none",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .expression,
            "try reader.step()",
            "true"
        ),
        .init(
            "an open blob keeps an interrupted transaction from its end",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .statement,
            "endUses()\n        endBlobs()",
            "endUses()"
        ),
        .init(
            "a transaction that a function began is not owed an end",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .expression,
            "depth > 0",
            "false"
        ),
        .init(
            "who has a connection that was released is forgotten",
            "SealedDB/Concurrency/Turns/Ledger.swift",
            .expression,
            "$0.state == .held && $0.thread == thread",
            "$0.state == .held && !$0.isForgotten && $0.thread == thread"
        ),
        .init(
            "a destination is used while it is replaced",
            "SealedDB/Engine/Connection/Connection.swift",
            .expression,
            "hookThread.exchange(Connection.replaced, ordering: .relaxed)",
            "hookThread.load(ordering: .relaxed)"
        ),
        .init(
            "indexes of a copy are not compared",
            "SealedDB/Cipher/Copying/ContentDigest.swift",
            .expression,
            "try table.indexes(of: connection)",
            "[(name: String, rows: Statement)]()"
        ),
        .init(
            "the free pages of a copy are not looked at",
            "SealedDB/Cipher/Copying/PageCopy.swift",
            .expression,
            "try problem != pageProblem(source)",
            "false"
        ),
        .init(
            "a store that is being written to is diagnosed",
            "SealedDB/Cipher/Verification/StoreDiagnosis.swift",
            .expression,
            "try before != Moment(of: resolved, connection)",
            "false"
        ),
        .init(
            "a VFS by name is not guarded",
            "SealedDB/Engine/Connection/Connection.swift",
            .expression,
            "try GuardedVFS.name(guarding: vfs)",
            "vfs == nil ? (try GuardedVFS.name(guarding: nil)) : vfs!"
        ),
        .init(
            "a signal does not end the wait of COMMIT",
            "sealdb/Commands/ExecCommand.swift",
            .expression,
            "SignalWatch.wasInterrupted",
            "false"
        ),
        .init(
            "nobody is told of what the end of a statement commits",
            "SealedDB/Engine/Connection/Connection.swift",
            .statement,
            "if !prepared.isReadOnly { settleEnd() }",
            ""
        ),
        .init(
            "nobody is told of what a dropped blob commits",
            "SealedDB/Engine/Connection/Connection.swift",
            .statement,
            """
            claim.end(on: handle) { code, statement in noteUnnoticed(endFailure(code, of: statement)) }
                    settleEnd()
            """,
            "claim.end(on: handle) { code, statement in noteUnnoticed(endFailure(code, of: statement)) }"
        ),
        .init(
            "nobody is told of what a statement commits that is bound again",
            "SealedDB/Engine/Statement/Statement.swift",
            .statement,
            "if !isReadOnly { connection.settleEnd() }",
            ""
        ),
        .init(
            "nobody is told of what a blob commits that expires",
            "SealedDB/Database/Files/Blob.swift",
            .statement,
            "database.connection?.settleEnd()",
            ""
        ),
        .init(
            "SQLite may sort on threads of its own by a pragma",
            "SealedDB/Engine/Guard/StatementGuard.swift",
            .statement,
            "return .ignore",
            "return .allow"
        ),
        .init(
            "SQLite may sort on threads of its own by a limit",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .expression,
            "category == SQLITE_LIMIT_WORKER_THREADS ? min(value, 0) : value",
            "value"
        ),
        .init(
            "what a table runs when it is read may write in a block of read",
            "SealedDB/Engine/Guard/StatementGuard.swift",
            .expression,
            "supervision?.scope == .reading",
            "false"
        ),
    ]
}
