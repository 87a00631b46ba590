import Foundation

/// Looks into every file: nothing that was stored, and no key, may be seen; and nothing may lie about.
struct DirectoryCheck {
    let place: Place

    /// - Parameters:
    ///   - mayHaveLeftovers: whether the round was interrupted. What it has left is then added to `leftovers`.
    ///   - leftovers: names of what earlier rounds have left, which lies there until an operation makes a copy.
    func run(mayHaveLeftovers: Bool, leftovers: inout Set<String>) throws {
        var secrets = [Data(Value.canary.utf8)]
        for number in 0..<Place.keyCount {
            let digits = try Data(contentsOf: URL(fileURLWithPath: place.keyFile(number)))
            secrets.append(digits)
            guard number != Place.passphrase else { continue }
            let text = Array(String(decoding: digits, as: UTF8.self))
            secrets.append(
                Data(stride(from: 0, to: text.count, by: 2).map { UInt8(String(text[$0...$0 + 1]), radix: 16)! })
            )
        }
        let endings = ["", "-wal", "-shm", "-journal", "-sealdb-lock"]
        var allowed = Set(["store.db", "side.db"].flatMap { name in endings.map { name + $0 } })
        allowed.insert(URL(fileURLWithPath: place.usersBackup).lastPathComponent)
        guard FileManager.default.contents(atPath: place.usersBackup) == Data("kept by its user".utf8) else {
            throw Violation("A file of the user's is gone: \(place.usersBackup).")
        }
        var found: Set<String> = []
        for directory in [place.storeDirectory, place.otherDirectory] {
            for name in try FileManager.default.contentsOfDirectory(atPath: directory).sorted() {
                try search(directory + "/" + name, for: secrets)
                guard directory == place.storeDirectory, !allowed.contains(name) else { continue }
                guard mayHaveLeftovers || leftovers.contains(name) else {
                    throw Violation("\(name) was left beside the store.")
                }
                found.insert(name)
            }
        }
        leftovers = found
    }

    private func search(_ path: String, for secrets: [Data]) throws {
        let content = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        guard !content.isEmpty else { return }
        for (index, secret) in secrets.enumerated() where content.contains(secret) {
            throw Violation(index == 0 ? "\(path) shows what was stored." : "\(path) shows a key.")
        }
    }
}

extension Data {
    fileprivate func contains(_ other: Data) -> Bool {
        withUnsafeBytes { bytes in
            other.withUnsafeBytes { wanted in
                var position = 0
                while bytes.count - position >= wanted.count {
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
                    let length = rest.count - wanted.count + 1
                    guard let found = memchr(rest.baseAddress!, Int32(wanted[0]), length) else { return false }
                    if memcmp(found, wanted.baseAddress!, wanted.count) == 0 { return true }
                    position = UnsafeRawPointer(found) - bytes.baseAddress! + 1
                }
                return false
            }
        }
    }
}
