import Foundation

/// Reads the text of a file of slots. It may come from anybody, so every number and length has a limit, and a text is only
/// taken if exactly the same one would be written for what was read.
struct SlotsParser {
    /// The most bytes that a file may have.
    static let sizeLimit = 1 << 19

    private var lines: ArraySlice<[Substring]>
    private var number = 0

    /// The table, and the codes by the number of their data key.
    static func parse(
        _ bytes: [UInt8]
    ) throws(DatabaseError) -> (table: SlotTable, codes: [Int: [UInt8]], signed: [UInt8]) {
        guard bytes.count <= sizeLimit else { throw .malformedSlots("it has more than \(sizeLimit) bytes.") }
        guard bytes.last == UInt8(ascii: "\n") else {
            throw .malformedSlots("it does not end with a newline: it is empty, cut off, or something else.")
        }
        guard bytes.allSatisfy({ (0x20..<0x7f).contains($0) || $0 == UInt8(ascii: "\n") }) else {
            throw .malformedSlots("it holds a character that none has.")
        }
        let text = String(decoding: bytes.dropLast(), as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first == SlotTable.header else {
            guard lines.first?.hasPrefix("sealdb-slots ") == true else {
                throw .malformedSlots("it does not begin with \"\(SlotTable.header)\".")
            }
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: "it has another version than \(SlotTable.version), the only one that this release reads."
            )
        }
        guard lines.count <= 200 else { throw .malformedSlots("it has more lines than slots can have.") }
        let words = lines.dropFirst().map { $0.split(separator: " ", omittingEmptySubsequences: false) }
        var parser = SlotsParser(lines: words[...])
        let (table, codes) = try parser.parse()
        let signed = Array(table.text.utf8)
        // This refuses leading zeros, capitals, other base64, and whatever else could be written in two ways.
        guard (signed + SealedSlots.text(of: codes)).elementsEqual(bytes) else {
            throw .malformedSlots("it is not written as slots are.")
        }
        return (table, codes, signed)
    }

    private init(lines: ArraySlice<[Substring]>) {
        self.lines = lines
    }

