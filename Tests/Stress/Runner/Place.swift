import Foundation
import SealedDB

/// Where the files of a program are: the stores, and all else that a power cut may harm, in a directory that can be a file
/// system of its own. Nothing but the stores is in their directory.
struct Place: Sendable {
    let root: String
    static let keyCount = 4
    /// Of the second store, which keeps it.
    static let sideKey = 3

    /// Of the keys, which is a passphrase; the others are raw keys.
    static let passphrase = 2

    var disk: String { root + "/disk" }
    var storeDirectory: String { disk + "/store" }
    var store: String { storeDirectory + "/store.db" }
    var otherDirectory: String { disk + "/other" }
    var planFile: String { root + "/plan.json" }
    var modelFile: String { root + "/model.json" }
    /// A user's own file, whose name begins as those of unfinished copies do.
    var usersBackup: String { storeDirectory + "/.store.db.sealdb-before-upgrade" }
    var side: String { storeDirectory + "/side.db" }
    /// For what is in the clear.
    var openDirectory: String { disk + "/open" }
    var keyDirectory: String { disk + "/keys" }
    /// Is there while a service has the store open.
    var serviceFile: String { root + "/service" }
    func keyFile(_ number: Int) -> String { keyDirectory + "/key\(number)" }

    /// The directories, and keys that follow from the seed.
    func make(seed: UInt64) throws {
        for directory in [storeDirectory, otherDirectory, openDirectory, keyDirectory] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
        for number in 0..<Place.keyCount {
            var random = Random(seed: seed, 2, number)
            let hexadecimal = random.bytes(32).map { String(format: "%02x", $0) }.joined()
            let digits = number == Place.passphrase ? "A passphrase: \(hexadecimal)" : hexadecimal
            guard
                FileManager.default.createFile(
                    atPath: keyFile(number),
                    contents: Data(digits.utf8),
                    attributes: [.posixPermissions: 0o600]
                )
            else { throw Violation("Cannot write \(keyFile(number)).") }
        }
        try Data("kept by its user".utf8).write(to: URL(fileURLWithPath: usersBackup))
    }

    /// Has a rename in the store's directory survive a power failure.
    func syncStoreDirectory() throws {
        let directory = open(storeDirectory, O_RDONLY | O_DIRECTORY)
        defer { _ = close(directory) }
        guard fsync(directory) == 0 else { throw Violation("\(storeDirectory) cannot be synced.") }
    }

    /// Copies the store as it was left, because looking at it recovers it. Only what is quickly copied.
    func keepState() throws {
        let copy = root + "/before-the-check"
        if FileManager.default.fileExists(atPath: copy) { try FileManager.default.removeItem(atPath: copy) }
        guard try storeSize() < 1 << 26 else { return }
        try FileManager.default.copyItem(atPath: storeDirectory, toPath: copy)
    }

    func storeSize() throws -> Int64 {
        (try FileManager.default.attributesOfItem(atPath: store)[.size] as? NSNumber)?.int64Value ?? 0
    }

    /// The number of the key that the store has, as far as this program's processes know. One that reads it while another
    /// changes the key may come too late, as anybody may.
    var currentKey: Int {
        get { (try? String(contentsOfFile: root + "/current", encoding: .utf8)).flatMap { Int($0) } ?? 0 }
        nonmutating set {
            do {
                try String(newValue).write(toFile: root + "/current", atomically: true, encoding: .utf8)
            } catch {
                fatalError("Cannot write \(root)/current: \(error)")
            }
        }
    }

    func key(_ number: Int) throws(DatabaseError) -> Key {
        let file = keyFile(number)
        return try (number == Place.passphrase ? KeySource.passphraseFile(file) : .keyFile(file)).key()
    }

    /// As SQLCipher takes it.
    func keyLiteral(_ number: Int) throws -> String {
        let text = try String(contentsOfFile: keyFile(number), encoding: .utf8)
        return number == Place.passphrase ? text : "x'\(text)'"
    }

    /// An option of `sealdb`, such as `--new-key-file`, with its value.
    func option(_ key: Int, _ source: String = "file", isNew: Bool = false, value: String? = nil) -> [String] {
        let kind = key == Place.passphrase ? "passphrase" : "key"
        return ["--\(isNew ? "new-" : "")\(kind)-\(source)", value ?? keyFile(key)]
    }
}
