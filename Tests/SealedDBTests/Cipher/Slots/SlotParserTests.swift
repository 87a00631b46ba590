import Foundation
import Testing

@testable import SealedDB

/// The text of slots before any code of it is checked: each rule by itself, as whoever knows the data key could break it.
@Suite(.hangLimit)
struct SlotParserTests {
    private typealias Slot = (kind: String, form: String)

    private static func digits(_ count: Int, _ start: Int) -> String {
        (0..<count).map { String(($0 * 7 + start) % 16, radix: 16) }.joined()
    }

    private static let sealed = "\(digits(64, 5)) \(digits(24, 6)) \(digits(96, 7))"
    private static let key: Slot = ("key use", "hkdf-sha256 \(sealed)")
    private static func passphrase(_ cost: Int) -> Slot { ("passphrase use", "scrypt \(cost) 8 1 \(sealed)") }
    private static func program(_ count: Int) -> Slot {
        ("program recovery", "program \(Data(repeating: 0x61, count: count).base64EncodedString())")
    }

    private static func text(dataKeys: [Int] = [1], _ slots: [Slot] = [key, passphrase(131_072), program(14)]) -> String
    {
        var text = "sealdb-slots 1\nstore \(digits(32, 1))\ngeneration 7\n"
        for key in dataKeys { text += "data-key \(key) \(digits(32, key))\n" }
        for (index, slot) in slots.enumerated() {
            text += "slot \(index + 1) \(slot.kind) 2026-11-24 label-\(index + 1)\n"
            for key in dataKeys { text += "wrap \(key) \(slot.form)\n" }
        }
        for key in dataKeys { text += "mac \(key) \(digits(64, key))\n" }
        return text
    }