    private mutating func parse() throws(DatabaseError) -> (SlotTable, [Int: [UInt8]]) {
        // Each line is taken first: an argument is evaluated after the copy of `self`, which then has the former number.
        let storeLine = try take("store", 2)
        let store = try bytes(storeLine[1], SlotTable.storeByteCount)
        let generationLine = try take("generation", 2)
        let generation = try integer(generationLine[1], upTo: Int(SlotTable.maximumGeneration))
        var table = SlotTable(store: store, generation: Int64(generation), dataKeys: [], slots: [])
        while isNext("data-key") {
            let words = try take("data-key", 3)
            let key = SlotTable.DataKey(
                number: try integer(words[1], upTo: SlotTable.maximumNumber),
                salt: try bytes(words[2], Key.saltByteCount)
            )
            guard key.number > table.dataKeys.last?.number ?? 0, table.dataKey(salt: key.salt) == nil else {
                throw malformed("a data key occurs again.")
            }
            table.dataKeys.append(key)
        }
        guard (1...SlotTable.maximumDataKeyCount).contains(table.dataKeys.count) else {
            throw malformed("there are one or two data keys.")
        }
        while isNext("slot") {
            let slot = try slot(table)
            // Two slots may share a label if no data key has both: one takes the place of the other with a new data key.
            let isAgain = table.slots.contains { other in
                other.label == slot.label
                    && other.wraps.contains { wrap in slot.wraps.contains { $0.dataKey == wrap.dataKey } }
            }
            guard slot.number > table.slots.last?.number ?? 0, !isAgain else { throw malformed("a slot occurs again.") }
            table.slots.append(slot)
        }
        // One more than may be added: the one that takes another's place.
        guard (1...SlotTable.maximumSlotCount + 1).contains(table.slots.count),
            table.slots.count(where: { $0.kind == .passphrase }) <= SlotTable.maximumPassphraseCount + 1
        else {
            throw malformed(
                """
                there are 1 to \(SlotTable.maximumSlotCount) slots, and at most \(SlotTable.maximumPassphraseCount) with a \
                passphrase.
                """
            )
        }
        guard table.slots.reduce(0, { $0 + $1.cost }) <= SlotTable.Scrypt.totalCost else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: "the derivations of all passphrases together cost more than \(SlotTable.Scrypt.totalCost)."
            )
        }
        for key in table.dataKeys where !table.slots.contains(where: { $0.wraps.contains { $0.dataKey == key.number } })
        {
            throw malformed("no slot has the data key \(key.number).")
        }
        var codes: [Int: [UInt8]] = [:]
        for key in table.dataKeys {
            let words = try take("mac", 3)
            guard try integer(words[1], upTo: SlotTable.maximumNumber) == key.number else {
                throw malformed("the code of data key \(key.number) is expected.")
            }
            codes[key.number] = try bytes(words[2], KeyWrapping.codeByteCount)
        }
        guard lines.isEmpty else { throw malformed("nothing is expected after the codes.") }
        return (table, codes)
    }

    private mutating func slot(_ table: SlotTable) throws(DatabaseError) -> SlotTable.Slot {
        let words = try take("slot", 6)
        guard let kind = SlotTable.Kind(rawValue: String(words[2])) else {
            throw malformed("the kind of the slot is none of key, passphrase and program.")
        }
        guard words[3] == "use" || words[3] == "recovery" else {
            throw malformed("\"use\" or \"recovery\" is expected.")
        }
        guard isDay(words[4]) else { throw malformed("the day of the slot is none.") }
        guard SlotTable.isLabel(String(words[5])) else { throw malformed("the label of the slot is none.") }
        var slot = SlotTable.Slot(
            number: try integer(words[1], upTo: SlotTable.maximumNumber),
            kind: kind,
            isRecovery: words[3] == "recovery",
            created: String(words[4]),
            label: String(words[5]),
            wraps: []
        )
        while isNext("wrap") {
            let wrap = try wrap(kind)
            guard wrap.dataKey > slot.wraps.last?.dataKey ?? 0,
                table.dataKeys.contains(where: { $0.number == wrap.dataKey })
            else { throw malformed("a wrap is of a data key that is listed, and only of one.") }
            slot.wraps.append(wrap)
        }
        guard !slot.wraps.isEmpty else { throw malformed("the slot \(slot.label) wraps nothing.") }
        return slot
    }

    private mutating func wrap(_ kind: SlotTable.Kind) throws(DatabaseError) -> SlotTable.Wrap {
        let count =
            switch kind {
            case .key: 6
            case .passphrase: 9
            case .program: 4
            }
        let words = try take("wrap", count)
        let dataKey = try integer(words[1], upTo: SlotTable.maximumNumber)
        switch kind {
        case .program:
            // No valid text of this length is longer, so this also limits what is decoded.
            guard words[2] == "program", words[3].utf8.count <= KeyFile.sizeLimit * 4 / 3 + 4,
                let bytes = Data(base64Encoded: String(words[3])), (1...KeyFile.sizeLimit).contains(bytes.count)
            else { throw malformed("\"program\" and at most \(KeyFile.sizeLimit) bytes in base64 are expected.") }
            return .init(dataKey: dataKey, form: .program(Array(bytes)))
        case .key:
            guard words[2] == "hkdf-sha256" else {
                throw malformed("the slot of a key has the derivation hkdf-sha256.")
            }
            return .init(dataKey: dataKey, form: try sealed(.hkdf, words[3...]))
        case .passphrase:
            guard words[2] == "scrypt" else { throw malformed("the slot of a passphrase has the derivation scrypt.") }
            let scrypt = SlotTable.Scrypt(
                cost: try integer(words[3], upTo: Int(Int32.max)),
                blockSize: try integer(words[4], upTo: Int(Int32.max)),
                lanes: try integer(words[5], upTo: Int(Int32.max))
            )
            guard scrypt.isAcceptable else {
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .unsupported,
                    message: """
                        line \(number): a derivation of scrypt \(scrypt.cost) \(scrypt.blockSize) \(scrypt.lanes) is not made: \
                        the cost is a power of two from \(SlotTable.Scrypt.costs.lowerBound) to \
                        \(SlotTable.Scrypt.costs.upperBound), followed by 8 1.
                        """
                )
            }
            return .init(dataKey: dataKey, form: try sealed(.scrypt(scrypt), words[6...]))
        }
    }

    private func sealed(
        _ derivation: SlotTable.Derivation,
        _ words: ArraySlice<Substring>
    ) throws(DatabaseError) -> SlotTable.Wrap.Form {
        let words = Array(words)
        return .sealed(
            derivation,
            salt: try bytes(words[0], SlotTable.saltByteCount),
            nonce: try bytes(words[1], KeyWrapping.nonceByteCount),
            bytes: try bytes(words[2], KeyWrapping.sealedByteCount)
        )
    }

    // MARK: Words

    private func isNext(_ word: String) -> Bool { lines.first?.first.map { $0 == word } ?? false }

    private mutating func take(_ word: String, _ count: Int) throws(DatabaseError) -> [Substring] {
        number = lines.startIndex + 2
        guard isNext(word), let words = lines.popFirst(), words.count == count else {
            throw malformed("a line \"\(word)\" of \(count) words is expected.")
        }
        return words
    }

    /// Whether a word is written as a day is. It is only shown.
    private func isDay(_ word: Substring) -> Bool {
        let bytes = Array(word.utf8)
        return bytes.count == 10
            && bytes.enumerated().allSatisfy { position, byte in
                [4, 7].contains(position)
                    ? byte == UInt8(ascii: "-") : (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            }
    }

    private func integer(_ word: Substring, upTo limit: Int) throws(DatabaseError) -> Int {
        guard word.utf8.count <= 19, let value = Int(word), (1...limit).contains(value) else {
            throw malformed("a number from 1 to \(limit) is expected.")
        }
        return value
    }

    private func bytes(_ word: Substring, _ count: Int) throws(DatabaseError) -> [UInt8] {
        let digits = Array(word.utf8)
        guard digits.count == count * 2 else { throw malformed("\(count * 2) hex digits are expected.") }
        var result: [UInt8] = []
        result.reserveCapacity(count)
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Hexadecimal.value(of: digits[position]),
                let low = Hexadecimal.value(of: digits[position + 1])
            else { throw malformed("\(count * 2) hex digits are expected.") }
            result.append(high << 4 | low)
        }
        return result
    }

    private func malformed(_ message: String) -> DatabaseError { .malformedSlots("line \(number): \(message)") }
}
