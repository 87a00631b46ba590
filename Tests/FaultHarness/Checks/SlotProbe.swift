import Foundation
import SQLiteEngine

/// Opens the slots beside a store by what is written of their format, without the library.
struct SlotProbe {
    /// The test keys that open a slot.
    private(set) var keys: Set<TestKey> = []
    /// The data key, as `sqlite3_key` takes it; `nil` if no test key opens a slot.
    private(set) var specification: String?
    private(set) var dataKey: [UInt8] = []
    private(set) var faults: [String] = []

    /// The newest of the two files counts, if it is whole.
    init(_ path: String) {
        let texts = [".slots", ".slots.2"].compactMap { try? Files.read(path + $0) }
            .map { String(decoding: $0, as: UTF8.self) }
        for text in texts where !SlotProbe.isWhole(text) { faults.append("a file of slots is not whole") }
        let whole = texts.filter(SlotProbe.isWhole)
        guard let newest = whole.max(by: { SlotProbe.generation($0) < SlotProbe.generation($1) }),
            let salt = (try? Files.read(path)).map({ $0.prefix(16) }), salt.count == 16
        else { return }
        read(newest.split(separator: "\n").map(String.init), SlotProbe.hexadecimal(salt), newest)
    }

    private static func isWhole(_ text: String) -> Bool {
        text.hasPrefix("sealdb-slots 1\n") && text.hasSuffix("\n")
            && text.split(separator: "\n").last.map { $0.hasPrefix("mac ") && $0.count >= 70 } ?? false
    }

    private static func generation(_ text: String) -> Int {
        let line = text.split(separator: "\n").first { $0.hasPrefix("generation ") }
        return line.flatMap { Int($0.dropFirst("generation ".count)) } ?? 0
    }

    private mutating func read(_ lines: [String], _ salt: String, _ text: String) {
        guard let dataKeyLine = lines.first(where: { $0.hasPrefix("data-key ") && $0.hasSuffix(" " + salt) }) else {
            faults.append("the slots have not the data key that the store needs")
            return
        }
        let number = dataKeyLine.split(separator: " ")[1]
        var slot = ""
        for line in lines {
            let words = line.split(separator: " ").map(String.init)
            if words[0] == "slot" { slot = words[0...2].joined(separator: " ") }
            guard words[0] == "wrap", words[1] == number, words[2] == "hkdf-sha256", words.count == 6 else { continue }
            let bound = [lines[0], lines[1], slot, dataKeyLine, words[2] + " " + words[3]].joined(separator: "\n")
            for key in TestKey.allCases {
                guard let opened = SlotProbe.unwrap(key.bytes, words, bound) else { continue }
                keys.insert(key)
                if !dataKey.isEmpty, dataKey != opened { faults.append("two slots hold different keys") }
                dataKey = opened
            }
        }
        guard !dataKey.isEmpty else { return }
        specification = "x'\(SlotProbe.hexadecimal(dataKey))'"
        let signed = Array(text[..<(text.range(of: "mac ")?.lowerBound ?? text.endIndex)].utf8)
        let macKey = SlotProbe.derive(
            dataKey,
            SlotProbe.bytes(lines[1].split(separator: " ").last),
            "sealdb-slots 1 mac"
        )
        var code = [UInt8](repeating: 0, count: 32)
        guard sealeddb_hmac_sha256(macKey, 32, signed, signed.count, &code) == 1,
            lines.contains("mac \(number) \(SlotProbe.hexadecimal(code))")
        else {
            faults.append("the code of the slots is wrong")
            return
        }
    }

    // MARK: Cryptography

    private static func derive(_ secret: [UInt8], _ salt: [UInt8], _ info: String) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: 32)
        let info = Array(info.utf8)
        let done = sealeddb_hkdf(secret, secret.count, salt, salt.count, info, info.count, &key, 32)
        return done == 1 ? key : []
    }

    private static func unwrap(_ key: [UInt8], _ words: [String], _ bound: String) -> [UInt8]? {
        let wrapping = derive(key, bytes(words[3][...]), "sealdb-slots 1 wrap")
        let (nonce, sealed, bound) = (bytes(words[4][...]), bytes(words[5][...]), Array(bound.utf8))
        var opened = [UInt8](repeating: 0, count: 32)
        guard wrapping.count == 32, nonce.count == 12, sealed.count == 48,
            sealeddb_gcm_open(wrapping, nonce, bound, Int32(bound.count), sealed, &opened) == 1
        else { return nil }
        return opened
    }

    private static func bytes(_ text: Substring?) -> [UInt8] {
        let digits = Array(text ?? "")
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
