import Foundation
import Testing

@testable import SealedDB

/// Every way to change a key, with every form of key and every place of the salt: afterwards exactly the promised key
/// opens the store with the promised settings, and the contents are those of before.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct KeyChangeTableTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    enum Form: CaseIterable, Sendable {
        case passphrase, raw, rawWithSalt

        func key(_ byte: UInt8) throws -> Key {
            switch self {
            case .passphrase: return try .passphrase("passphrase \(byte)")
            case .raw: return try .testing(byte)
            case .rawWithSalt:
                return try [UInt8](repeating: byte, count: 32).withUnsafeBytes { key in
                    try [UInt8](repeating: 0x77, count: 16).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
                }
            }
        }
    }

    enum Change: CaseIterable, Sendable { case inPlace, rotation, live, migration }

    static let settings: [CipherSettings] = [
        CipherSettings(kdfIterations: 10),
        CipherSettings(pageSize: 1024, kdfIterations: 10, hmacAlgorithm: .sha1),
        CipherSettings(kdfIterations: 10, usesHMAC: false),
        CipherSettings(kdfIterations: 10, plaintextHeaderSize: 32),
        CipherSettings(kdfIterations: 10, plaintextHeaderSize: 32, salt: [UInt8](1...16)),
    ]

    private func database(_ key: Key, _ settings: CipherSettings) -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        configuration.createsFile = false
        return Database(path: directory.file("db"), configuration: configuration)
    }

    private func change(_ change: Change, from old: Key, to new: Key, _ settings: CipherSettings) throws {
        switch change {
        case .inPlace:
            let opening = StoreOpening(path: directory.file("db"), key: old, settings: settings)
            try InPlaceRekey(opening: opening, newKey: new).run()
        case .rotation:
            try KeyRotation(path: directory.file("db"), from: old, to: new, cipherSettings: settings).run()
        case .live:
            var configuration = Configuration(key: old)
            configuration.cipherSettings = settings
            let queue = try DatabaseQueue(path: directory.file("db"), configuration: configuration)
            defer { queue.close() }
            try queue.rotateKey(to: new)
        case .migration:
            try StoreMigration(
                path: directory.file("db"),
                key: old,
                from: settings,
                to: settings,
                newKey: new
            ).run()
        }
    }

    @Test(arguments: Change.allCases, settings)
    func theTable(change: Change, settings: CipherSettings) throws {
        for (oldForm, newForm) in Form.allCases.flatMap({ old in Form.allCases.map { (old, $0) } }) {
            let (old, new) = (try oldForm.key(1), try newForm.key(2))
            guard (try? settings.validate(for: old)) != nil else { continue }
            let comment: Comment = "\(change), \(oldForm) to \(newForm), \(settings)"
            for name in directory.names { try? FileManager.default.removeItem(atPath: directory.file(name)) }
            var configuration = Configuration(key: old)
            configuration.cipherSettings = settings
            let made = Database(path: directory.file("db"), configuration: configuration)
            try made.openVerified()
            try made.fill(rows: 50)
            let expected = try made.executeQuery("SELECT body FROM t").all(String.self)
            made.close()
            var error: (any Error)?
            do { try self.change(change, from: old, to: new, settings) } catch let failure { error = failure }
            let (right, wrong) = error == nil ? (new, old) : (old, new)
            if error != nil { #expect((try? settings.validate(for: new)) == nil || change == .inPlace, comment) }
            let found = database(right, settings)
            #expect(throws: Never.self, comment) { try found.openVerified() }
            #expect(try found.executeQuery("SELECT body FROM t").all(String.self) == expected, comment)
            found.close()
            #expect(!database(wrong, settings).open(), comment)
        }
    }
}
