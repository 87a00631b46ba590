extension Explained {
    /// What is left of the engine and of concurrency.
    static let engine: [Explained] = [
        .init(
            "SealedDB/Engine/Connection/ConnectionSettings.swift",
            "restore",
            .alwaysTrue,
            "isLikeCaseSensitive != present.isLikeCaseSensitive",
            "it is set to what it is"
        ),
        .init(
            "SealedDB/Engine/Guard/StatementGuard.swift",
            "refusal",
            .alwaysTrue,
            "rules.hasSlots || strcasecmp(table, GuardRules.slotMemory) == 0",
            "the rules compare the name again: this only saves a String"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Writer.swift",
            "takePart",
            .alwaysTrue,
            "database.isOpen",
            "transaction.isOpen is false whenever the database is not in a transaction after run(), so it is "
                + "open here"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Writer.swift",
            "runAlone",
            .alwaysTrue,
            "!database.isInTransaction",
            "endingTransaction and snapshot have ended the transaction, or closed the database, before the "
                + "catch, so it is never in a transaction here"
        ),
        .init(
            "SealedDB/Concurrency/DatabasePool.swift",
            "give",
            .partDropped,
            "adopted != nil",
            "a database gets an adopted key only by a rotation, which needs a key, and so a key origin; adopted "
                + "is never alone"
        ),
        .init(
            "SealedDB/Concurrency/ServiceRotation.swift",
            "advance",
            .alwaysTrue,
            "!db.isInTransaction",
            "a turn begins after blocks that have ended their transactions, so none is open"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Ledger.swift",
            "take",
            .alwaysTrue,
            "request.desk == desk",
            "take() is called for the writer with a barrier's request, which is for the writer, and by serve() "
                + "with an entry of the desk's own line: the desks are always the same"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Ledger.swift",
            "passOn",
            .partDropped,
            "holds(.readers, former)",
            "a thread with a place for reading is refused the writer's place, and a nested read has ended "
                + "before its write block, so whoever passes the writer's place on has no place for reading"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Ledger.swift",
            "circle",
            .alwaysTrue,
            "slot.thread != 0",
            "no waiting thread has the number 0 (request.thread is checked before, sharing gets only threads "
                + "that hold a place), so waiting[0] is always nil"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Ledger.swift",
            "isIdle",
            .partDropped,
            "$0.line.isEmpty",
            "if nobody holds a place and no barrier waits, proceed() has granted a place to all in line, so the "
                + "line is empty"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Reception.swift",
            "expire",
            .callDropped,
            "observer()",
            "who waits, waits for somebody who holds a place: with a place held the ledger is not idle, without "
                + "one nobody waits. So an expiry or a dismissal never makes it idle"
        ),
        .init(
            "SealedDB/Concurrency/Turns/Reception.swift",
            "shutDown",
            .callDropped,
            "observer()",
            "who waits, waits for somebody who holds a place: with a place held the ledger is not idle, without "
                + "one nobody waits. So an expiry or a dismissal never makes it idle"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            "endFailure",
            .alwaysTrue,
            "isAutocommit",
            "inside an explicit transaction, ending a statement early commits and checks nothing that can fail"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Errors.swift",
            "withoutLiteral",
            .partDropped,
            "suffix(end.utf8.count) == Array(end.utf8)[...]",
            "the parser's messages that begin so always end so; messages of functions come with a statement, "
                + "and then `shown` is used, not this text"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+HeldChanges.swift",
            "writeHeldChanges",
            .alwaysTrue,
            "code == SQLITE_OK",
            "sqlite3_db_status does not fail for this value of an open connection"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            "integer",
            .alwaysTrue,
            "try statement.step()",
            "without a row the type of column 0 is NULL, which gives nil too"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            "hasViolatedForeignKeys",
            .partDropped,
            "sqlite3_db_status(handle, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0) == SQLITE_",
            "sqlite3_db_status does not fail for this value of an open connection"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection+Switches.swift",
            "set",
            .alwaysTrue,
            "effective == (isOn ? 1 : 0)",
            "SQLite sets each of these switches as told, or returns an error"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "init",
            .alwaysFalse,
            "path.begins(with: \"file:\")",
            "URI filenames are off in every process that uses the library first; then file:x and ./file:x are "
                + "the same file"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "willStart",
            .alwaysTrue,
            "depth == 0",
            "writeHeldChanges() checks the depth itself; within a function it only is asked again later"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "willStart",
            .alwaysTrue,
            "!prepared.controlsSavepoint",
            "only SAVEPOINT itself comes here with changes that may be written, and it may be written before "
                + "it; RELEASE and ROLLBACK TO come with mayHaveSavepoint, which writeHeldChanges() refuses"
        ),
        .init(
            "SealedDB/Engine/Connection/Connection.swift",
            "register",
            .alwaysTrue,
            "mayEnd",
            "backup and BlobHandle throw in a hook before they register, and a child that was forked gets no "
                + "pointer to register"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionHandle.swift",
            "isEmpty",
            .partDropped,
            "users.isEmpty",
            "add() adds a user only together with its statement, so statements is not empty when users is not"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionHandle.swift",
            "add",
            .callDropped,
            "users.append(user)",
            "whoever closes the connection holds the database, which is the user, until after the lock is given "
                + "back"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionSettings.swift",
            "init",
            .alwaysTrue,
            "sealeddb_switch(handle, number, -1, &value) == SQLITE_OK",
            "an unknown switch would be stored as 0 on both connections, and so be equal"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionSettings.swift",
            "restore",
            .alwaysTrue,
            "sealeddb_switch(handle, number, value, &effective) == SQLITE_OK",
            "SQLite sets each switch that it could read, on a connection of the same engine"
        ),
        .init(
            "SealedDB/Engine/Connection/ConnectionSettings.swift",
            "restore",
            .alwaysTrue,
            "effective == value",
            "SQLite sets each switch that it could read, on a connection of the same engine"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "objectPath",
            .alwaysTrue,
            "sealeddb_object_of(address, &path, path.count) != nil",
            "dladdr knows the object of each of these functions, and paths are shorter than 4096 bytes"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "keyedProbe",
            .alwaysTrue,
            "sealeddb_key(handle, placeholder, Int32(placeholder.count)) == SQLITE_OK",
            "with an engine that passed the checks these calls on a database in memory only fail without memory"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "keyedProbe",
            .alwaysTrue,
            "sqlite3_exec(handle, \"PRAGMA cipher_log = off\", nil, nil, nil) == SQLITE_OK",
            "with an engine that passed the checks these calls on a database in memory only fail without memory"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "text",
            .alwaysTrue,
            "sqlite3_prepare_v3(handle, sql, -1, 0, &statement, nil) == SQLITE_OK",
            "with an engine that passed the checks these calls on a database in memory only fail without memory"
        ),
        .init(
            "SealedDB/Engine/Engine.swift",
            "text",
            .alwaysTrue,
            "sqlite3_step(statement) == SQLITE_ROW",
            "with an engine that passed the checks these calls on a database in memory only fail without memory"
        ),
        .init(
            "SealedDB/Engine/Functions/FTS5Module.swift",
            "register",
            .alwaysFalse,
            "code != SQLITE_OK",
            "FTS5 refuses a tokenizer only if memory runs out"
        ),
        .init(
            "SealedDB/Engine/Functions/FTS5Module.swift",
            "register",
            .callDropped,
            "box.release()",
            "FTS5 refuses a tokenizer only if memory runs out"
        ),
        .init(
            "SealedDB/Engine/Functions/FTS5Module.swift",
            "closure",
            .alwaysFalse,
            "text == nil",
            "FTS5 gives a count of 0 with a text that is NULL"
        ),
        .init(
            "SealedDB/Engine/Functions/FTS5Module.swift",
            "closure",
            .alwaysTrue,
            "code == SQLITE_OK",
            "FTS5's own functions that receive tokens fail only if memory runs out"
        ),
        .init(
            "SealedDB/Engine/Functions/FunctionBox.swift",
            "change",
            .alwaysTrue,
            "!state.hasFailed",
            "after a step that failed SQLite calls nothing but xFinal, which has a check of its own"
        ),
        .init(
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            "rowChanged",
            .alwaysTrue,
            "last.database == database",
            "a table's name in SQLite's memory belongs to one table of one schema, so the same name pointer "
                + "means the same schema"
        ),
        .init(
            "SealedDB/Engine/Hooks/Hooks.swift",
            "closure",
            .alwaysFalse,
            "overflows",
            "the sum overflows only after 2^31 instructions of one statement; then an interval of 2^31 - 1 "
                + "would be exceeded later"
        ),
        .init(
            "SealedDB/Engine/Pages/Backup.swift",
            "advance",
            .alwaysTrue,
            "try copy(Int32(clamping: count))",
            "within the reading transaction of snapshot() the source keeps its number of pages, so that the "
                + "first copy is never the end and the last one always is"
        ),
        .init(
            "SealedDB/Engine/Pages/Backup.swift",
            "advance",
            .alwaysTrue,
            "try !copy(1)",
            "within the reading transaction of snapshot() the source keeps its number of pages, so that the "
                + "first copy is never the end and the last one always is"
        ),
        .init(
            "SealedDB/Engine/Pages/Backup.swift",
            "advance",
            .alwaysFalse,
            "last != nil",
            "the statement that holds the reading transaction is closed, which reports nothing; the body throws "
                + "only before `last` is set"
        ),
        .init(
            "SealedDB/Engine/Pages/Backup.swift",
            "step",
            .bounds,
            "pages < 0",
            "pages = 0 has returned above, because remaining > 1"
        ),
        .init(
            "SealedDB/Engine/Pages/BlobHandle.swift",
            "close",
            .alwaysTrue,
            "connection.isAutocommit",
            "within a transaction closing a blob writes nothing, and so cannot fail"
        ),
        .init(
            "SealedDB/Engine/Pages/FileView.swift",
            "open",
            .alwaysTrue,
            "code == SQLITE_OK",
            "SQLite takes every VFS with a name"
        ),
        .init(
            "SealedDB/Engine/Pages/FileView.swift",
            "ofImmutableFile",
            .assignmentDropped,
            "isReserved?.pointee = 0",
            "SQLite asks no lock of a file that is immutable"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "name",
            .alwaysTrue,
            "GuardingVFS.register(name, guarding: own)",
            "SQLite takes every VFS with a name; strdup fails only without memory"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "name",
            .alwaysTrue,
            "isRegistered",
            "SQLite takes every VFS with a name; strdup fails only without memory"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "open",
            .alwaysTrue,
            "guarding.vfs.szOsFile >= ServedFile.fileSize",
            "every VFS that opens files of the system has larger files than 16 bytes"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "register",
            .alwaysTrue,
            "vfs.iVersion >= 2",
            "SQLite calls xCurrentTimeInt64 only from version 2 on"
        ),
        .init(
            "SealedDB/Engine/Pages/OpenLogs.swift",
            "add",
            .partDropped,
            "methods.pointee.xFileControl(main, SQLITE_FCNTL_HAS_MOVED, &hasMoved) != SQLITE_OK",
            "SQLite's own VFS always answers SQLITE_FCNTL_HAS_MOVED"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "begin",
            .alwaysTrue,
            "isKnown(cipherVersion)",
            "with this engine both are true (unknown versions are tested); with another one the installation "
                + "refuses, too"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "begin",
            .alwaysTrue,
            "sealeddb_knows_database_names() != 0",
            "with this engine both are true (unknown versions are tested); with another one the installation "
                + "refuses, too"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "passes",
            .alwaysTrue,
            "image.count >= 3 * 4096",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "withConnection",
            .alwaysTrue,
            "sqlite3_open_v2(\":memory:\", &handle, flags, nil) == SQLITE_OK",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "withConnection",
            .alwaysTrue,
            "sealeddb_key(handle, key, Int32(key.count)) == SQLITE_OK",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "encryptedImage",
            .alwaysTrue,
            "sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "readsAll",
            .alwaysTrue,
            "sqlite3_exec(handle, \"PRAGMA cipher_compatibility = 4\", nil, nil, nil) == SQLITE_OK",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "readsAll",
            .alwaysTrue,
            "code == SQLITE_ROW || !isWhole || turn > 0",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "readsAll",
            .partDropped,
            "turn > 0",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/PageWatch.swift",
            "readsAll",
            .bounds,
            "turn > 0",
            "the self test's own calls on a database in memory only fail without memory; the outcomes with this "
                + "engine do not come to these parts"
        ),
        .init(
            "SealedDB/Engine/Pages/ServedFile.swift",
            "init",
            .alwaysTrue,
            "strlen(name) < Int(size)",
            "the name is the library's own, of some 50 bytes"
        ),
        .init(
            "SealedDB/Engine/Pages/ServedFile.swift",
            "open",
            .alwaysTrue,
            "code == SQLITE_OK",
            "SQLite takes every VFS with a name"
        ),
        .init(
            "SealedDB/Engine/Pages/ServedFile.swift",
            "open",
            .callDropped,
            "connection.close()",
            "PRAGMA temp_store on a connection that has read nothing does not fail"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLKeywords.swift",
            "closure",
            .alwaysTrue,
            "sqlite3_keyword_name(index, &name, &count) == SQLITE_OK",
            "SQLite has a name for each number below sqlite3_keyword_count()"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLStatementText+Failure.swift",
            "mayHoldKey",
            .partDropped,
            "isBehindKey",
            "a quoted token behind the name of a key has returned true above, so isBehindKey is false there"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLStatementText+Failure.swift",
            "mayHoldKey",
            .alwaysTrue,
            "isNameOfKey(name)",
            "`pragma` is itself one of the words, so every name that begins with pragma_ is one of a key"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLStatementText.swift",
            "isSecret",
            .alwaysTrue,
            "first.kind == .word",
            "only asked of text that SQLite has compiled, which does not begin with a quoted name"
        ),
        .init(
            "SealedDB/Engine/SQL/SQLTokenizer.swift",
            "name",
            .alwaysTrue,
            "text.count > 1",
            "tokens of these kinds have both quotes; one quote alone is illegal"
        ),
        .init(
            "SealedDB/Engine/Statement/ColumnNames.swift",
            "index",
            .alwaysTrue,
            "asked.count < ColumnNames.capacity",
            "the list only saves time and memory; the result is the same"
        ),
        .init(
            "SealedDB/Engine/Statement/MessageValues.swift",
            "holds",
            .alwaysTrue,
            "part.count <= count",
            "holds() is called on the longer of the two"
        ),
        .init(
            "SealedDB/Engine/Statement/Statement+Bytes.swift",
            "forEachPiece",
            .alwaysTrue,
            "sealeddb_read_value(pointer, column, isUTF16 ? 1 : 0, &value) != 0",
            "fails only if memory runs out"
        ),
        .init(
            "SealedDB/Engine/Statement/Statement+StoredValues.swift",
            "heldValue",
            .alwaysFalse,
            "isAlone",
            "both ways give the same bytes; one saves a lock"
        ),
        .init(
            "SealedDB/Engine/Statement/StatementCache.swift",
            "==",
            .partDropped,
            "first.count == second.count",
            "texts of different lengths have different hashes unless 64 bits collide"
        ),
        .init(
            "SealedDB/Engine/Statement/StatementCache.swift",
            "setCapacity",
            .bounds,
            "$0.tick < $1.tick",
            "no two statements have the same tick"
        ),
        .init(
            "SealedDB/Engine/Supervision/BusyWait.swift",
            "busyMessage",
            .alwaysFalse,
            "path.isEmpty",
            "no process holds a lock of a file without a name, so that the list is empty in both ways"
        ),
        .init(
            "SealedDB/Engine/Supervision/Supervision.swift",
            "willStart",
            .alwaysTrue,
            "statement.connection.isAutocommit",
            "giving way within a transaction only delays by 10 ms at most"
        ),
        .init(
            "SealedDB/Engine/Supervision/Supervision.swift",
            "willStart",
            .alwaysTrue,
            "!isNested",
            "the deadline of a statement that ran within a function is only used if the same statement is "
                + "stepped later outside of it, where it then has the limit that it should have"
        ),
        .init(
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            "register",
            .assignmentDropped,
            "vfs.xDlError =",
            "that of the VFS that is guarded is then called as it is, and does not look at which VFS it is called for"
        ),
        .init(
            "SealedDB/Concurrency/Connections/Writer.swift",
            "commit",
            .alwaysTrue,
            "Instruments.isOn",
            "a time is taken that nobody asks for"
        ),
    ]
}
