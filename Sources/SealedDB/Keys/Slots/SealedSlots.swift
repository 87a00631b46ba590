/// A table of slots with its codes: the bytes of a file. The code of each data key is over the whole table, so whoever
/// opens any slot notices a change of any other.
struct SealedSlots: Sendable {
    let table: SlotTable
    let bytes: [UInt8]
    private let signed: [UInt8]
    private let codes: [Int: [UInt8]]

    /// Reads the bytes of a file. Nothing that they say is believed before ``requireAuthentic(under:_:)``.
    init(parsing bytes: [UInt8]) throws(DatabaseError) {
        self.bytes = bytes
        (table, codes, signed) = try SlotsParser.parse(bytes)
    }

    /// - Parameter keys: the data keys of the table, by their numbers.
    init(_ table: SlotTable, keys: [Int: SecretBytes]) throws(DatabaseError) {
        let signed = Array(table.text.utf8)
        var codes: [Int: [UInt8]] = [:]
        for key in table.dataKeys {
            guard let secret = keys[key.number] else {
                preconditionFailure("A table is sealed under all its data keys.")
            }
            codes[key.number] = try SealedSlots.code(signed, table.store, under: secret)
        }
        let bytes = signed + SealedSlots.text(of: codes)
        guard bytes.count <= SlotsParser.sizeLimit else {
            throw DatabaseError(
                extendedCode: SQLITE_TOOBIG,
                reason: .misuse,
                message: "The slots would have more than \(SlotsParser.sizeLimit) bytes. They were not written."
            )
        }
        // What is written must be read again, by this very reader.
        try self.init(parsing: bytes)
        guard self.table == table else {
            throw .malformedSlots("The slots would not be read as they were meant. They were not written.")
        }
        for (number, secret) in keys { try requireAuthentic(under: secret, number) }
    }

    static func text(of codes: [Int: [UInt8]]) -> [UInt8] {
        codes.sorted { $0.key < $1.key }.flatMap { Array("mac \($0.key) \(Hexadecimal.string($0.value))\n".utf8) }
    }

    private static func code(
        _ signed: [UInt8],
        _ store: [UInt8],
        under secret: SecretBytes
    ) throws(DatabaseError) -> [UInt8] {
        try SecretBytes.withScratch(count: KeyWrapping.keyByteCount) { key throws(DatabaseError) in
            try secret.withBytes { secret throws(DatabaseError) in
                try KeyWrapping.expand(secret, salt: store, info: "\(SlotTable.header) mac", into: key)
            }
            return try KeyWrapping.code(signed, key: UnsafeRawBufferPointer(key))
        }
    }

    /// Throws unless the whole table was written by somebody who has this data key.
    func requireAuthentic(under secret: SecretBytes, _ number: Int) throws(DatabaseError) {
        guard let code = codes[number],
            try KeyWrapping.isEqual(code, SealedSlots.code(signed, table.store, under: secret))
        else {
            throw .malformedSlots(
                """
                its code is wrong: somebody has changed it without knowing the data key, or a slot of another store was \
                put there.
                """
            )
        }
    }
}

/// What tells whether a file of slots belongs to a store: whoever has written it had the store's data key, and listed it.
struct SlotOwner: Sendable {
    let secret: SecretBytes
    let salt: [UInt8]

    func owns(_ slots: SealedSlots) throws(DatabaseError) -> Bool {
        guard let key = slots.table.dataKey(salt: salt) else { return false }
        do throws(DatabaseError) {
            try slots.requireAuthentic(under: secret, key.number)
            return true
        } catch {
            guard error.reason == .malformedSlots else { throw error }
            return false
        }
    }
}
