extension NamedMutant {
    /// No opening forgets its key, and nobody else's store is replaced.
    static let openings: [NamedMutant] = [
        .init(
            "another file in the place of a store is not noticed",
            "SealedDB/Engine/Connection/Connection+Queries.swift",
            .expression,
            "before.map { !$0.isSameFile(as: mainFile) } ?? true",
            "false"
        ),
        .init(
            "a pool forgets the key that a block has set",
            "SealedDB/Concurrency/DatabasePool.swift",
            .expression,
            "origin != nil || adopted != nil",
            "true"
        ),
        .init(
            "a database that had a key opens without one",
            "SealedDB/Database/Database+Opening.swift",
            .expression,
            "!hadKey",
            "true"
        ),
        .init(
            "a block of a pool changes the key of its connection",
            "SealedDB/Database/Files/Database+Keys.swift",
            .expression,
            "belongsToPool",
            "false"
        ),
        .init(
            "a commit that fails is forgotten with its connection",
            "SealedDB/Database/Files/Database+Keys.swift",
            .statement,
            "try endPendingStatements()\n        do throws(DatabaseError) {\n            try closeForReopening()\n        } catch {\n            "
                + "throw error.adding(context: Database.changedNothing)\n        }",
            "do throws(DatabaseError) {\n            try closeForReopening()\n        } catch {\n            "
                + "throw error.adding(context: Database.changedNothing)\n        }"
        ),
        .init(
            "what is not allowed in prepare is forgotten",
            "SealedDB/Database/Database+Opening.swift",
            .statement,
            "if let preparationError { throw preparationError }",
            ""
        ),
        .init(
            "a restore replaces a store that came meanwhile",
            "SealedDB/Cipher/Conversion/StoreRestore.swift",
            .statement,
            "self.replaces = replaces",
            "self.replaces = true"
        ),
        .init(
            "a key in place of the name of a credential is shown",
            "SealedDB/Keys/Credential.swift",
            .statement,
            #"try Key.requireName(name, of: "credential")"#,
            ""
        ),
        .init(
            "a read that fails is a difference",
            "SealedDB/Cipher/Pages/ComparisonWorker.swift",
            .expression,
            "try scan.read(numbers, into: pages, of: name) == pages.count",
            "try scan.fill(pages, with: numbers)"
        ),
        .init(
            "the values of a literal are not bound",
            "SealedDB/Values/Statement+Bindable.swift",
            .statement,
            "try bind(sql.values)",
            ""
        ),
        .init(
            "a log whose end is in the file already counts as one that was cut off",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .statement,
            "if loss.isInFile { loss.count = max(loss.count, 1) }",
            ""
        ),
        .init(
            "older pages of a log are put over newer ones of the file",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .statement,
            "lostTransactions = try LogDamage.requireNoneInFile(ofStore: file, store: connection)",
            ""
        ),
        .init(
            "recovery puts older pages of a log over newer ones of the file",
            "SealedDB/Cipher/Recovery/SalvagedLogs.swift",
            .statement,
            "committed = committed.filter { !checkpoint.isNewer(than: $1, of: $0) }",
            ""
        ),
        .init(
            "a page of the file that comes from a damaged frame counts as older than the log",
            "SealedDB/Cipher/Recovery/SalvagedCheckpoint.swift",
            .expression,
            "sums.contains(where: { $0.adding(frame.header, stored[...]).bytes[...] == frame.header.checksum })",
            "false"
        ),
        .init(
            "a page of the file that comes from a frame without its header counts as older than the log",
            "SealedDB/Cipher/Recovery/SalvagedLogs.swift",
            .statement,
            "try checkpoint.settle(committed.keys)",
            ""
        ),
        .init(
            "a page that a transaction cannot have twice proves no commit",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "!pages.insert(page).inserted",
            "false"
        ),
        .init(
            "a commit behind two destroyed frames is not counted",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "if isBehindGap { count += 1 }",
            ""
        ),
        .init(
            "the journal of a file that somebody still changes is put back into another one",
            "SealedDB/Cipher/Opening/StoreOpening+FormerJournal.swift",
            .expression,
            "writers.filter { $0.changesAnother(than: store) }",
            "[JournalWriter]()"
        ),
        .init(
            "recovery leaves out a journal beside a log",
            "SealedDB/Cipher/Logs/LogOverlay.swift",
            .statement,
            "both.journal = journal.map { [$0] } ?? []",
            ""
        ),
        .init(
            "what was left of a transaction over several files cannot be put in order",
            "SealedDB/Engine/Pages/GuardedVFS.swift",
            .expression,
            "name.ends(with: \"-journal\") && !JournalName.isOfStranger(name)",
            "false"
        ),
        .init(
            "lines that SQLite takes for a comment are left out of a script",
            "SealedDB/Database/Statements/Database+Scripts.swift",
            .expression,
            "!text.withUnsafeBufferPointer(SQLTokenizer.hidesLines)",
            "true"
        ),
        .init(
            "a wrong key that attaches a store writes its log into it",
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            .expression,
            "connection.setCheckpointsOnClose(false)",
            "connection.setCheckpointsOnClose(true)"
        ),
        .init(
            "a restore takes the place of a key file",
            "SealedDB/Cipher/Conversion/StoreRestore.swift",
            .statement,
            "try lock.requireStore(mayBeCutOff: true)",
            ""
        ),
        .init(
            "an empty file in place of a log keeps a store from being copied",
            "SealedDB/Cipher/Copying/StoredPages.swift",
            .expression,
            "file.st_size == 0",
            "false"
        ),
        .init(
            "a batch waits for threads that there are not",
            "sealdb/Batch/BatchRunner.swift",
            .expression,
            "threads.isEmpty",
            "false"
        ),
        .init(
            "a first page that changed under an open connection is no database to it",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .statement,
            "if failure.mayBeOfWrongKey { hasRefusedFirstPage = true }",
            ""
        ),
        .init(
            "another store that is not attached is told as a change of the open one",
            "SealedDB/Database/Database+Errors.swift",
            .expression,
            "error.isOfAttaching",
            "false"
        ),
    ]
}
