extension NamedMutant {
    /// What outsiders made to happen with files that were replaced, and with pages that the disk did not write.
    static let formerFiles: [NamedMutant] = [
        .init(
            "a source whose structure is damaged is copied by rows",
            "SealedDB/Cipher/Copying/StoreCopy.swift",
            .statement,
            "if let own, totals.count > 0 { try requireSoundSource(source, own, report.part(to: 0.3)) }",
            ""
        ),
        .init(
            "of a source that is copied by rows, indexes are not compared with tables",
            "SealedDB/Cipher/Copying/StoreCopy+Rows.swift",
            .expression,
            "try StructureCheck(connection: connection).findings(.deep, report)",
            "try StructureCheck(connection: connection).findings(.quick, report)"
        ),
        .init(
            "a backup is blamed for the structure of its source",
            "SealedDB/Cipher/Copying/StoreCopy+Pages.swift",
            .statement,
            "if let problem = try structureProblem(sealing, report) { throw StoreCopy.damagedSource([problem]) }",
            ""
        ),
        .init(
            "backups are removed in favour of one that is not sound",
            "sealdb/Backup/DatedBackups.swift",
            .expression,
            "DatedBackups.problem(examiner.isNewSound)",
            "Optional<String>.none"
        ),
        .init(
            "a file on a subvolume has other locks than the kernel tells",
            "SealedDB/System/Users/MountTable.swift",
            .expression,
            "device.major == 0",
            "false"
        ),
        .init(
            "a journal that is not begun belongs to nobody",
            "SealedDB/Cipher/Opening/StoreOpening+FormerJournal.swift",
            .expression,
            "try StoreOpening.file(\"-journal\", beside: path) != nil",
            "try RollbackJournal.isBegun(path + \"-journal\")"
        ),
        .init(
            "snapshots are removed in favour of one whose slots are gone",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .statement,
            "for case let digest? in slots { _ = try reader.contents(.slots(digest), digest: digest) }",
            ""
        ),
        .init(
            "a shipper goes on behind a snapshot whose chunks are gone",
            "SealedDB/Replication/Shipping/Replicator+Opening.swift",
            .statement,
            "try requireWhole(manifest, storage.objects(under: ObjectName.chunks), contents, reader)",
            ""
        ),
        .init(
            "a directory that stands in the repository's place for a moment takes what is shipped",
            "SealedDB/Replication/Repository/DirectoryStorage.swift",
            .expression,
            "try !directory.isNamed(path)",
            "false"
        ),
        .init(
            "snapshots are removed in favour of those of a store that is not sound",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .statement,
            "try requireSoundStructure()\n            try requireWhole(manifests[0], stored, contents, reader)",
            "try requireWhole(manifests[0], stored, contents, reader)"
        ),
        .init(
            "a follower removes a file of the user's",
            "SealedDB/Replication/Following/FollowerState.swift",
            .expression,
            "TemporaryFile.fixedPath(beside: replica, mark: \"next\")",
            "\"\\(FileSystem.directory(of: replica))/.\\(FileSystem.name(of: replica)).sealdb-next\""
        ),
        .init(
            "a log counts as in use although it is in use for a former file",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .statement,
            "throw logOfFormerFile(path, process)",
            "return true"
        ),
        .init(
            "a connection that keeps everybody else out of a former file is not looked for",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .expression,
            "try FileUsers.withDescriptors(ofLog: path + \"-wal\")",
            "(found: Set<Int32>(), isOpen: false)"
        ),
        .init(
            "who uses a former log passes unless this user may look into that process",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .statement,
            """
            if known != nil, table.processes(withLocksOn: place.store).isEmpty {
                                    ofAnother[LogUsers.unseen] = []
                                }
            """,
            ""
        ),
        .init(
            "this process passes with the log of a former file if it has the new one open",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .statement,
            "if ownUse == false { ofAnother[ProcessDescriptors.own] = [] }",
            ""
        ),
        .init(
            "who uses the log of a former file passes with the new one open, too",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && (wasHere || indexes.contains { isNear(name, file) || isNear(name, $0) })",
            "isLost && wasHere"
        ),
        .init(
            "who uses the log of a file that was deleted passes with the new one open, too",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && (wasHere || indexes.contains { isNear(name, file) || isNear(name, $0) })",
            "isLost && indexes.contains { isNear(name, file) || isNear(name, $0) }"
        ),
        .init(
            "who uses the log of a former file that has a name passes if he reads the new one",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && hasIndexLock != false || wasHere",
            "wasHere"
        ),
        .init(
            "a child that uses a store of its own counts as one that uses the former file of its parent's",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && hasIndexLock != false || wasHere",
            "isLost || wasHere"
        ),
        .init(
            "a process that has another store in use counts as one that uses a former file",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && (wasHere || indexes.contains { isNear(name, file) || isNear(name, $0) })",
            "isLost"
        ),
        .init(
            "a store that was renamed elsewhere counts as the former file of another one",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "isLost && (wasHere || indexes.contains { isNear(name, file) || isNear(name, $0) })",
            "isLost && (wasHere || !indexes.isEmpty)"
        ),
        .init(
            "stores that come and go count as former files",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .expression,
            "!files.isDisjoint(with: others)",
            "true"
        ),
        .init(
            "a lock that the kernel's table lacks is none",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "LogUser(place: place, locked: locked, files: files)",
            "{ () -> LogUser in var locks = SQLiteLocks(); locks.insert(table.lines(with: \" \\(process) \")); "
                + "return LogUser(place: place, locked: locks, files: files) }()"
        ),
        .init(
            "who uses the log of a former file passes if the kernel's table tells of somebody else alone",
            "SealedDB/Cipher/Opening/StoreOpening+FormerLog.swift",
            .expression,
            "ownUse == nil || processes.isEmpty",
            "processes.isEmpty"
        ),
        .init(
            "a file whose lock the kernel's table lacks has none",
            "SealedDB/System/Users/LockHolders.swift",
            .expression,
            "!locks(ofDescriptorsOf: [file]).isEmpty || table == nil && ifUnknown",
            "table == nil && ifUnknown"
        ),
        .init(
            "who uses the file that got the inode of a removed index is in the way of a rotation",
            "SealedDB/System/Users/LockHolders.swift",
            .expression,
            "before.elementsEqual(after, by: { $0.status.isSameFile(as: $1.status) })",
            "true"
        ),
        .init(
            "a process that had locked the store for a moment is in the way of a rotation",
            "SealedDB/System/Users/LockHolders+Descriptions.swift",
            .expression,
            "lasting.map { $0.intersection(others) } ?? others",
            "lasting ?? others"
        ),
        .init(
            "who copies a log counts as one who uses it",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "$0.id == place.log && $0.isForWriting",
            "$0.id == place.log"
        ),
        .init(
            "an index that was moved away with its log counts as the one at the path",
            "SealedDB/Engine/Pages/OpenLogs.swift",
            .expression,
            "isSame(use.log, log) || isSame(use.index, index)",
            "true"
        ),
        .init(
            "a connection whose file was replaced opens the new one with the former log",
            "SealedDB/Concurrency/Connections/Database+Supervision.swift",
            .statement,
            "try requireNoLogOfFormerFile(path)",
            ""
        ),
        .init(
            "idle connections of a pool keep a former file open",
            "SealedDB/Concurrency/Connections/Database+Supervision.swift",
            .statement,
            "supervision.whenReplaced?()",
            ""
        ),
        .init(
            "a relative path is resolved at each opening",
            "SealedDB/Database/Database.swift",
            .expression,
            "isFile(path) ? path.map(FileSystem.absolute) : path",
            "path"
        ),
        .init(
            "connections that a pool makes later resolve its path again",
            "SealedDB/Concurrency/DatabasePool.swift",
            .expression,
            "Database.absolute(path)",
            "path"
        ),
        .init(
            "a key source that uses the pool waits for itself",
            "SealedDB/Concurrency/Connections/Opening.swift",
            .statement,
            "guard Opening.current != ObjectIdentifier(self) else { throw .keySourceUsesPool }",
            ""
        ),
        .init(
            "a savepoint that a block has left open is there for those who share its transaction",
            "SealedDB/Concurrency/Connections/Writer.swift",
            .expression,
            "database.connection?.mayHoldSavepoints != true",
            "true"
        ),
        .init(
            "a log counts as used where the kernel hides its locks",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "LockHolders.hasLocks(on: path + \"-shm\", ifUnknown: false)",
            "LockHolders.hasLocks(on: path + \"-shm\", ifUnknown: true)"
        ),
        .init(
            "who may not be looked into uses a log for any file",
            "SealedDB/System/Users/FileUsers.swift",
            .expression,
            "hasIndexLock ? .ofAnother(former: []) : .unknown",
            ".unknown"
        ),
        .init(
            "a process whose first thread has ended has no files open",
            "SealedDB/System/Users/ProcessDescriptors.swift",
            .expression,
            "thread != \"\\(process)\"",
            "false"
        ),
        .init(
            "an unseen process writes the journal of another file",
            "SealedDB/Cipher/Opening/StoreOpening+FormerJournal.swift",
            .statement,
            "(ofAnother, areSeen) = (strangers, false)",
            "areSeen = false"
        ),
        .init(
            "a copy in the place of a repository is gone on with",
            "SealedDB/Replication/Shipping/Replicator+Opening.swift",
            .expression,
            "hasMoved",
            "false"
        ),
        .init(
            "a repository is not looked at again when a call ends",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .statement,
            "try requireSamePlace()\n            report.generation = tail?.generation ?? 0",
            "report.generation = tail?.generation ?? 0"
        ),
        .init(
            "old snapshots are removed in favour of one that is not whole",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .expression,
            "sizes[chunk] == pages * Int64(newest.pageSize)",
            "true"
        ),
    ]
}
