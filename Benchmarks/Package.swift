// swift-tools-version: 6.1

import PackageDescription

let package = Package(
    name: "Benchmarks",
    traits: [
        .trait(name: "SQLCipher", description: "Measure encrypted stores."),
        .trait(name: "PlainSQLite", description: "Measure stores in the clear, and GRDB beside them."),
        .default(enabledTraits: ["SQLCipher"]),
    ],
    dependencies: [
        .package(
            name: "SealedDB",
            path: "..",
            traits: [
                .trait(name: "SQLCipher", condition: .when(traits: ["SQLCipher"])),
                .trait(name: "PlainSQLite", condition: .when(traits: ["PlainSQLite"])),
            ]
        ),
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .systemLibrary(name: "BaselineSQLCipher", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .systemLibrary(name: "BaselineSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "CBaseline",
            dependencies: [
                .target(name: "BaselineSQLCipher", condition: .when(traits: ["SQLCipher"])),
                .target(name: "BaselineSQLite", condition: .when(traits: ["PlainSQLite"])),
            ],
            cSettings: [.define("BASELINE_HAS_CODEC", .when(traits: ["SQLCipher"]))],
            linkerSettings: [.linkedLibrary("crypto")]
        ),
        .target(name: "AllocationCounter"),
        .target(name: "Wire"),
        .target(
            name: "Cases",
            dependencies: [
                "AllocationCounter",
                "CBaseline",
                "Wire",
                .product(name: "SealedDB", package: "SealedDB"),
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["PlainSQLite"])),
            ]
        ),
        .executableTarget(name: "worker", dependencies: ["Cases", "Wire"]),
        .executableTarget(name: "compare", dependencies: ["Wire"]),
        .executableTarget(
            name: "SealedDBBenchmarks",
            dependencies: ["Cases", "Wire", .product(name: "Benchmark", package: "benchmark")],
            path: "Benchmarks/SealedDBBenchmarks"
        ),
    ],
    swiftLanguageModes: [.v6]
)
