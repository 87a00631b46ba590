// swift-tools-version: 6.1

import PackageDescription

let package = Package(
    name: "SealedDB",
    products: [
        .library(name: "SealedDB", targets: ["SealedDB"]),
        .executable(name: "sealdb", targets: ["sealdb"]),
    ],
    traits: [
        .trait(name: "SQLCipher", description: "Encrypted stores: links the system's libsqlcipher. The default."),
        .trait(
            name: "PlainSQLite",
            description: "Stores in the clear, for comparison: links the system's libsqlite3, unless SQLCipher is on."
        ),
        .trait(name: "Metrics", description: "Queues and pools report to swift-metrics."),
        .trait(
            name: "PostgreSQL",
            description: "sealdb export writes to PostgreSQL: links the system's libpq."
        ),
        .trait(
            name: "ObjectStores",
            description: "Experimental. Repositories in a bucket of an S3-compatible store: links the system's libcurl."
        ),
        .trait(name: "ServiceLifecycle", description: "Queues and pools are services of swift-service-lifecycle."),
        .default(enabledTraits: ["SQLCipher"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    ],
    targets: [
        .systemLibrary(name: "CSQLCipher", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // Without pkg-config, so that libsqlite3 is linked only where this module is imported, and never beside
        // libsqlcipher when both engine traits are on.
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        // For the same reason, and so that nobody needs libpq who has not asked for it.
        .systemLibrary(name: "CPostgreSQL", providers: [.apt(["libpq-dev"])]),
        // For the same reason, and so that nobody needs libcurl who has not asked for it.
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(name: "CSealedDBSystem"),
        .target(name: "CSealedDBEditline"),
        .target(
            name: "SQLiteEngine",
            dependencies: [
                .target(name: "CSQLCipher", condition: .when(traits: ["SQLCipher"])),
                .target(name: "COpenSSL", condition: .when(traits: ["SQLCipher"])),
                .target(name: "CSQLite", condition: .when(traits: ["PlainSQLite"])),
            ]
        ),
        .target(
            name: "SealedDB",
            dependencies: [
                "SQLiteEngine",
                "CSealedDBSystem",
                .target(name: "CCurl", condition: .when(traits: ["ObjectStores"])),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
                .product(
                    name: "ServiceLifecycle",
                    package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
            ]
        ),
        .executableTarget(
            name: "sealdb",
            dependencies: [
                "SealedDB",
                "CSealedDBSystem",
                "CSealedDBEditline",
                .target(name: "CPostgreSQL", condition: .when(traits: ["PostgreSQL"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        // The manual pages, from the help of the command.
        .executableTarget(name: "ManualPages"),
        .executableTarget(name: "BookStore", dependencies: ["SealedDB"], path: "Examples/BookStore"),
        .executableTarget(name: "ObjectFetcher", dependencies: ["SealedDB"], path: "Examples/ObjectFetcher"),
        .executableTarget(name: "CipherProbe", dependencies: ["SealedDB"], path: "Tests/CipherProbe"),
        .executableTarget(name: "KeyMemoryProbe", dependencies: ["SealedDB"], path: "Tests/KeyMemoryProbe"),
        .executableTarget(name: "Soak", dependencies: ["SealedDB"], path: "Tests/Soak"),
        .executableTarget(name: "RotationPause", dependencies: ["SealedDB"], path: "Tests/RotationPause"),
        .testTarget(
            name: "SealedDBTests",
            dependencies: [
                "SealedDB", "SQLiteEngine", "CSealedDBSystem", "CipherProbe", "KeyMemoryProbe", "FailingCalls",
                "HangClock",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
                .product(
                    name: "ServiceLifecycleTestKit",
                    package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
            ]
        ),
        // The clock of the limit for tests that hang, which all tests of a process share.
        .target(name: "HangClock", path: "Tests/HangClock"),
        // Calls of the system that fail, for tests within a process.
        .target(name: "FailingCalls", path: "Tests/FailingCalls"),
        .testTarget(
            name: "sealdbTests",
            dependencies: [
                "SealedDB", "sealdb", "CSealedDBSystem", "BookStore", "ObjectFetcher", "Soak", "FaultSubject",
                "FailingCalls", "HangClock",
            ]
        ),
        // SQLite's C interface, for what checks stores without the library.
        .target(name: "RawStore", dependencies: ["SQLiteEngine"], path: "Tests/RawStore"),
        // Random programs with a model, and their short form as tests.
        .executableTarget(
            name: "Stress",
            dependencies: ["SealedDB", "RawStore", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Tests/Stress",
            exclude: ["Faults"]
        ),
        .testTarget(name: "StressTests", dependencies: ["SealedDB", "Stress", "sealdb", "HangClock"]),
        // The fault harness, the program that it runs beside sealdb, and its short form as tests.
        .executableTarget(
            name: "FaultHarness",
            dependencies: [
                "RawStore", "SQLiteEngine", "SealedDB", "sealdb", "FaultSubject",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/FaultHarness",
            exclude: ["Interposer"]
        ),
        .executableTarget(
            name: "FaultSubject",
            dependencies: ["SealedDB", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Tests/FaultSubject"
        ),
        .testTarget(name: "FaultTests", dependencies: ["SealedDB", "FaultHarness", "HangClock"]),
    ],
    swiftLanguageModes: [.v6]
)

// Under the sanitizers and in the plain build, scripts/test runs some of the tests, and to compile all of them would
// take longer than these run. `nil` stands for all of a target.
let testsOfSomeBuilds: [String: [String: [String]?]] = [
    "threads": [
        "SealedDBTests": [
            "Support", "Compatibility", "Concurrency", "Cipher/Pages", "Database/Functions/FunctionLifetimeTests.swift",
            "Database/BlobTests.swift", "Database/LifetimeTests.swift", "Database/PreparationTests.swift",
            "Database/ResultSetTests.swift", "Database/SavepointTests.swift", "Database/SlowStatementTests.swift",
            "Engine/DamagedPageTests.swift", "Engine/HeldChangesTests.swift", "Engine/HookEdgeTests.swift",
            "Engine/PageContextsTests.swift",
            "Calls/CallWatch.swift", "System/FailedCall.swift", "Replication/ReplicatedStore.swift",
        ]
    ],
    // Under the address sanitizer a test runs in one build: in the plain one if it needs no key, else in this one. Left
    // out is what reaches memory only by way of what these test.
    "addresses": [
        "SealedDBTests": [
            "Calls", "Keys", "Support",
            "Cipher/Logs/CutCheckpointTests.swift", "Cipher/Pages", "Cipher/Recovery",
            "Cipher/Slots/SlotFuzzTests.swift", "Cipher/Slots/SlotParserTests.swift", "Cipher/Slots/SlotStore.swift",
            "Concurrency/IgnoredErrorTests.swift", "Concurrency/InstrumentsTests.swift",
            "Concurrency/LeftOpenTests.swift", "Concurrency/PoolPromiseTests.swift", "Concurrency/ServiceTests.swift",
            "Concurrency/SharedWriteTests.swift", "Concurrency/SnapshotTests.swift",
            "Concurrency/TurnPromiseTests.swift", "Concurrency/UnfitConnectionTests.swift",
            "Concurrency/WriterLine.swift",
            "Replication/FollowedReplica.swift", "Replication/ObjectStore", "Replication/ReplicatedStore.swift",
            "System/CryptographyTests.swift", "System/FailedCall.swift",
        ],
        "sealdbTests": ["Support", "Export", "ObjectStoreCommandTests.swift"],
    ],
    "plain": [
        "SealedDBTests": [
            "Compatibility", "Database", "Engine", "FullText", "Migration", "Rows", "Support", "Values",
            "Calls/CallSweep.swift", "Calls/CallWatch.swift", "Cipher/Opening", "Cipher/Settings",
            "Cipher/Slots/SlotStore.swift",
            "Concurrency/DatabaseQueueTests.swift", "Concurrency/PoolReadingTests.swift",
            "Concurrency/SharedWriteTests.swift", "Concurrency/ValueObservationTests.swift",
            "Concurrency/WriterLine.swift",
            "Replication/ReplicatedStore.swift", "System/FailedCall.swift",
        ],
        "sealdbTests": [
            "Support", "DoctorTests.swift", "ExampleTests.swift", "PlainBuildTests.swift", "UsageTests.swift",
            "WrongEngineTests.swift",
        ],
    ],
    "all-addresses": ["SealedDBTests": nil, "sealdbTests": ["Support", "Export", "ObjectStoreCommandTests.swift"]],
]
if let name = Context.environment["SEALEDDB_TESTS"] {
    guard let sources = testsOfSomeBuilds[name] else { fatalError("SEALEDDB_TESTS=\(name) is unknown.") }
    package.targets.removeAll { $0.type == .test && !sources.keys.contains($0.name) }
    for target in package.targets where target.type == .test { target.sources = sources[target.name] ?? nil }
    // Nor are programs built that none of these tests starts.
    var needed: Set<String> = ["SealedDB"]
    var found = package.targets.filter { $0.type == .test }.map(\.name) + ["SealedDB"]
    while let name = found.popLast() {
        needed.insert(name)
        for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): if !needed.contains(name) { found.append(name) }
            default: continue
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll { !needed.contains($0.name) }
}
