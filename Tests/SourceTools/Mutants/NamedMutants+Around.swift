extension NamedMutant {
    /// What outsiders made to happen with what is not in the rows: schemas, settings, statements that run on, states that were cut off.
    static let around: [NamedMutant] = [
        .init(
            "a store that SQL or a wrong command line would not name is printed over",
            "sealdb/Support/Output/StandardStreams.swift",
            .expression,
            "beginnings.contains(where: start.starts) || StoreHeader.looksRandom(start)",
            "false"
        ),
        .init(
            "the mark at the beginning of rejected rows is not doubled",
            "sealdb/Support/Input/RejectedRows.swift",
            .expression,
            "buffer.bytes[start...].starts(with: mark)",
            "false"
        ),
        .init(
            "results are printed into the store",
            "sealdb/Support/Output/StandardStreams.swift",
            .statement,
            "if !affected.isEmpty { throw withdraw(affected, what) }",
            "_ = (affected, what)"
        ),
        .init(
            "what is written with an escape stands for NULL",
            "sealdb/Support/Input/DelimitedReader.swift",
            .expression,
            "!hasEscape && record.openField.elementsEqual(style.null ?? DelimitedReader.nullOfTSV)",
            "record.openField.elementsEqual(style.null ?? DelimitedReader.nullOfTSV)"
        ),
        .init(
            "values are written as what stands for NULL",
            "sealdb/Support/Output/DelimitedWriter.swift",
            .statement,
            "if mayBeNull { try requireOther(than: null, value, from: start) }",
            "if mayBeNull, format == .csv { try requireOther(than: null, value, from: start) }"
        ),
        .init(
            "a message shows a key that was given beside SQL",
            "sealdb/Support/Output/GivenKeys.swift",
            .expression,
            "text.contains(key)",
            "false"
        ),
        .init(
            "what comes behind a backup is dropped",
            "sealdb/Commands/RestoreCommand.swift",
            .expression,
            "pipe != nil",
            "false"
        ),
        .init(
            "an index is dumped that FTS5 cannot make anew",
            "sealdb/Support/Dump/ExternalIndex.swift",
            .expression,
            "database.compilesWithoutVirtualTables(SQL(raw: \"SELECT * FROM main.\\(SQLLiteral.name(contentTable))\"))",
            "true"
        ),
        .init(
            "an observation looks only at the schemas that it has read",
            "SealedDB/Engine/Hooks/Hooks.swift",
            .expression,
            "[.schema(of: schema)] + reads.unqualified.map { TableName($0, in: schema) }",
            "reads.unqualified.map { TableName($0, in: schema) }"
        ),
        .init(
            "a pragma that writes is not told",
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            .statement,
            "if !isReadOnly { note(observed) }",
            ""
        ),
        .init(
            "the row ids of a VACUUM are not told",
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            .expression,
            "run?.targets.reach != .schemas",
            "run == nil"
        ),
        .init(
            "in a shared transaction a statement that writes is stopped",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .expression,
            "!isStopped || (isShared && connection.hasRunningWriter)",
            "!isStopped"
        ),
        .init(
            "in a shared transaction nothing is stopped",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .expression,
            "isShared && connection.hasRunningWriter",
            "isShared"
        ),
        .init(
            "a shutdown waits for a statement that writes in a shared transaction",
            "SealedDB/Engine/Supervision/Supervision.swift",
            .statement,
            "if isStoppable, shutdown.isSet { return false }",
            ""
        ),
        .init(
            "a pragma that runs statements counts as one that reads",
            "SealedDB/Engine/Statement/PreparedStatement.swift",
            .expression,
            "facts.contains(.statements) && !text.isExplained",
            "false"
        ),
        .init(
            "what a trigger did before it failed is not told",
            "SealedDB/Engine/Hooks/ChangeCollector.swift",
            .expression,
            "(code != SQLITE_DONE || changed &- run.nested != run.told)",
            "(code == SQLITE_ROW || changed &- run.nested != run.told)"
        ),
        .init(
            "a number of pages is not proven by the checksum of its own frame",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "proven.page == frame.header.page",
            "false"
        ),
        .init(
            "a log without a header is one of zeros",
            "SealedDB/Cipher/Logs/LogHeader.swift",
            .statement,
            "guard isLog, LogHeader.pageSizes.contains(pageSize) else { return false }",
            ""
        ),
        .init(
            "two damaged checksums end a log",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "0..<8 as Range<Int64>",
            "0..<1 as Range<Int64>"
        ),
        .init(
            "recovery goes by a journal only if it has its header",
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            .expression,
            "LogOverlay(salvagedJournalOf: path, cipher: cipher, store: store, isHot: isHot)",
            "LogOverlay(salvagedJournalOf: path, cipher: cipher, store: store, isHot: false)"
        ),
        .init(
            "the limit keeps a snapshot waiting",
            "SealedDB/Concurrency/Turns/Ledger.swift",
            .expression,
            "request.isForSnapshot ? lendsAny : hasRoom(request.desk)",
            "hasRoom(request.desk)"
        ),
        .init(
            "what a prepare closure leaves open reaches the first block",
            "SealedDB/Database/Database+Opening.swift",
            .statement,
            "try endingTransaction { try prepare(self) }",
            "try prepare(self)"
        ),
        .init(
            "a generation that was removed counts as one that is away",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .statement,
            "try leaveEnds(manifests, kept, contents)",
            ""
        ),
        .init(
            "a rotation in service drops pages that the first page does not count",
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            .statement,
            "try UncountedPages.requireNone(of: source, path: place.path, old)",
            ""
        ),
        .init(
            "a backup tells no doubt about its store",
            "SealedDB/Cipher/Conversion/StoreBackup.swift",
            .expression,
            "try UncountedPages.problem(of: source, path: opening.path ?? path, own)",
            "nil as String?"
        ),
        .init(
            "the error of a row hides that the statement has written",
            "SealedDB/Rows/Rows.swift",
            .statement,
            "failure = resultSet.endedByRow(error)",
            "failure = resultSet.recorded(error)"
        ),
        .init(
            "a query that runs again is read by its former columns",
            "SealedDB/Rows/RowDecoder.swift",
            .statement,
            "if statement.rowNumber == 1 { (containers, readables) = ([], []) }",
            ""
        ),
        .init(
            "migrations that are only tried may write files",
            "SealedDB/Migration/Migrator.swift",
            .statement,
            "fresh.willPrepare = { [weak fresh] in fresh?.connection?.statementGuard.refusesFiles = true }",
            ""
        ),
        .init(
            "the words of rows in an ATTACH are shown",
            "SealedDB/Engine/Statement/MessageValues.swift",
            .statement,
            "if parameterCount == 0, isChosen, !isSecret { return text }",
            "if parameterCount == 0, isSecret || isChosen { return text }"
        ),
        .init(
            "a recovery takes what stands behind the end of a log for committed",
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            .expression,
            "frames.continues(computed, at: next, start.salts)",
            "true"
        ),
        .init(
            "a retention does not look whether the newest generation is away",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .expression,
            "newest == tail?.generation",
            "newest != 0"
        ),
        .init(
            "a recovery loses what stands behind a damaged header in a log",
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            .expression,
            "try frames.proven(frame, behind: known, stored, next: next, start.salts)",
            "nil as ProvenFrame?"
        ),
        .init(
            "the header of the second last commit of a log may be damaged",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "transactions.passCommit()",
            ""
        ),
        .init(
            "a torn transaction counts as one that was committed",
            "SealedDB/Cipher/Logs/LogFrame.swift",
            .expression,
            "page <= pageCount",
            "true"
        ),
        .init(
            "a journal that is kept hides pages that the first page does not count",
            "SealedDB/Cipher/Verification/UncountedPages.swift",
            .expression,
            "try !mayLogChangeCount(connection, path)",
            "try !mayLogChangeCount(connection, path) && !FileSystem.mayExist(path + \"-journal\")"
        ),
        .init(
            "any log hides pages that the first page does not count",
            "SealedDB/Cipher/Verification/UncountedPages.swift",
            .expression,
            "log?.hasFirstPage ?? false",
            "log != nil"
        ),
        .init(
            "a log that is in the file hides pages that the first page does not count",
            "SealedDB/Cipher/Verification/UncountedPages.swift",
            .statement,
            "if try connection.hasWholeLogInFile() { return false }",
            ""
        ),
        .init(
            "a journal that is kept hides damaged pages",
            "SealedDB/Cipher/Verification/StoreExamination.swift",
            .expression,
            "try? RollbackJournal.isBegun(path + \"-journal\")",
            "true as Bool?"
        ),
    ]
}
