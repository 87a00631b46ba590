import Foundation
import Testing

@testable import SealedDB

/// Pages that are written without SQLCipher: SQLCipher reads them, and they are what is known to be right.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct PageWritingTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    // MARK: Known answers

    struct Vector: Sendable {
        let pageSize: Int
        let algorithm: CipherSettings.Algorithm?
        let number: Int64
        let header: Int
        /// The SHA-256 of the page.
        let sum: String

        init(_ size: Int, _ algorithm: CipherSettings.Algorithm?, _ number: Int64, _ header: Int, _ sum: String) {
            (pageSize, self.algorithm, self.number, self.header, self.sum) = (size, algorithm, number, header, sum)
        }
    }

    /// Computed with Python's hashlib and hmac, and with the command `openssl enc`.
    private static let vectors: [Vector] = [
        .init(1024, nil, 1, 0, "68e38fe02414a12b951436c692d08c4c0782b28170f0d07bae6f1661f87c6e0b"),
        .init(1024, nil, 1, 32, "26e7c0fe47afea541cf316b9f1f293bab98b6e51b73274f9a401d25c06b956a6"),
        .init(1024, nil, 2, 0, "71a2063920028cd27d20861cdbb50226cc5654dfba8edc2ce3f2191411231b04"),
        .init(1024, .sha1, 1, 0, "7d361f3a2b9a6daf36c347756f2629b87e5ff4a53af64066941db7d834bee95c"),
        .init(1024, .sha1, 1, 32, "2fde27561f5f5b148d31fe082baa526188c9aa5ebb2164eb8bbcd3cc24fd1a31"),
        .init(1024, .sha1, 2, 0, "0ddbf0c45670479722b81c3c5781094ced2692bd1207e3a2309e4a51941746f0"),
        .init(1024, .sha1, 0x0102_0304, 0, "9c0e4ef67e74677752425e74d6d45b3b3278535b1680d985d90369dc2a4bc74a"),
        .init(1024, .sha256, 1, 0, "43c181d5341e393b42da05cc0f4c8b640de4ca14638f2addbd2ade843bb24479"),
        .init(1024, .sha256, 1, 32, "afb4448c5f54ae354c0371aeb871b8654008d062bdce4d1c3eccd24d1d3290b2"),
        .init(1024, .sha256, 2, 0, "2161a946cb355efd83d367cd8c6e9efe51711f364a8bcf30a50dc449cacc69cf"),
        .init(1024, .sha256, 0x0102_0304, 0, "956b08e277c9fbbefd8d7d77795444c8a00f942add92a64d564d68832c87f7f9"),
        .init(1024, .sha512, 1, 0, "05b6ca3ce4e5ecb7358e2ff4062bc57f8c6ce30e9566a8c77e17f39a1e6ab4a9"),
        .init(1024, .sha512, 1, 32, "8884ee213daff679d79eff80f795624cf9636660e3eb8deab0bfc616e9454355"),
        .init(1024, .sha512, 2, 0, "be66214678616abde03f5adbed8651bcc07acc36fb351fd085387f3258ab9fed"),
        .init(1024, .sha512, 0x0102_0304, 0, "95dc40a65bf3fab67562cfdef73bbab6408b79730caa747d00bfbd149ae488f0"),
        .init(4096, .sha512, 1, 0, "de726f6a33a125da9e25d13f507e8a332014c292f81f981c0a3207169706363f"),
        .init(4096, .sha512, 1, 32, "955cd3dc7549f67c86b33810dfaf94daa52dd6229c2990c82807a789920842e8"),
        .init(4096, .sha512, 2, 0, "69783c3a6510c28a40686a917d2cb1680664d920854c993cda47a8225be309fb"),
        .init(4096, .sha512, 0x0102_0304, 0, "2e791b782d211e5db072afd80f6f1924c47102e59c82cffa650dbb24e04c2915"),
    ]

    private func cipher(_ settings: CipherSettings, key: [UInt8], salt: [UInt8]) throws -> PageCipher {
        let secret = try key.withUnsafeBytes { try SecretBytes(copying: $0) }
        return try PageCipher(key: secret, salt: salt, parameters: settings.parameters)
    }

    @Test(arguments: vectors) func knownAnswers(vector: Vector) throws {
        let salt = Array(UInt8(100)..<116)
        let settings = CipherSettings(
            pageSize: vector.pageSize,
            hmacAlgorithm: vector.algorithm,
            usesHMAC: vector.algorithm != nil,
            plaintextHeaderSize: vector.header
        )
        let cipher = try cipher(settings, key: Array(0..<32), salt: salt)
        let contents = (0..<vector.pageSize).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 / 256) }
        var page = [UInt8](repeating: 0, count: vector.pageSize)
        for index in cipher.contentSize..<page.count { page[index] = UInt8(200 + (index - cipher.contentSize) % 50) }
        try contents.withUnsafeBytes { contents in
            try page.withUnsafeMutableBytes { try cipher.sealWithOwnIV(contents, number: vector.number, into: $0) }
        }
        let hash = try SHA256Hash()
        try page.withUnsafeBytes { try hash.update($0) }
        #expect(try Hexadecimal.string(hash.value()) == vector.sum)
        #expect(try cipher.isAuthentic(page, number: vector.number) == (vector.algorithm != nil))
        #expect(try !cipher.isAuthentic(page, number: vector.number + 1))
    }

    @Test func everyPageHasAnIVOfItsOwn() throws {
        let cipher = try cipher(.init(hmacAlgorithm: .sha1), key: Array(0..<32), salt: Array(0..<16))
        let contents = [UInt8](repeating: 7, count: 4096)
        var page = [UInt8](repeating: 0, count: 4096)
        var vectors: Set<[UInt8]> = []
        var ends: Set<[UInt8]> = []
        for _ in 0..<200 {
            try contents.withUnsafeBytes { contents in
                try page.withUnsafeMutableBytes { try cipher.seal(contents, number: 3, into: $0) }
            }
            vectors.insert(Array(page[cipher.contentSize...].prefix(16)))
            // What the code of 20 bytes leaves over.
            ends.insert(Array(page.suffix(12)))
        }
        #expect(vectors.count == 200)
        #expect(ends.count == 200)
    }

    // MARK: SQLCipher

    struct Form: Sendable, CustomTestStringConvertible {
        let settings: CipherSettings
        let isSalted: Bool
        let autoVacuum: Int
        var testDescription: String { "\(settings), salted: \(isSalted), auto_vacuum: \(autoVacuum)" }

        static let random: [Form] = (0..<14).map { number in
            let header = number % 3 == 0 ? [16, 32, 48, 64].randomElement()! : 0
            return Form(
                settings: CipherSettings(
                    compatibility: .allCases.randomElement()!,
                    pageSize: [nil, 1024, 2048, 4096, 8192, 65536].randomElement()!,
                    hmacAlgorithm: ([nil] + CipherSettings.Algorithm.allCases).randomElement()!,
                    usesHMAC: header > 0 ? true : [nil, true, false].randomElement()!,
                    plaintextHeaderSize: header,
                    salt: header > 0 ? (0..<16).map { _ in UInt8.random(in: 0...255) } : nil
                ),
                isSalted: header == 0 && Bool.random(),
                autoVacuum: Int.random(in: 0...2)
            )
        }
    }

    private func key(_ bytes: [UInt8], salt: [UInt8]?) throws -> Key {
        try bytes.withUnsafeBytes { bytes in
            guard let salt else { return try Key.raw(bytes) }
            return try salt.withUnsafeBytes { try Key.raw(bytes, salt: $0) }
        }
    }

    private func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    private func open(_ name: String, _ key: Key, _ settings: CipherSettings) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        configuration.isDefensive = false
        configuration.trustsSchema = true
        let database = Database(path: directory.file(name), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// All pages of the store, as they are decrypted here.
    private func pages(_ name: String, _ cipher: PageCipher) throws -> [[UInt8]] {
        let file = try [UInt8](directory.bytes(name))
        let size = cipher.parameters.pageSize
        return try stride(from: 0, to: file.count, by: size).map { start in
            let number = Int64(start / size + 1)
            let page = Array(file[start..<(start + size)])
            if cipher.parameters.usesHMAC { #expect(try cipher.isAuthentic(page, number: number)) }
            var contents = [UInt8](repeating: 0, count: size)
            try page.withUnsafeBytes { page in
                try contents.withUnsafeMutableBytes { try cipher.open(page, number: number, into: $0) }
            }
            return Array(contents[..<cipher.contentSize])
        }
    }

    /// The same as SQLCipher decrypts them, without what a copy by SQLite has of its own.
    private func pagesOfSQLCipher(_ name: String, _ key: Key, _ settings: CipherSettings) throws -> [[UInt8]] {
        let connection = try StoreOpening(path: directory.file(name), key: key, settings: settings).open()
        defer { connection.close() }
        let image = [UInt8](try SerializedStore.plaintextImage(of: connection))
        let size = settings.parameters.pageSize
        let pages = stride(from: 0, to: image.count, by: size).map { start in
            Array(image[start..<(start + size - settings.parameters.reservedBytes)])
        }
        return blanked(pages)
    }

    private func blanked(_ pages: [[UInt8]]) -> [[UInt8]] {
        var pages = pages
        for index in PageComparison.differingBytes.joined() { pages[0][index] = 0 }
        return pages
    }

    /// What this writes, SQLCipher reads; what SQLCipher writes, this reads.
    @Test(arguments: Form.random) func bothDirections(form: Form) throws {
        let (first, second) = (randomBytes(32), randomBytes(32))
        let (old, new) = (form.isSalted ? randomBytes(16) : nil, form.isSalted ? randomBytes(16) : nil)
        let (oldKey, newKey) = (try key(first, salt: old), try key(second, salt: new))
        let store = try open("db", oldKey, form.settings)
        try RichDatabase.fill(store, autoVacuum: form.autoVacuum)
        let contents = try RichDatabase.contents(of: store)
        #expect(store.close())

        let header = try [UInt8](directory.bytes("db").prefix(16))
        let source = try cipher(form.settings, key: first, salt: old ?? form.settings.salt ?? header)
        let pages = try pages("db", source)
        #expect(blanked(pages) == (try pagesOfSQLCipher("db", oldKey, form.settings)))

        let target = try cipher(form.settings, key: second, salt: new ?? form.settings.salt ?? randomBytes(16))
        var file: [UInt8] = []
        for (index, contents) in pages.enumerated() {
            var page = [UInt8](repeating: 0, count: target.parameters.pageSize)
            try contents.withUnsafeBytes { contents in
                try page.withUnsafeMutableBytes { try target.seal(contents, number: Int64(index + 1), into: $0) }
            }
            file += page
        }
        try directory.write("copy", file)
        #expect(try self.pages("copy", target) == pages)
        #expect(try pagesOfSQLCipher("copy", newKey, form.settings) == blanked(pages))
        let copy = try open("copy", newKey, form.settings)
        #expect(try RichDatabase.contents(of: copy) == contents)
        try RichDatabase.use(copy)
        #expect(copy.close())

        let settings = form.settings.parameters.pragmas.map { "PRAGMA \($0.name) = \($0.value);" }
        let salt = form.settings.salt.map { "PRAGMA cipher_salt = \"x'\(Hexadecimal.string($0))'\";" } ?? ""
        let answers = try StockShell.run(
            directory.file("copy"),
            """
            PRAGMA key = "x'\(Hexadecimal.string(second + (new ?? [])))'";
            PRAGMA cipher_compatibility = \(form.settings.compatibility.rawValue);
            \(settings.joined(separator: "\n")) \(salt)
            \(form.settings.parameters.usesHMAC ? "PRAGMA cipher_integrity_check;" : "")
            SELECT count(*) FROM texts;
            """
        )
        #expect(answers == ["4"])
    }
}
