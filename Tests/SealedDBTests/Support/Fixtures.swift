import Testing

@testable import SealedDB

/// A form of key, as the shell and as this package take it.
enum FixtureKey: String, CaseIterable, Sendable {
    case passphrase, raw, rawWithSalt

    var pragma: String {
        switch self {
        case .passphrase: "PRAGMA key = 'It''s \"secret\", größer';"
        case .raw: "PRAGMA key = \"x'\(String(repeating: "5a", count: 32))'\";"
        case .rawWithSalt:
            "PRAGMA key = \"x'\(String(repeating: "5a", count: 32))\(String(repeating: "77", count: 16))'\";"
        }
    }

    func key() throws -> Key {
        switch self {
        case .passphrase: try .passphrase("It's \"secret\", größer")
        case .raw: try .testing(0x5a)
        case .rawWithSalt:
            try [UInt8](repeating: 0x5a, count: 32).withUnsafeBytes { key in
                try [UInt8](repeating: 0x77, count: 16).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
            }
        }
    }
}

/// Ways in which a store can be encrypted.
struct FixtureFormat: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// What the shell needs between the key and the first read.
    let pragmas: String
    let settings: CipherSettings

    static let salt = [UInt8](0..<16)

    /// Whether pages have authentication codes.
    var isAuthenticated: Bool { settings.parameters.usesHMAC }

    static let olderFormats: [FixtureFormat] = (1...3).map { version in
        FixtureFormat(
            testDescription: "SQLCipher \(version)",
            pragmas: "PRAGMA cipher_compatibility = \(version);",
            settings: CipherSettings(compatibility: .init(rawValue: version)!)
        )
    }

    /// What only SQLCipher 4's deprecated pragmas write and read.
    static let prereleases: [FixtureFormat] = [
        ("beta of SQLCipher 2", "PRAGMA cipher_hmac_salt_mask = \"x'00'\";"),
        ("SQLCipher 2.0 with the other byte order", "PRAGMA cipher_hmac_pgno = be;"),
        (
            "beta of SQLCipher 2 with the other byte order",
            "PRAGMA cipher_hmac_salt_mask = \"x'00'\"; PRAGMA cipher_hmac_pgno = be;"
        ),
    ].map { name, pragmas in
        FixtureFormat(
            testDescription: name,
            pragmas: "PRAGMA cipher_compatibility = 2; \(pragmas)",
            settings: .sqlCipher2
        )
    }

    static let current = FixtureFormat(testDescription: "SQLCipher 4", pragmas: "", settings: .sqlCipher4)

    static let oddSettings: [FixtureFormat] = [
        FixtureFormat(
            testDescription: "small pages",
            pragmas: "PRAGMA cipher_page_size = 1024;",
            settings: CipherSettings(pageSize: 1024)
        ),
        FixtureFormat(
            testDescription: "large pages",
            pragmas: "PRAGMA cipher_page_size = 65536;",
            settings: CipherSettings(pageSize: 65536)
        ),
        FixtureFormat(
            testDescription: "few rounds",
            pragmas: "PRAGMA kdf_iter = 64000;",
            settings: CipherSettings(kdfIterations: 64_000)
        ),
        FixtureFormat(
            testDescription: "other hashes",
            pragmas: "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA256; PRAGMA cipher_hmac_algorithm = HMAC_SHA1;",
            settings: CipherSettings(kdfAlgorithm: .sha256, hmacAlgorithm: .sha1)
        ),
        FixtureFormat(
            testDescription: "no HMAC",
            pragmas: "PRAGMA cipher_use_hmac = off;",
            settings: CipherSettings(usesHMAC: false)
        ),
        FixtureFormat(
            testDescription: "SQLCipher 3 with pages of 4096",
            pragmas: "PRAGMA cipher_compatibility = 3; PRAGMA cipher_page_size = 4096;",
            settings: CipherSettings(compatibility: .sqlCipher3, pageSize: 4096)
        ),
    ]

    static let all = [current] + olderFormats + oddSettings

    /// Makes a store with 40 rows in table `t`, some pages long.
    func make(_ path: String, key: FixtureKey) throws {
        try StockShell.run(
            path,
            """
            \(key.pragma) \(pragmas)
            CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
            INSERT INTO t (body) SELECT 'secret row ' || i || hex(zeroblob(500)) FROM n;
            """
        )
    }
}
