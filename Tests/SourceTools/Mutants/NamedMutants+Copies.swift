extension NamedMutant {
    /// What is put in a store's place is what the store holds.
    static let copies: [NamedMutant] = [
        .init(
            "the early end of a copy's step is ignored",
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            .expression,
            "!goesOn",
            "false"
        ),
        .init(
            "a live copy that is out of date is put in place",
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            .expression,
            "try StoreState(of: path) == completedState",
            "true"
        ),
        .init(
            "a live copy has SQLCipher read pages that are not authentic",
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            .expression,
            "try !cipher.isAuthentic(page, number: number + Int64(index))",
            "false"
        ),
        .init(
            "the old file is freed while callers wait for a rotation",
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            .statement,
            "prepared?.replacedFile = source.keepFile()",
            ""
        ),
        .init(
            "an old file that somebody has kept under another name is emptied",
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            .expression,
            "status.st_nlink == 0",
            "true"
        ),
        .init(
            "an old file that somebody reads is cut off",
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            .expression,
            "FileUsers.isOnly(writable)",
            "true"
        ),
        .init(
            "an old file is emptied, and is a new database to whoever has it open",
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            .expression,
            "max(ReplacedFile.bytesOfPiece, size - ReplacedFile.bytesOfPiece)",
            "max(0, size - ReplacedFile.bytesOfPiece)"
        ),
        .init(
            "a write that failed while it was waited for is left to the sync",
            "SealedDB/System/NewFile.swift",
            .expression,
            "sealeddb_await_writing(descriptor, range.lowerBound, count) == 0",
            "true"
        ),
        .init(
            "the old file is freed at once, and commits wait",
            "SealedDB/Concurrency/ServiceRotation.swift",
            .statement,
            "copy?.replacedFile?.free()",
            ""
        ),
        .init(
            "a copy beside a service gives the disk all at once",
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            .statement,
            "transfer.sharesDisk = true",
            ""
        ),
        .init(
            "nothing makes the last checkpoint of a rotation short",
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            .statement,
            "(isSynced, isLastReliefDue) = (true, true)",
            "(isSynced, isLastReliefDue) = (true, false)"
        ),
        .init(
            "the pages of a copy are not compared",
            "SealedDB/Cipher/Pages/ComparisonWorker.swift",
            .expression,
            "memcmp(source.scratch.start, copy.scratch.start, counts[0]) == 0",
            "true"
        ),
        .init(
            "the pages of a comparison are not authenticated",
            "SealedDB/Cipher/Pages/ComparisonWorker.swift",
            .expression,
            "try side.cipher.isAuthentic(page, number: number)",
            "true"
        ),
        .init(
            "a copy is verified and not compared",
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            .statement,
            "try verifyPages(sealing, comparedWith: store, report: report)",
            "try verifyPages(sealing, comparedWith: nil, report: report)"
        ),
        .init(
            "the contents of a backup are not compared",
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            .expression,
            "found == digest",
            "true"
        ),
        .init(
            "a copy is read on while its caller ends it",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .statement,
            "try progress(isAuthenticated ? .verify : .structure, 0)",
            ""
        ),
        .init(
            "work without a thread is never done",
            "SealedDB/Cipher/Copying/ParallelWork.swift",
            .statement,
            "guard thread.withLock({ $0 != nil }) else { return try body(report) }",
            ""
        ),
        .init(
            "a digest is computed on though the copy has failed",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .statement,
            "try report(0)",
            ""
        ),
        .init(
            "rows are copied on though there will be no digest",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .statement,
            "try work.requireNoFailure()",
            ""
        ),
        .init(
            "rows without a name for their row id are copied in the order of an index",
            "SealedDB/Cipher/Copying/TableLayout.swift",
            .expression,
            #""NOT INDEXED" + (rowID.map { " ORDER BY s.\($0)" } ?? "")"#,
            #"rowID.map { "NOT INDEXED ORDER BY s.\($0)" } ?? """#
        ),
        .init(
            "an emptied database loses its encoding",
            "SealedDB/Cipher/Copying/RowCopy.swift",
            .expression,
            "!objects.isEmpty || isUTF16",
            "!objects.isEmpty"
        ),
        .init(
            "a large record is copied to its end whatever its caller says",
            "SealedDB/Cipher/Copying/RowCopy.swift",
            .statement,
            #"try target.run("PRAGMA \(RowCopy.schema.quotedIdentifier).cache_size = 0")"#,
            ""
        ),
        .init(
            "pages are read past SQLite though only it can read the log",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .statement,
            """
            if let own, totals.count > 0, try StoredPages.canRead(source) {
                            return try copyRows(SourcePages(reading: source, own), to: connection, report)
                        }
            """,
            """
            if let own, totals.count > 0 {
                            return try copyRows(SourcePages(reading: source, own), to: connection, report)
                        }
            """
        ),
        .init(
            "the rows of a conversion are not compared",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .expression,
            "rows == digest",
            "true"
        ),
        .init(
            "a digest leaves the values out",
            "SealedDB/Cipher/Copying/ContentDigest.swift",
            .statement,
            "for part in rows.parts { try add(row: part) }",
            ""
        ),
        .init(
            "an empty store is accepted",
            "SealedDB/Cipher/Opening/StoreOpening+Emptiness.swift",
            .expression,
            "status.st_size == 0",
            "false"
        ),
        .init(
            "a file is taken for a leftover by how its name begins",
            "SealedDB/System/TemporaryFile.swift",
            .expression,
            "isName($0, beside: target)",
            "$0.hasPrefix(beginning(target))"
        ),
        .init(
            "the settings of a connection are not carried over",
            "SealedDB/Database/Database+Opening.swift",
            .statement,
            "try keptSettings?.restore(on: connection)",
            ""
        ),
        .init(
            "temporary objects are lost with a connection",
            "SealedDB/Database/Files/Database+Keys.swift",
            .statement,
            "try openConnection().requireNothingTemporary()",
            ""
        ),
    ]
}