    private func refusal(_ text: String) -> DatabaseError? {
        do throws(DatabaseError) {
            _ = try SlotsParser.parse(Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    private func without(_ start: String, _ text: String) -> String {
        text.split(separator: "\n").filter { !$0.hasPrefix(start) }.joined(separator: "\n") + "\n"
    }

    @Test func eachRuleHasItsWords() {
        let text = Self.text()
        #expect(refusal(text) == nil)
        for (old, new, words) in [
            ("sealdb-slots 1", "sealdb slots 1", "does not begin with"),
            ("generation 7", "generation 0", "line 3: a number from 1 to"),
            ("generation 7", "generation 4611686018427387904", "a number from 1 to 4611686018427387903"),
            ("generation 7", "generation 07", "not written as slots are"),
            ("store ", "store 0", "line 2: 32 hex digits"), ("store 1", "store g", "line 2: 32 hex digits"),
            ("slot 3 ", "slot 1000000 ", "a number from 1 to 999999"), ("slot 3 ", "slot 2 ", "a slot occurs again"),
            ("label-3", "label-2", "a slot occurs again"),
            ("label-1", "la/bel", "line 5: the label of the slot is none"),
            ("label-1", "label-1 more", "line 5: a line \"slot\" of 6 words"),
            ("label-1", "label\u{7f}1", "a character that none has"),
            ("label-1", "label\u{1f}1", "a character that none has"),
            ("2026-11-24 label-2", "2026-11-2x label-2", "the day of the slot is none"),
            ("2026-11-24 label-2", "2026/11-24 label-2", "the day of the slot is none"),
            ("2026-11-24 label-2", "2026-11/24 label-2", "the day of the slot is none"),
            ("2026-11-24 label-2", "2026-11-2 label-2", "the day of the slot is none"),
            ("2026-11-24 label-2", "2026-11-240 label-2", "the day of the slot is none"),
            ("1 key use", "1 key any", "\"use\" or \"recovery\" is expected"),
            ("1 key use", "1 thing use", "none of key, passphrase and program"),
            ("hkdf-sha256", "hkdf-sha512", "line 6: the slot of a key has the derivation hkdf-sha256"),
            ("scrypt 131072", "bcrypt 131072", "line 8: the slot of a passphrase has the derivation scrypt"),
            ("wrap 1 program", "wrap 1 problem", "line 10: \"program\" and at most 4096 bytes"),
            ("wrap 1 hkdf", "wrap 2 hkdf", "line 6: a wrap is of a data key that is listed"),
            ("\nmac 1 ", "\nmac 2 ", "the code of data key 1 is expected"),
        ] {
            let changed = text.replacingOccurrences(of: old, with: new)
            let error = refusal(changed)
            #expect(changed != text && error?.reason == .malformedSlots, "\(new)")
            #expect(error?.message.contains(words) == true, "\(new): \(error as Any)")
        }
        #expect(refusal(text + "slot 9\n")?.message.contains("nothing is expected after the codes") == true)
        #expect(refusal(without("wrap 1 program", text))?.message.contains("label-3 wraps nothing") == true)
    }

    /// What is just allowed is read.
    @Test func limits() {
        let text = Self.text()
        func changed(_ old: String, _ new: String) -> String { text.replacingOccurrences(of: old, with: new) }
        #expect(refusal(changed("generation 7", "generation 4611686018427387903")) == nil)
        #expect(refusal(changed("slot 3 ", "slot 999999 ")) == nil)
        let longest = String(repeating: "x", count: 64)
        #expect(refusal(changed("label-1", longest)) == nil)
        #expect(refusal(changed("label-1", longest + "x"))?.message.contains("the label") == true)
        #expect(refusal(changed("label-1", "azAZ09.-_")) == nil)
        let lines = "sealdb-slots 1" + String(repeating: "\n", count: 200)
        #expect(refusal(lines)?.message.contains("a line \"store\"") == true)
        #expect(refusal(lines + "\n")?.message.contains("more lines than slots can have") == true)
    }

    @Test func whatAProgramMayHavePrinted() {
        for count in [1, 4096] { #expect(refusal(Self.text([Self.program(count)])) == nil, "\(count)") }
        for count in [0, 4097] {
            let error = refusal(Self.text([Self.program(count)]))
            #expect(error?.message.contains("at most 4096 bytes") == true, "\(count): \(error as Any)")
        }
    }

    /// A file that anybody may have put there costs no more than two derivations.
    @Test func costsOfAllPassphrases() {
        func refusal(_ costs: Int...) -> DatabaseError? { self.refusal(Self.text(costs.map(Self.passphrase))) }
        #expect(refusal(1 << 15) == nil && refusal(1 << 20) == nil && refusal(1 << 20, 1 << 17) == nil)
        for costs in [(1 << 20, 1 << 18), (1 << 20, 1 << 20)] {
            let error = refusal(costs.0, costs.1)
            #expect(error?.reason == .unsupported && error?.message.contains("together") == true, "\(costs)")
        }
        #expect(refusal(1 << 20, 1 << 17, 1 << 15)?.reason == .unsupported)
    }

    @Test func dataKeys() {
        #expect(refusal(Self.text(dataKeys: [1, 2])) == nil && refusal(Self.text(dataKeys: [3, 7])) == nil)
        for keys in [[], [1, 2, 3]] {
            #expect(refusal(Self.text(dataKeys: keys))?.message.contains("one or two data keys") == true, "\(keys)")
        }
        for keys in [[2, 1], [1, 1]] {
            #expect(refusal(Self.text(dataKeys: keys))?.message.contains("a data key occurs again") == true, "\(keys)")
        }
        let both = Self.text(dataKeys: [1, 2])
        let salts = both.replacingOccurrences(
            of: "data-key 2 \(Self.digits(32, 2))",
            with: "data-key 2 \(Self.digits(32, 1))"
        )
        #expect(refusal(salts)?.message.contains("a data key occurs again") == true)
        #expect(refusal(without("wrap 2 ", both))?.message.contains("no slot has the data key 2") == true)
    }

    /// Under one data key a label is that of one slot.
    @Test func labelsOfTwoDataKeys() {
        let both = Self.text(dataKeys: [1, 2]).replacingOccurrences(of: "label-2", with: "label-1")
        #expect(refusal(both)?.message.contains("a slot occurs again") == true)
        #expect(refusal(without("wrap 1 scrypt", both))?.message.contains("a slot occurs again") == true)
        #expect(refusal(without("wrap 2 hkdf", without("wrap 1 scrypt", both))) == nil)
    }

    @Test func wrapsAreInTheOrderOfTheirDataKeys() {
        let form = Self.program(14).form
        let both = Self.text(dataKeys: [1, 2], [Self.program(14)])
        for wraps in ["wrap 2 \(form)\nwrap 1 \(form)\n", "wrap 1 \(form)\nwrap 1 \(form)\nwrap 2 \(form)\n"] {
            let changed = both.replacingOccurrences(of: "wrap 1 \(form)\nwrap 2 \(form)\n", with: wraps)
            #expect(changed != both)
            #expect(refusal(changed)?.message.contains("a wrap is of a data key") == true, "\(wraps)")
        }
    }

    // MARK: Tables

    private func slot(_ number: Int, _ kind: SlotTable.Kind) -> SlotTable.Slot {
        SlotTable.Slot(
            number: number,
            kind: kind,
            isRecovery: false,
            created: "2026-11-24",
            label: "label-\(number)",
            wraps: []
        )
    }

    /// There is room for one more only while it takes another's place.
    @Test(arguments: [(SlotTable.Kind.key, 32), (.program, 32), (.passphrase, 8)])
    func slotsOfATable(kind: SlotTable.Kind, most: Int) throws {
        var table = SlotTable(store: [], generation: 1, dataKeys: [], slots: [])
        for number in 1...most { try table.append(slot(number, kind)) }
        var more = table
        let error = #expect(throws: DatabaseError.self) { try more.append(slot(most + 1, kind)) }
        #expect(error?.reason == .notAllowed)
        try table.append(slot(most + 1, kind), isReplacement: true)
        let beyond = #expect(throws: DatabaseError.self) { try table.append(slot(most + 2, kind), isReplacement: true) }
        #expect(beyond?.reason == .notAllowed)
    }
}
