extension Explained {
    /// Those of pages, copies and whole stores.
    static let cipher: [Explained] = [
        .init(
            "SealedDB/Cipher/Verification/StoreExamination.swift",
            "hasLog",
            .notAsked,
            "siblings.contains(\"-journal\")",
            "a journal that is not there is not begun, so that the log alone decides"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogDamage.swift",
            "lostFramesInFile",
            .partDropped,
            "isLarge",
            "more pages are looked at, which only takes longer"
        ),
        .init(
            "SealedDB/Cipher/Rotation/ReplacedFile.swift",
            "init",
            .alwaysTrue,
            "own >= 0",
            "what could not be opened has no status, which is asked for next"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "open",
            .alwaysFalse,
            "needsIndex(error)",
            "tests run as root, who may write in each directory"
        ),
        .init(
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            "check",
            .partDropped,
            "!leavesPagesToSQLCipher",
            "whoever reads the pages for the check of the structure, they are the same"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "deinit",
            .earlyReturn,
            "close()",
            "their connection ends the statements that are left"
        ),
        .init(
            "SealedDB/Cipher/Recovery/RecoveredTable.swift",
            "init",
            .partDropped,
            "$0.type.isSame(as: \"integer\")",
            "a key of another type has an index"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Making.swift",
            "initialize",
            .deferDropped,
            "defer { connection.close() }",
            "a connection closes itself at its end"
        ),
        .init(
            "SealedDB/Cipher/Rotation/KeyRotation+Recognition.swift",
            "isDone",
            .alwaysTrue,
            "reencryption != nil",
            "it also ends what another rotation has left, as the next one would"
        ),
        .init(
            "SealedDB/Cipher/Rotation/LiveCopy.swift",
            "isNearlyComplete",
            .bounds,
            "stepsLeft <= 0",
            "one step more than twice as many as are needed"
        ),
        .init(
            "SealedDB/Cipher/Copying/RowCopy.swift",
            "copy",
            .notAsked,
            "count.isMultiple(of: 1000)",
            "it looks more often whether it is to stop"
        ),
        .init(
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            "run",
            .negated,
            "!new.hasLayout(of: old)",
            "an engine whose reads are watched finds damaged pages by itself, and a copy of pages authenticates each"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "finish",
            .alwaysTrue,
            "connection.close()",
            "the copy is opened again, compared and synced by those who call it"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "finish",
            .alwaysTrue,
            "PRAGMA journal_mode = WAL",
            "the copy is then in another journal mode, which the next queue or pool changes"
        ),
        .init(
            "SealedDB/Cipher/Copying/SerializedStore.swift",
            "",
            .named,
            "a serialized copy is not compared",
            "the reads of the backup and of the serialization are watched, each by itself"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening+Emptiness.swift",
            "logWithContents",
            .notAsked,
            "lstat(journal",
            "no journal is read where none is"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening+Emptiness.swift",
            "refuseEmptied",
            .alwaysTrue,
            "errno == ENOENT",
            "what else may be wrong with the path, SQLite meets next"
        ),
        .init(
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            "applyKey",
            .errorSwallowed,
            "cipher_compatibility",
            "fails without memory only, and the parameters in force are compared afterwards"
        ),
        .init(
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            "settled",
            .alwaysTrue,
            "error.reason == .unverified",
            "the copy is made anew, where the same error comes again"
        ),
        .init(
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            "verifiedCopy",
            .alwaysTrue,
            "new.key != old.key",
            "a key that stays is confirmed too"
        ),
        .init(
            "SealedDB/Cipher/Copying/ContentDigest.swift",
            "add",
            .negated,
            "count.isMultiple(of: 1000)",
            "it is asked more often whether to go on"
        ),
        .init(
            "SealedDB/Cipher/Settings/MemorySecurity.swift",
            "enableMemorySecurity",
            .callDropped,
            "connection.close()",
            "it closes when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "copyPages",
            .errorSwallowed,
            "finish(connection",
            "the copy is opened again, compared and synced by those who call it"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "openTarget",
            .errorSwallowed,
            "PRAGMA synchronous = OFF",
            "the copy is synced more often than it need be"
        ),
        .init(
            "SealedDB/Cipher/Logs/RollbackJournal.swift",
            "forEachSyncedPart",
            .bounds,
            "count > 0",
            "behind the header of a part without a count stand its records, and no other header"
        ),
        .init(
            "SealedDB/Cipher/Pages/StoreView.swift",
            "connection",
            .assignmentDropped,
            "view.file = file",
            "the file that SQLite has open keeps it, too"
        ),
        .init(
            "SealedDB/Cipher/Copying/CopyCheck.swift",
            "problems",
            .alwaysTrue,
            "connection.close()",
            "it fails only while something of the connection is in use, and nothing is by then"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogDamage.swift",
            "requireOwnPages",
            .alwaysTrue,
            "number <= log.pageCount",
            "what SQLite wrote is authentic behind the end of the store, too"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "openTarget",
            .callDropped,
            "connection.close()",
            "a connection closes itself when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Conversion/StoreBackup.swift",
            "run",
            .deferDropped,
            "source.close()",
            "a connection closes itself when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Conversion/StoreDecryption.swift",
            "run",
            .errorSwallowed,
            "opening.requireAuthenticPages()",
            "it does nothing where the engine's pages can be watched, as in this build"
        ),
        .init(
            "SealedDB/Cipher/Copying/MemoryImage.swift",
            "swap",
            .alwaysTrue,
            "wasWAL",
            "a store that is not in WAL mode stays as it is"
        ),
        .init(
            "SealedDB/Cipher/Conversion/StoreDecryption.swift",
            "run",
            .callDropped,
            "source.close()",
            "a connection closes itself when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Copying/CopyCheck.swift",
            "problems",
            .callDropped,
            "connection.close()",
            "a connection closes itself when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Copying/SerializedStore.swift",
            "plaintextImage",
            .alwaysTrue,
            "ContentDigest.of(copy)",
            "the reads of the backup and of the serialization are watched, each by itself"
        ),
        .init(
            "SealedDB/Cipher/Logs/LogChain.swift",
            "forEachFrame",
            .partDropped,
            "offset == LogHeader.size",
            "from a later frame a header can be computed by chance alone: 32 bits have to be the size of a page"
        ),
        .init(
            "SealedDB/Cipher/Recovery/Salvage.swift",
            "passIndexes",
            .alwaysTrue,
            "index.root > 0",
            "the pages of tables have been visited before, and there is no page 0"
        ),
        .init(
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            "read",
            .assignmentDropped,
            "sum = nil",
            "a checksum covers the salts, and no frame of this log continues that of an older one: it was just asked"
        ),
        .init(
            "SealedDB/Database/Files/Database+Cipher.swift",
            "addRandom",
            .callDropped,
            "try Engine.requireCodec()",
            "the library of these tests has the codec; what another one answers is tested with libsqlite3 in front"
        ),
        .init(
            "SealedDB/Cipher/Rotation/InPlaceRekey.swift",
            "run",
            .errorSwallowed,
            "try requireNoSlots()",
            repetition: 0,
            "it is asked again under the lock"
        ),
        .init(
            "SealedDB/Cipher/Pages/FreePages.swift",
            "list",
            .bounds,
            "trunks.count + leaves.count < count",
            "a list that is too long is refused at its end, which it has, because no page is in it twice"
        ),
        .init(
            "SealedDB/Cipher/Slots/KeySlots+Reencrypting.swift",
            "addDataKey",
            .callDropped,
            "connection.close()",
            "a connection closes itself when nobody has it any more"
        ),
        .init(
            "SealedDB/Cipher/Verification/StructureCheck.swift",
            "findings",
            .errorSwallowed,
            "try keepPages(reader)",
            "with the cache that SQLite takes by itself, the check takes longer"
        ),
        .init(
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            "putBack",
            .notAsked,
            "!FileSystem.exists(target + suffix)",
            "link() replaces nothing, and whether the names are those of the old files is asked below"
        ),
        .init(
            "SealedDB/Cipher/Copying/TableLayout.swift",
            "hasIndex",
            .deferDropped,
            "defer { indexes.close() }",
            "statements end themselves when nobody has them any more"
        ),
    ]
}
