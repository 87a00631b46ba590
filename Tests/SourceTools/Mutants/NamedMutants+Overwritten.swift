extension NamedMutant {
    /// What is done to files behind SQLite's back is noticed.
    static let overwritten: [NamedMutant] = [
        .init(
            "a copy put over a shipped store is taken for what was there",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .expression,
            "try !open.current.mainFileHasMoved()",
            "false"
        ),
        .init(
            "a shipper goes on with a log that nobody else has",
            "SealedDB/Replication/Shipping/Replicator.swift",
            .statement,
            "try requireSameLog()",
            "_ = reading"
        ),
        .init(
            "what a removed log holds is not shipped",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .statement,
            "_ = try shipOldLog()",
            "_ = reading"
        ),
        .init(
            "a store is shipped whose index this process alone has",
            "SealedDB/Replication/Shipping/Replicator+Opening.swift",
            .expression,
            "log.hasIndex",
            "true"
        ),
        .init(
            "a file that is written to while it is read becomes a snapshot",
            "SealedDB/Replication/Shipping/Replicator+Snapshots.swift",
            .expression,
            "try !isOverwritten(open, found, end)",
            "true"
        ),
        .init(
            "a log is moved into a copy that was put over a shipped store",
            "SealedDB/Replication/Shipping/Replicator+Snapshots.swift",
            .expression,
            "try !isOverwritten(open, found, now)",
            "true"
        ),
        .init(
            "what SQLite may have written counts as somebody else's",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .expression,
            "open.position.hasSameFile(as: position)",
            "true"
        ),
        .init(
            "a copy put over a shipped store goes unnoticed while its log has frames",
            "SealedDB/Engine/Connection/LogPosition.swift",
            .expression,
            "later.movedCount == movedCount",
            "false"
        ),
        .init(
            "commits are added to a copy that somebody has overwritten",
            "SealedDB/Replication/Following/Follower.swift",
            .expression,
            "try self.isFile(as: base)",
            "true"
        ),
        .init(
            "a log is moved into a copy that somebody has overwritten, and that counts as whole",
            "SealedDB/Replication/Following/Follower.swift",
            .statement,
            "if wasAsLeft { self.state?.base = nil }",
            "self.state?.base = nil"
        ),
        .init(
            "the follower's own moving of frames counts as somebody else's",
            "SealedDB/Replication/Following/Follower.swift",
            .statement,
            "if wasAsLeft { try noteMovedPart() }",
            "_ = wasAsLeft"
        ),
        .init(
            "a follower goes on with a log that nobody else has",
            "SealedDB/Engine/Pages/KeylessLog.swift",
            .expression,
            "try FileSystem.statusIfPresent(part.name)?.isSameFile(as: part.status) == true",
            "true"
        ),
        .init(
            "what becomes of a copy in the end is not told",
            "SealedDB/Replication/Following/Follower.swift",
            .expression,
            "error.reason == .unverified ? error : nil",
            "nil"
        ),
        .init(
            "announcements that cannot be written end the process",
            "sealdb/Replication/RepeatedRemarks.swift",
            .statement,
            "hasFailed = true",
            "_exit(74)"
        ),
        .init(
            "results go into a repository",
            "sealdb/Support/Output/StandardStreams.swift",
            .expression,
            "isOfRepository(start)",
            "false"
        ),
        .init(
            "a string of JSON takes all memory",
            "sealdb/Support/Input/JSONReader.swift",
            .expression,
            "target.count <= sizeLimit",
            "true"
        ),
        .init(
            "a list takes all memory",
            "sealdb/Support/Input/InputFile.swift",
            .expression,
            "count <= limit - result.count",
            "true"
        ),
    ]
}
