internal import CSealedDBSystem

/// What a file of slots says: which data keys the store has, and how each slot wraps them. Nothing in it is secret, and
/// nothing of it is believed before ``SealedSlots`` has checked the code under the data key.
struct SlotTable: Equatable, Sendable {
    static let version = 1
    static let maximumSlotCount = 32
    /// Each derivation takes a fraction of a second, and a passphrase may have to be tried with every slot.
    static let maximumPassphraseCount = 8
    /// One, and during a re-encryption two.
    static let maximumDataKeyCount = 2
    static let maximumNumber = 999_999
    static let maximumGeneration = Int64.max >> 1

    /// Random, and the same as long as the store has slots.
    var store: [UInt8]
    /// Higher with each change.
    var generation: Int64
    var dataKeys: [DataKey]
    var slots: [Slot]

    /// The salt tells which data key a store needs: it is in the first 16 bytes of the store's file.
    struct DataKey: Equatable, Sendable {
        let number: Int
        let salt: [UInt8]
    }

    struct Slot: Equatable, Sendable {
        /// No other slot of the table has it.
        let number: Int
        let kind: Kind
        var isRecovery: Bool
        /// The day on which it was made (UTC), such as `2026-12-31`.
        let created: String
        var label: String
        /// One for each data key that the slot opens.
        var wraps: [Wrap]

        /// Whether it is that slot, which may have another label by now. The number alone does not tell: that of a slot that
        /// was removed goes to the next one.
        func isSame(_ other: Slot) -> Bool { number == other.number && kind == other.kind && wraps == other.wraps }

        /// The highest cost of a derivation; 0 if there is none.
        var cost: Int {
            wraps.map { if case .sealed(.scrypt(let scrypt), _, _, _) = $0.form { scrypt.cost } else { 0 } }.max() ?? 0
        }
    }

    enum Kind: String, Sendable, CaseIterable {
        case key, passphrase, program
    }

    struct Wrap: Equatable, Sendable {
        let dataKey: Int
        let form: Form

        enum Form: Equatable, Sendable {
            case sealed(Derivation, salt: [UInt8], nonce: [UInt8], bytes: [UInt8])
            /// What a program made of the data key.
            case program([UInt8])
        }
    }

    /// How the key that wraps is made of the key or passphrase of a slot.
    enum Derivation: Equatable, Sendable {
        case hkdf
        case scrypt(Scrypt)
    }

    /// The cost of scrypt. The limits keep a file that somebody has changed from taking hours or all memory, and from
    /// making the passphrase cheap to guess.
    struct Scrypt: Equatable, Sendable {
        let cost: Int
        let blockSize: Int
        let lanes: Int

        /// Half a second and 128 MiB on a machine of 2026.
        static let usual = Scrypt(cost: 1 << 17, blockSize: 8, lanes: 1)
        /// 0.1 s, for tests.
        static let least = Scrypt(cost: costs.lowerBound, blockSize: 8, lanes: 1)
        static let costs = 1 << 15...1 << 20
        /// Of all slots together, because a passphrase may have to be tried with each.
        static let totalCost = costs.upperBound + usual.cost

        var isAcceptable: Bool {
            Scrypt.costs.contains(cost) && cost & (cost - 1) == 0 && blockSize == 8 && lanes == 1
        }
    }

    static let saltByteCount = 32
    static let storeByteCount = 16

    func slot(_ label: String) -> Slot? { slots.first { $0.label == label } }

    func dataKey(salt: [UInt8]) -> DataKey? { dataKeys.first { $0.salt == salt } }

    var nextSlotNumber: Int { (slots.map(\.number).max() ?? 0) + 1 }

    static func random(_ count: Int) throws(DatabaseError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard sealeddb_random(&bytes, count) == 0 else {
            throw .system("No random bytes to wrap a key with", reason: .ioError)
        }
        return bytes
    }

    /// A label has 1 to 64 ASCII letters, digits, dots, dashes and underscores.
    static func validate(label: String) throws(DatabaseError) {
        try Key.requireName(label, of: "slot")
        guard isLabel(label) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .notAllowed,
                message: """
                    The label of a slot has 1 to 64 ASCII letters, digits, dots, dashes and underscores. Nothing was changed.
                    """
            )
        }
    }

    static func isLabel(_ label: String) -> Bool {
        (1...64).contains(label.utf8.count)
            && label.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

extension DatabaseError {
    static func malformedSlots(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_CORRUPT, reason: .malformedSlots, message: message)
    }
}
