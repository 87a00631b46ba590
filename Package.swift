// swift-tools-version: 6.1

import PackageDescription

let package = Package(
    name: "SealedDB",
    products: [
        .library(name: "SealedDB", targets: ["SealedDB"]),
        .executable(name: "sealdb", targets: ["sealdb"]),
    ],
    traits: [
        .trait(name: "SQLCipher", description: "Encrypted stores: links the system's libsqlcipher."),
        .trait(name: "PlainSQLite", description: "Stores in the clear, for comparison: links the system's libsqlite3."),
        .default(enabledTraits: ["SQLCipher"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    ],
    targets: [
        .systemLibrary(name: "CSQLCipher", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CSealedDBSystem"),
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
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .executableTarget(
            name: "sealdb",
            dependencies: [
                "SealedDB",
                "CSealedDBSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .executableTarget(name: "BookStore", dependencies: ["SealedDB"], path: "Examples/BookStore"),
        .executableTarget(name: "ObjectFetcher", dependencies: ["SealedDB"], path: "Examples/ObjectFetcher"),
        .executableTarget(name: "CipherProbe", dependencies: ["SealedDB"], path: "Tests/CipherProbe"),
        .executableTarget(name: "KeyMemoryProbe", dependencies: ["SealedDB"], path: "Tests/KeyMemoryProbe"),
        .testTarget(
            name: "SealedDBTests",
            dependencies: [
                "SealedDB", "CSealedDBSystem", "CipherProbe", "KeyMemoryProbe",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .testTarget(name: "sealdbTests", dependencies: ["SealedDB", "sealdb", "BookStore", "ObjectFetcher"]),
    ],
    swiftLanguageModes: [.v6]
)
