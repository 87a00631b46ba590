import Foundation
import Testing

@testable import SealedDB

/// What wraps are bound to.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotWrapTests {
    private let secret: SecretBytes
    private let dataKey = SlotTable.DataKey(number: 1, salt: [UInt8](1...16))
    private let table: SlotTable

    init() throws {
        secret = try Key.testing(9).withSecret { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
        var table = SlotTable(store: [UInt8](2...17), generation: 7, dataKeys: [dataKey], slots: [])
        for number in 1...2 {
            let new = KeySlots.NewSlot(.key(try .testing(1)), label: "ops-\(number)")
            try table.append(table.slot(new, number: number, secret, dataKey))
        }
        self.table = table
    }

    private func opens(_ table: SlotTable, _ slot: SlotTable.Slot, _ dataKey: SlotTable.DataKey? = nil) throws -> Bool {
        try table.unwrap(slot, dataKey ?? self.dataKey, with: .testing(1))?.isEqual(to: secret) ?? false
    }

    @Test func opensAsItWas() throws {
        for slot in table.slots { #expect(try opens(table, slot)) }
        #expect(try table.unwrap(table.slots[0], dataKey, with: .testing(2)) == nil)
        #expect(try table.unwrap(table.slots[0], dataKey, with: .passphrase("x")) == nil)
        var renamed = table.slots[0]
        (renamed.label, renamed.isRecovery) = ("other", true)
        #expect(try opens(table, renamed))
    }

    @Test func opensNowhereElse() throws {
        var other = table
        other.store[0] ^= 1
        #expect(try !opens(other, table.slots[0]))
        let salt = SlotTable.DataKey(number: 1, salt: [UInt8](2...17))
        #expect(try !opens(table, table.slots[0], salt))
        // The wraps of two slots of the same key, exchanged.
        let moved = SlotTable.Slot(
            number: 2,
            kind: .key,
            isRecovery: false,
            created: table.slots[0].created,
            label: "moved",
            wraps: table.slots[0].wraps
        )
        #expect(try !opens(table, moved))
        let renumbered = SlotTable.DataKey(number: 2, salt: dataKey.salt)
        var slot = table.slots[0]
        slot.wraps = [.init(dataKey: 2, form: slot.wraps[0].form)]
        #expect(try !opens(table, slot, renumbered))
    }

    @Test func parametersAreBound() throws {
        let key = try Key.passphrase("open sesame")
        let wrap = try table.wrap(secret, dataKey, slot: 3, under: key, scrypt: .least)
        guard case .sealed(_, let salt, let nonce, let bytes) = wrap.form else { throw CancellationError() }
        func slot(_ derivation: SlotTable.Derivation, _ salt: [UInt8], _ nonce: [UInt8]) -> SlotTable.Slot {
            SlotTable.Slot(
                number: 3,
                kind: .passphrase,
                isRecovery: false,
                created: SlotTable.today,
                label: "x",
                wraps: [.init(dataKey: 1, form: .sealed(derivation, salt: salt, nonce: nonce, bytes: bytes))]
            )
        }
        let dearer = SlotTable.Scrypt(cost: 1 << 16, blockSize: 8, lanes: 1)
        #expect(try table.unwrap(slot(.scrypt(.least), salt, nonce), dataKey, with: key)?.isEqual(to: secret) == true)
        #expect(try table.unwrap(slot(.scrypt(dearer), salt, nonce), dataKey, with: key) == nil)
        #expect(try table.unwrap(slot(.scrypt(.least), salt.map { $0 ^ 1 }, nonce), dataKey, with: key) == nil)
        #expect(try table.unwrap(slot(.scrypt(.least), salt, nonce.map { $0 ^ 1 }), dataKey, with: key) == nil)
        // The derivation is bound even where it does not make the key: both here would come out of the same cache.
        let bound = table.bound(3, .passphrase, dataKey, .scrypt(.least), salt: salt)
        #expect(bound != table.bound(3, .passphrase, dataKey, .scrypt(dearer), salt: salt))
        #expect(bound != table.bound(3, .key, dataKey, .scrypt(.least), salt: salt))
    }

    @Test func saltAndNonceAreNewEachTime() throws {
        let texts = try (0..<8).map { _ in try table.wrap(secret, dataKey, slot: 3, under: .testing(1)) }
        #expect(Set(texts.map { "\($0)" }).count == 8)
    }

    @Test func keysOfOneStoreAreNoneOfASlot() throws {
        let key = try FixtureKey.rawWithSalt.key()
        #expect(throws: DatabaseError.self) { try table.wrap(secret, dataKey, slot: 3, under: key) }
        #expect(try table.unwrap(table.slots[0], dataKey, with: key) == nil)
    }

    /// What a program prints is searched for the key in base64, whatever digits that has.
    @Test func keysInBase64() throws {
        // Together they have all 64 digits, six bits each.
        for start in [0, 24] {
            var bytes = [UInt8](repeating: 0, count: 32)
            for digit in 0..<40 {
                for bit in 0..<6 where (start + digit) >> (5 - bit) & 1 == 1 {
                    let place = digit * 6 + bit
                    bytes[place / 8] |= 1 << UInt8(7 - place % 8)
                }
            }
            let key = try SecretBytes(copying: bytes)
            let hex = Data(Hexadecimal.string(bytes).utf8)
            let base64 = hex.base64EncodedString()
            let forURLs = Data(bytes).base64EncodedString().map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
            func pairs(_ separator: String) -> String {
                bytes.map { Hexadecimal.string([$0]) }.joined(separator: separator)
            }
            let texts = [
                Data(bytes).base64EncodedString(), base64, "key: \(base64)!", String(forURLs), pairs(":"),
                pairs("-").uppercased(), pairs(" : "),
            ]
            for text in texts {
                let error = try #require(throws: DatabaseError.self) {
                    try self.table.wrap(key, self.dataKey, by: KeyCommand(["/bin/echo", text], timeout: 60))
                }
                #expect(error.reason == .keySourceFailed && error.message.contains("as it is"), "\(text): \(error)")
            }
            // The base64 of another key is none of this one.
            let other = Data(bytes.reversed()).base64EncodedString()
            let command = KeyCommand(["/bin/echo", "-n", other], timeout: 60)
            #expect(try table.wrap(key, dataKey, by: command).form == .program(Array(other.utf8)))
        }
    }

    /// Keys of stores that were opened long ago give way; those of stores that are opened again do not push others out.
    @Test func dataKeysThatAreKnown() throws {
        let key = try Key.testing(1)
        for _ in 0..<300 { key.slotKeys.note(secret, salt: [1]) }
        for number in 2...256 { key.slotKeys.note(secret, salt: [UInt8(number & 255), UInt8(number >> 8)]) }
        #expect(key.slotKeys.dataKey(salt: [1]) != nil && key.slotKeys.dataKey(salt: [2, 0]) != nil)
        key.slotKeys.note(secret, salt: [0xff, 0xff])
        #expect(key.slotKeys.dataKey(salt: [1]) == nil)
        #expect(key.slotKeys.dataKey(salt: [2, 0]) != nil && key.slotKeys.dataKey(salt: [0xff, 0xff]) != nil)
    }

    /// Known answers: RFC 5869, case 3; RFC 7914, section 12; RFC 4231, case 2; case 14 of the proposal of GCM.
    @Test func knownAnswers() throws {
        func bytes(_ hex: String) throws -> [UInt8] {
            try Array(hex.utf8).withUnsafeBytes { digits in
                try Hexadecimal.decode(digits).withBytes { bytes throws(DatabaseError) in Array(bytes) }
            }
        }
        var key = [UInt8](repeating: 0, count: 64)
        try [UInt8](repeating: 0x0b, count: 22).withUnsafeBytes { secret in
            try key.withUnsafeMutableBytes { target in
                let part = UnsafeMutableRawBufferPointer(rebasing: target[..<32])
                try KeyWrapping.expand(secret, salt: [], info: "", into: part)
            }
        }
        #expect(
            Hexadecimal.string(key.prefix(32)) == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
        )
        try Array("pleaseletmein".utf8).withUnsafeBytes { passphrase in
            try key.withUnsafeMutableBytes { target in
                try KeyWrapping.stretch(
                    passphrase,
                    salt: Array("SodiumChloride".utf8),
                    cost: 16384,
                    blockSize: 8,
                    lanes: 1,
                    into: target
                )
            }
        }
        #expect(
            Hexadecimal.string(key)
                == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
        )
        let code = try Array("Jefe".utf8).withUnsafeBytes {
            try KeyWrapping.code(Array("what do ya want for nothing?".utf8), key: $0)
        }
        #expect(Hexadecimal.string(code) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let zeros = [UInt8](repeating: 0, count: 32)
        let sealed = try zeros.withUnsafeBytes { zeros in
            try KeyWrapping.seal(zeros, key: zeros, nonce: [UInt8](repeating: 0, count: 12), bound: [])
        }
        #expect(Hexadecimal.string(sealed.prefix(16)) == "cea7403d4d606b6e074ec5d3baf39d18")
    }
}
