extension Explained {
    /// What is left of pages, copies, recovery and verification.
    static let copies: [Explained] = [
        .init(
            "SealedDB/Cipher/Recovery/Affinity.swift",
            "isNumber",
            .alwaysTrue,
            "bytes.contains(where: digits.contains)",
            "without a digit no text of these characters is a number to Double(), so the answer is false in any "
                + "case"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "init",
            .alwaysTrue,
            "list.text(at: 0) == \"main\"",
            "PRAGMA main.table_list lists no other schema"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "insert",
            .alwaysTrue,
            "!fields.isEmpty",
            "a table has at least one column that is no virtual generated one, so fields is never empty"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "insert",
            .alwaysTrue,
            "(row.rowID != nil) == hasRowIDs",
            "forEachRow gives only rows of the kind that was asked for, which is hasRowIDs"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "insert",
            .alwaysTrue,
            "[SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_ERROR].contains(error.code)",
            "the new file is written by COMMIT alone as long as it fits into 64 MiB of cache, so an insertion "
                + "meets no other code; behind one, the transaction is gone and COMMIT fails in any case"
        ),
        .init(
            "SealedDB/Cipher/Recovery/Salvage.swift",
            "createTables",
            .errorSwallowed,
            "try create(sequence, target)",
            "the statement works in the cache; what create() throws at all is a want of memory"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "create",
            .errorSwallowed,
            "try target.run(sequence)",
            "the statement works in the cache; it fails only for want of memory"
        ),
        .init(
            "SealedDB/Cipher/Recovery/Salvage.swift",
            "create",
            .alwaysTrue,
            "[SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_CORRUPT].contains(error.code)",
            "without a write to the disk SQLite gives no other code"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "create",
            .alwaysTrue,
            "error.code == SQLITE_ERROR",
            "without a write to the disk SQLite gives no other code; the context is added to a message only"
        ),
        .init(
            "SealedDB/Cipher/Recovery/SalvagedTrees.swift",
            "forEachRow",
            .alwaysTrue,
            "number >= 1",
            "SalvagedPages.contents(ofPage:) refuses such numbers too"
        ),
        .init(
            "SealedDB/Cipher/Recovery/SalvagedPages.swift",
            "init",
            .alwaysTrue,
            "pageSize - Int(first[20]) >= 480",
            "a page has at least 1024 bytes (CipherSettings.validate) and header[20] is at most 255, so the "
                + "rest is at least 769"
        ),
        .init(
            "SealedDB/Cipher/Recovery/SalvagedPages.swift",
            "contents",
            .alwaysTrue,
            "whole.count >= 480",
            "a page has at least 1024 bytes (CipherSettings.validate), of which at most 80 are reserved"
        ),
        .init(
            "SealedDB/Cipher/Recovery/SalvagedRecord.swift",
            "bind",
            .alwaysTrue,
            "bytes.withUnsafeBytes({ statement.bindText($0, to: index) })",
            "binding a text fails only if it is longer than SQLite's limit of 1e9 bytes, or for want of memory"
        ),
        .init(
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            "cipher",
            .alwaysTrue,
            "embedded == nil",
            "a key with a salt in it never uses slots (Key.encryptionKey), so whichever salts are tried, it "
                + "finds the same pages"
        ),
        .init(
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            "cipher",
            .alwaysTrue,
            "parameters.usesHMAC",
            "without codes no page is authentic, so the loop ends with the first cipher all the same, after "
                + "more work"
        ),
        .init(
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            "journalOverlay",
            .alwaysTrue,
            "cipher.parameters.usesHMAC",
            "with a cipher without codes JournalDamage finds no authentic page and no first page of its own, "
                + "and says nothing"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "load",
            .alwaysTrue,
            "error.reason != .unverified",
            "PageCopy.run throws .unverified only for a target that is a file; here it is memory"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "fill",
            .alwaysTrue,
            "try file.text(\"PRAGMA journal_mode = WAL\") == \"wal\"",
            "a new file beside the store goes into WAL mode unless shared memory is not supported there, which "
                + "opening finds first"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "fill",
            .alwaysTrue,
            "file.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "verify",
            .alwaysTrue,
            "file.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Pages.swift",
            "verifySample",
            .alwaysTrue,
            "connection.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            "verifyRows",
            .alwaysTrue,
            "connection.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            "contents",
            .alwaysTrue,
            "connection.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "verifyContents",
            .alwaysTrue,
            "connection.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/SerializedStore.swift",
            "image",
            .alwaysTrue,
            "try file.text(\"PRAGMA journal_mode = DELETE\") == \"delete\"",
            "a new file of one connection goes into DELETE mode whenever nobody else has it open; it was made a "
                + "moment ago under a random name"
        ),
        .init(
            "SealedDB/Cipher/Copying/SerializedStore.swift",
            "image",
            .alwaysTrue,
            "file.close()",
            "a connection closes whenever none of its statements is open, and all of them are closed here; "
                + "SQLite has no other reason to refuse"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "verify",
            .alwaysTrue,
            "try StoreHeader.isPlaintext(file.fileBytes(count: 100)) == (key == nil)",
            "whoever else writes into a file of mode 600 under a random name within this call could not be made "
                + "to: it has no callback. An encrypted file in the place of plaintext fails in IntegrityReport.check "
                + "too"
        ),
        .init(
            "SealedDB/Cipher/Copying/NewStore.swift",
            "make",
            .alwaysFalse,
            "copy.isInPlace",
            "moveIn() fails only if the rename fails, and then the copy is not in its place; only a network "
                + "file system that lost the answer could tell otherwise"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageCopy.swift",
            "intermediate",
            .alwaysTrue,
            "source.mainFilePath != nil",
            "only saves a copy in memory where the source is in memory: the result is the same"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageCopy.swift",
            "isKeyed",
            .alwaysTrue,
            "Engine.isEncrypting",
            "this build has a codec, so the condition is a constant; in the plain build the code behind it "
                + "finds no codec, and gives the same answer"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "copyAll",
            .alwaysTrue,
            "Engine.isEncrypting",
            "this build has a codec, so the condition is a constant; in the plain build the code behind it "
                + "finds no codec, and gives the same answer"
        ),
        .init(
            "SealedDB/Cipher/Settings/CipherParameters.swift",
            "requirePlaintext",
            .alwaysTrue,
            "Engine.isEncrypting",
            "this build has a codec, so the condition is a constant; in the plain build the code behind it "
                + "finds no codec, and gives the same answer"
        ),
        .init(
            "SealedDB/Cipher/Settings/EngineInfo.swift",
            "current",
            .partDropped,
            "Engine.isEncrypting",
            "this build has a codec, so the condition is a constant; in the plain build the code behind it "
                + "finds no codec, and gives the same answer"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageSource.swift",
            "requireFree",
            .alwaysTrue,
            "!pages.isEmpty",
            "without pages the loop below does nothing; this only saves making a FreePages"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "copy",
            .alwaysTrue,
            "run.lowerBound == completed + 1",
            "PagePipeline delivers runs in order and TransferWorker.outcome returns the whole count or throws; "
                + "a second look at both"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "copy",
            .alwaysTrue,
            "written == run.count",
            "PagePipeline delivers runs in order and TransferWorker.outcome returns the whole count or throws; "
                + "a second look at both"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "copy",
            .offByOne,
            "completed + 1",
            "in the message of an error that cannot be"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "copy",
            .alwaysTrue,
            "completed == numbers.upperBound",
            "forEachRun returns only when all runs were delivered or one was stopped, and that error is thrown "
                + "before"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "copy",
            .alwaysTrue,
            "isUnderWay",
            "if writing was not begun (no support), waiting for it does nothing"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "registerOthers",
            .alwaysTrue,
            "rows.text(at: 0) != \"index\"",
            "the source was checked before: an index without a root is refused there as damage"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "run",
            .alwaysFalse,
            "try statement.step()",
            "none of these statements returns a row, so one step runs all of it"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            "copyRows",
            .alwaysTrue,
            "totals.count > 0",
            "a source without pages is sound; the check finds that, too"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "filled",
            .alwaysTrue,
            "totals.count > 0",
            "reading no pages through SourcePages copies an empty schema as well"
        ),
        .init(
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            "run",
            .alwaysTrue,
            "totals.count > 0",
            "a source of a transfer has a first page: it is only made from a keyed file that was opened, whose "
                + "page 1 tells its size"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            "verifyRows",
            .alwaysFalse,
            "isPlaintext",
            "opening with a key refuses a plaintext file before (DatabaseError.Reason.plaintext), so that side "
                + "of the message is never seen"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "init",
            .alwaysTrue,
            "error.code == SQLITE_ERROR",
            "preparing such a statement fails otherwise only for want of memory or of the disk, and then the "
                + "next statement fails the same way"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "indexes",
            .alwaysTrue,
            "!values.isEmpty",
            "without values the statement is a syntax error, which the catch below skips as well"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "indexes",
            .alwaysTrue,
            "error.code == SQLITE_ERROR",
            "preparing such a statement fails otherwise only for want of memory or of the disk, and then the "
                + "next statement fails the same way"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "condition",
            .alwaysTrue,
            "try statement.step()",
            "a partial index has a row in the schema; without one, withBytes gives nil, and the result is [] as "
                + "well"
        ),
        .init(
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            "copy",
            .alwaysTrue,
            "try outcome(of: numbers) == numbers.count",
            "outcome(of:) returns numbers.count or throws"
        ),
        .init(
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            "outcome",
            .alwaysTrue,
            "try file.read(into: read.pages(numbers.count), at: offset)",
            "if nothing was read back, the bytes in the buffer are those of the source, and the comparison "
                + "below fails with the same error"
        ),
        .init(
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            "compare",
            .alwaysTrue,
            "wanted.hasSameBytes(as: UnsafeRawBufferPointer(found.bytes), count: targetCipher.contentS",
            "the bytes read back were compared before; this second look is for a decryption or memory that "
                + "failed between"
        ),
        .init(
            "SealedDB/Cipher/Pages/ComparisonWorker.swift",
            "problem",
            .partDropped,
            "counts[0] == counts[1]",
            "both sides have the same layout: copies of pages demand it (Sealing.hasLayout)"
        ),
        .init(
            "SealedDB/Cipher/Logs/JournalDamage.swift",
            "problem",
            .alwaysTrue,
            "changed.count == restored.count",
            "if one of the pages that are put back is authentic, its record is among originals, which is empty "
                + "here"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageBuffer.swift",
            "hasSameBytes",
            .partDropped,
            "self.count >= count",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageBuffer.swift",
            "hasSameBytes",
            .partDropped,
            "other.count >= count",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageCipher+Writing.swift",
            "reseal",
            .partDropped,
            "page.count == parameters.pageSize",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageCipher+Writing.swift",
            "reseal",
            .partDropped,
            "target.count == page.count",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageCipher.swift",
            "decrypt",
            .alwaysTrue,
            "page.count == parameters.pageSize",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Pages/PageCipher.swift",
            "decrypt",
            .alwaysTrue,
            "target.count >= page.count",
            "a precondition: a call that breaks it ends the process"
        ),
        .init(
            "SealedDB/Cipher/Logs/RollbackJournal.swift",
            "forEachRecord",
            .alwaysTrue,
            "offset > start",
            "offset is start plus a sector at least"
        ),
        .init(
            "SealedDB/Cipher/Logs/RollbackJournal.swift",
            "superJournal",
            .alwaysTrue,
            "size >= 16",
            "a RollbackJournal has a header of 28 bytes, so the file is larger"
        ),
        .init(
            "SealedDB/Cipher/Settings/CipherParameters.swift",
            "init",
            .alwaysTrue,
            "words.count == 3",
            "SQLCipher gives each setting in three words"
        ),
        .init(
            "SealedDB/Cipher/Settings/Sealing.swift",
            "init",
            .alwaysTrue,
            "size > 0",
            "SQLCipher returns no page size only for want of memory"
        ),
        .init(
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            "check",
            .partDropped,
            "totals.size == cipher.parameters.pageSize",
            "the connection was opened with these settings, and SQLCipher's page size is theirs"
        ),
        .init(
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            "check",
            .partDropped,
            "needed <= fileSize",
            "SQLite refuses a file that is shorter than its pages need when the transaction begins; only a cut "
                + "during the check could show this"
        ),
        .init(
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            "check",
            .alwaysFalse,
            "needed > fileSize",
            "SQLite refuses a file that is shorter than its pages need when the transaction begins; only a cut "
                + "during the check could show this"
        ),
        .init(
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            "check",
            .callDropped,
            "problems.append(\"the file has \\(fileSize) bytes, but its \\(totals.count) pages need \\(nee",
            "SQLite refuses a file that is shorter than its pages need when the transaction begins; only a cut "
                + "during the check could show this"
        ),
        .init(
            "SealedDB/Cipher/Verification/StoreExamination.swift",
            "firstDamagedPages",
            .alwaysTrue,
            "bytes.count == size",
            "FreePages asks for no page behind the end of the file (pageCount)"
        ),
        .init(
            "SealedDB/Cipher/Verification/StoreRecognition.swift",
            "isOfPrerelease",
            .alwaysTrue,
            "salt.count == Key.saltByteCount",
            "with a salt of another size no page is authentic either, so the answer is false all the same"
        ),
        .init(
            "SealedDB/Cipher/Verification/StructureCheck.swift",
            "tableByTable",
            .alwaysTrue,
            "error.code == SQLITE_ERROR",
            "the quick check of the whole file that follows meets the same unreadable place, and throws that "
                + "error"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogDamage.swift",
            "inFile",
            .partDropped,
            "isPart",
            "where a frame's claim is known, its checksum tells; without a claim the first page of the file "
                + "differs in more than its header"
        ),
        .init(
            "SealedDB/Cipher/Verification/StoreExamination.swift",
            "sentence",
            .alwaysFalse,
            "fileSize > 0",
            "SQLite's VFS says that a file of one byte has none, so fileSize is 0 here"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "firstRow",
            .alwaysTrue,
            "statement.step()",
            "which rows a sample looks at; of a table without rows it then looks for one in vain"
        ),
    ]
}
