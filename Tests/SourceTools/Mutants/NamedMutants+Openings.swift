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
    ]
}
