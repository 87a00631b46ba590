import Foundation
import SealedDB

/// Where the files of a program are. Nothing but the store is in the store's directory.
struct Place: Sendable {
    let root: String
    static let keyCount = 4

    var storeDirectory: String { root + "/store" }
    var store: String { storeDirectory + "/store.db" }
    var otherDirectory: String { root + "/other" }
    var planFile: String { root + "/plan.json" }
    var modelFile: String { root + "/model.json" }
    func keyFile(_ number: Int) -> String { root + "/keys/key\(number)" }

    /// The directories, and keys that follow from the seed.
    func make(seed: UInt64) throws {
        for directory in [storeDirectory, otherDirectory, root + "/keys"] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
        for number in 0..<Place.keyCount {
            var random = Random(seed: seed, 2, number)
            let digits = random.bytes(32).map { String(format: "%02x", $0) }.joined()
            guard
                FileManager.default.createFile(
                    atPath: keyFile(number),
                    contents: Data(digits.utf8),
                    attributes: [.posixPermissions: 0o600]
                )
            else { throw Violation("Cannot write \(keyFile(number)).") }
        }
    }

    func key(_ number: Int) throws -> Key { try KeySource.keyFile(keyFile(number)).key() }

    /// As SQLCipher takes it.
    func keyLiteral(_ number: Int) throws -> String {
        "x'\(try String(contentsOfFile: keyFile(number), encoding: .utf8))'"
    }
}
