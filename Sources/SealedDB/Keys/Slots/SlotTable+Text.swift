import Foundation

/// The text of a file of slots.
///
///     sealdb-slots 1
///     store 9b1e…                                       16 bytes
///     generation 7
///     data-key 1 0f33…                                  the salt: the store's first 16 bytes
///     slot 1 key use 2026-11-24 ops
///     wrap 1 hkdf-sha256 SALT NONCE SEALED
///     slot 2 passphrase use 2026-11-24 on-call
///     wrap 1 scrypt 131072 8 1 SALT NONCE SEALED
///     slot 3 program recovery 2026-11-24 safe
///     wrap 1 program BASE64
///     mac 1 CODE
///
/// Words are separated by one space, bytes are hex digits in lower case, every line ends with a newline, and there is one
/// way only to write a table: a text that would be written otherwise is refused.
extension SlotTable {
    static let header = "sealdb-slots \(version)"

    /// The lines before the codes: what the codes are over.
    var text: String {
        var text = "\(SlotTable.header)\nstore \(Hexadecimal.string(store))\ngeneration \(generation)\n"
        for key in dataKeys { text += "data-key \(key.number) \(Hexadecimal.string(key.salt))\n" }
        for slot in slots {
            let role = slot.isRecovery ? "recovery" : "use"
            text += "slot \(slot.number) \(slot.kind.rawValue) \(role) \(slot.created) \(slot.label)\n"
            for wrap in slot.wraps { text += "wrap \(wrap.dataKey) \(wrap.form.text)\n" }
        }
        return text
    }

    /// What a wrap is bound to: it opens for this store, slot, kind, derivation and data key only.
    func bound(_ slot: Int, _ kind: Kind, _ dataKey: DataKey, _ derivation: Derivation, salt: [UInt8]) -> [UInt8] {
        let lines = [
            SlotTable.header, "store \(Hexadecimal.string(store))", "slot \(slot) \(kind.rawValue)",
            "data-key \(dataKey.number) \(Hexadecimal.string(dataKey.salt))",
            "\(derivation.text) \(Hexadecimal.string(salt))",
        ]
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// Today, in UTC.
    static var today: String {
        var time = time(nil)
        var parts = tm()
        guard gmtime_r(&time, &parts) != nil else { return "1970-01-01" }
        func digits(_ number: Int32, _ count: Int) -> String {
            String(String(repeating: "0", count: count).appending(String(number)).suffix(count))
        }
        return "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
    }
}

extension SlotTable.Derivation {
    var text: String {
        switch self {
        case .hkdf: "hkdf-sha256"
        case .scrypt(let scrypt): "scrypt \(scrypt.cost) \(scrypt.blockSize) \(scrypt.lanes)"
        }
    }
}

extension SlotTable.Wrap.Form {
    fileprivate var text: String {
        switch self {
        case .sealed(let derivation, let salt, let nonce, let bytes):
            "\(derivation.text) \(Hexadecimal.string(salt)) \(Hexadecimal.string(nonce)) \(Hexadecimal.string(bytes))"
        case .program(let bytes): "program \(Data(bytes).base64EncodedString())"
        }
    }
}
