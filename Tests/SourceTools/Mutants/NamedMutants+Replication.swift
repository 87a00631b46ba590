extension NamedMutant {
    /// What is reported as shipped is there, in its order and whole, and a restore gives just that.
    static let replication: [NamedMutant] = [
        .init(
            "a segment follows any other",
            "SealedDB/Replication/Restoring/RestorePlan.swift",
            .expression,
            "header.previous.utf8.elementsEqual(digest.utf8)",
            "!header.previous.isEmpty"
        ),
        .init(
            "frames may begin anywhere",
            "SealedDB/Replication/Restoring/RestorePlan.swift",
            .expression,
            "header.log == place || beginsAnew",
            "header.log == place || beginsAnew || header.frameCount > 0"
        ),
        .init(
            "a store may have any number of pages",
            "SealedDB/Replication/Repository/PageBound.swift",
            .expression,
            "count <= max(pageCount, min(lastPage, pageCount + frameCount + 1))",
            "count > 0"
        ),
        .init(
            "a log begins anew unseen",
            "SealedDB/Replication/Shipping/FollowedLog.swift",
            .expression,
            "isSameLog || old.isWholeInFile",
            "isSameLog || old.frameCount > 0"
        ),
        .init(
            "transactions are not counted",
            "SealedDB/Replication/Shipping/FollowedLog.swift",
            .expression,
            "new.changeCount &- old.changeCount <= commitCount",
            "commitCount >= 0"
        ),
        .init(
            "a page of another key is shipped",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .expression,
            "try open.cipher.isAuthentic(frame.dropFirst(LogFrameHeader.size), number: page)",
            "page > 0"
        ),
        .init(
            "another repository is taken for the one before",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .expression,
            "try RepositoryMark.existing(storage) == known",
            "try RepositoryMark.existing(storage).time <= .now || known.identifier.isEmpty"
        ),
        .init(
            "an object is not synced",
            "SealedDB/Replication/Repository/DirectoryStorage.swift",
            .statement,
            "for object in objects { try object?.synchronize() }",
            "_ = objects"
        ),
        .init(
            "one ships without the lease",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .statement,
            "try requireSamePlace()\n            try requireSameRepository()",
            "try requireSameRepository()"
        ),
        .init(
            "the transaction of the last look ends before the next one has begun",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .expression,
            "try Replicator.look(open.other, path)",
            "try { () throws(DatabaseError) in try open.current.run(\"ROLLBACK\"); try open.current.run(\"BEGIN\"); "
                + "return try Replicator.look(open.other, path) }()"
        ),
        .init(
            "what was not written for certain is forgotten",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .statement,
            "if let unfinished { try put(unfinished) }",
            "self.unfinished = nil"
        ),
        .init(
            "a damaged chunk counts as there",
            "SealedDB/Replication/Shipping/ChunkShipping.swift",
            .expression,
            "try storage.read(name, limit: chunk.bytes.count + 1) == chunk.bytes",
            "try storage.read(name, limit: chunk.bytes.count + 1) != nil"
        ),
        .init(
            "a page that was not written with the key is shipped",
            "SealedDB/Replication/Shipping/SnapshotWorker.swift",
            .statement,
            "blank.note(number)",
            ""
        ),
        .init(
            "slots that a segment names are removed",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .expression,
            "Set(generation.short + firsts)",
            "Set<Int64>()"
        ),
        .init(
            "two ship one store",
            "SealedDB/Replication/Shipping/ShipperLock.swift",
            .expression,
            "sealeddb_lock(descriptor, Int32(F_WRLCK), ShipperLock.byte, 1) != 0",
            "sealeddb_lock(descriptor, Int32(F_RDLCK), ShipperLock.byte, 1) != 0"
        ),
        .init(
            "what is restored is not what was written",
            "SealedDB/Replication/Restoring/ReadBackWorker.swift",
            .expression,
            "try marker.mark(page, number: number) == mark",
            "try marker.mark(page, number: number) != 0"
        ),
        .init(
            "what a restore finds that was cut off is believed",
            "SealedDB/Replication/Restoring/ChunkWorker.swift",
            .expression,
            "try ObjectDigest.of(present) == digest",
            "!present.isEmpty"
        ),
        .init(
            "the chunks that are restored are not checked",
            "SealedDB/Replication/Restoring/ChunkWorker.swift",
            .expression,
            "!isChecked",
            "false"
        ),
        .init(
            "a restore that cannot reach the repository begins anew",
            "SealedDB/Replication/Restoring/RepositoryRestore.swift",
            .expression,
            "unread.withLock({ $0 }) == restored + 1",
            "restored < 0"
        ),
        .init(
            "two restores write to one file",
            "SealedDB/Replication/Restoring/RestorePlace.swift",
            .expression,
            "try file.lock()",
            "try file.size() >= 0"
        ),
        .init(
            "a restore writes to what has become the store meanwhile",
            "SealedDB/Replication/Restoring/RestorePlace.swift",
            .expression,
            "try copy.hasItsName()",
            "true"
        ),
        .init(
            "what was read is lost if the caller stops a restore while it is read back",
            "SealedDB/Replication/Restoring/RestorePlace.swift",
            .expression,
            "error.reason == .interrupted",
            "false"
        ),
        .init(
            "a follower keeps a copy where its log has no room",
            "SealedDB/Replication/Following/Follower.swift",
            .expression,
            "!isReadingCopy",
            "false"
        ),
        .init(
            "a failure while chunks are shipped is not told",
            "SealedDB/Replication/Shipping/ChunkShipping.swift",
            .statement,
            "if let failure { throw failure }",
            "_ = failure"
        ),
        .init(
            "an older copy of the repository is taken for it",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .expression,
            "start == known.start",
            "start == known.start || start == nil"
        ),
        .init(
            "a store that is replaced while it is shipped counts as shipped",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .statement,
            "try requireStillNamed()",
            "_ = reading"
        ),
        .init(
            "slots that were put back travel",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .expression,
            "try SealedSlots(parsing: known).table.generation",
            "try SealedSlots(parsing: known).table.generation - .max"
        ),
        .init(
            "any file of the store's name is shipped",
            "SealedDB/Replication/Service/Shipper.swift",
            .expression,
            "state.path ?? openedPath",
            "openedPath"
        ),
        .init(
            "only who opens a store first waits for its shipping",
            "SealedDB/Replication/Service/Shipper.swift",
            .statement,
            "guard isFirst, replication.isRequiredForOpening else { return }",
            "guard isFirst, isNew, replication.isRequiredForOpening else { return }"
        ),
        .init(
            "what was lost sight of counts as shipped",
            "SealedDB/Replication/Service/ShippingThread.swift",
            .expression,
            "unseen.map { .failure($0) } ?? .success(())",
            ".success(())"
        ),
        .init(
            "the log is kept for the repository for ever",
            "SealedDB/Replication/Service/ShippingThread.swift",
            .expression,
            "bytes > limit",
            "bytes < 0"
        ),
        .init(
            "a repository whose disk is not mounted is made anew",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .expression,
            "mark == nil",
            "true"
        ),
        .init(
            "a refusal forgets the repository",
            "SealedDB/Replication/Service/ShippingThread.swift",
            .expression,
            "error.reason == .unverified",
            "true"
        ),
        .init(
            "a reader that moves the log counts as somebody who writes",
            "SealedDB/Replication/Following/Follower+Opening.swift",
            .expression,
            "position.frameCount == 0 && isUnchanged(position)",
            "position.frameCount == 0 && isUnchanged(position) && done.frameCount == 0"
        ),
        .init(
            "frames of an old log stay behind an empty one",
            "SealedDB/Replication/Following/Follower.swift",
            .statement,
            "try log.discardRest(after: 0)",
            ""
        ),
        .init(
            "frames that were not told stay behind the end",
            "SealedDB/Replication/Following/Follower.swift",
            .statement,
            "try log.discardRest(after: state.done.frameCount)",
            ""
        ),
        .init(
            "slots that were not put whole are forgotten",
            "SealedDB/Replication/Following/Follower.swift",
            .statement,
            "try finishSlots()",
            ""
        ),
        .init(
            "slots of a change that failed count as somebody else's",
            "SealedDB/Replication/Following/Follower+Slots.swift",
            .expression,
            "found == digest || others.contains(found)",
            "found == digest"
        ),
        .init(
            "an older list brings a replica back",
            "SealedDB/Replication/Following/Follower+Renewal.swift",
            .expression,
            "!plan.end.isBefore(state.done.place)",
            "true"
        ),
    ]
}
