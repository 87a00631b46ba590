extension NamedMutant {
    /// What outsiders made to happen with lists that leave something out, and what failing calls of OpenSSL have shown.
    static let leftOut: [NamedMutant] = [
        .init(
            "a list of a repository passes over links",
            "SealedDB/Replication/Repository/ObjectName.swift",
            .expression,
            "[generations, chunks, allSlots].contains { name.utf8.elementsEqual($0.utf8) || name.begins(with: $0 + \"/\") }",
            "name.isEmpty"
        ),
        .init(
            "chunks that nothing names are removed while a generation is away",
            "SealedDB/Replication/Shipping/Replicator+Retention.swift",
            .expression,
            "contents.isWhole",
            "contents.lastNumber > 0"
        ),
        .init(
            "chunks that a killed process has named are not made durable",
            "SealedDB/Replication/Shipping/ChunkShipping.swift",
            .statement,
            "try storage.makeDurable(there)",
            ""
        ),
        .init(
            "the end that a killed process has named is not made durable",
            "SealedDB/Replication/Shipping/Replicator+Opening.swift",
            .statement,
            "try storage.makeDurable([name.text])",
            ""
        ),
        .init(
            "names that may not be durable stay after a failed sync",
            "SealedDB/Replication/Repository/DirectoryStorage.swift",
            .expression,
            "other.isNamed && !directories.contains(FileSystem.directory(of: other.target))",
            "other.isNamed && other.target == object.target"
        ),
        .init(
            "a lease counts although it is not the repository's any more",
            "SealedDB/Replication/Repository/DirectoryStorage.swift",
            .expression,
            "named?.isSameFile(as: status) ?? false",
            "named != nil"
        ),
        .init(
            "a shipper goes on although another one has begun a generation",
            "SealedDB/Replication/Shipping/Replicator+Sameness.swift",
            .expression,
            "try storage.read(next.text, limit: 1) != nil",
            "next.text.isEmpty"
        ),
        .init(
            "a rotation drops pages that the first page does not count",
            "SealedDB/Cipher/Rotation/RotationSource.swift",
            .statement,
            "try UncountedPages.requireNone(of: connection, path: resolved, sealing)",
            ""
        ),
        .init(
            "a store with pages that its first page does not count is sound",
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            .statement,
            "if let uncounted { problems.append(uncounted) }",
            ""
        ),
        .init(
            "a recovery does not look behind the end that the first page states",
            "SealedDB/Cipher/Recovery/SalvagedPages.swift",
            .statement,
            "if overlay == nil, isOwn, number > declaredCount { uncounted += 1 }",
            ""
        ),
        .init(
            "a recovery takes any failed read for damage",
            "SealedDB/Cipher/Recovery/UnreadablePlace.swift",
            .statement,
            "guard error.isOfUnreadablePlace else { throw error }",
            ""
        ),
        .init(
            "a recovery takes any failure for a damaged journal",
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            .expression,
            "isHot || error.reason == .wrongKey || error.isOfUnreadablePlace",
            "error.code != 0"
        ),
        .init(
            "whether a migration was recorded is not looked at",
            "SealedDB/Migration/Migrator.swift",
            .expression,
            "try self.applied(in: database) == applied + [record]",
            "record.name == migration.name"
        ),
        .init(
            "a migration may end in a comment without its end",
            "SealedDB/Migration/Migrator.swift",
            .statement,
            "try Migrator.requireWhole(sql)",
            ""
        ),
        .init(
            "a page counts as changed where OpenSSL could not look",
            "SealedDB/System/Cryptography.swift",
            .expression,
            "answer >= 0",
            "answer >= -1"
        ),
    ]
}
