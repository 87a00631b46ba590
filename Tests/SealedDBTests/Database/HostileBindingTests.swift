import Foundation
import SealedDB
import Testing

/// Values whose `bind(to:)` does not what it should: whatever it does, a statement has the values of this call or none.
@Suite(.hangLimit)
struct HostileBindingTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate("CREATE TABLE t (a, b, c)")
    }

    private struct Failure: Error {}

    /// What one value does.
    private enum Act: CaseIterable {
        case text, blob, long, null, number, nothing, twice, throwing, swallowing, sameSQL, sameSet, sameSetBadly,
            closing
    }

    private final class Deed: Bindable {
        let act: Act
        let text: String
        unowned(unsafe) let database: Database
        var set: ResultSet?
        /// For the round within the round.
        var isNested = false

        init(_ act: Act, _ text: String, _ database: Database, _ set: ResultSet?) {
            (self.act, self.text, self.database, self.set) = (act, text, database, set)
        }

        /// What the column has to be; `nil` if the call has to fail.
        var expected: SQLValue? {
            switch act {
            case .text, .twice, .sameSQL: .text(text)
            case .blob: .blob(Data(text.utf8))
            case .long: .text(String(repeating: text, count: 2000))
            case .null: .null
            case .number: .integer(Int64(text.count))
            case .nothing, .throwing, .swallowing, .sameSet, .sameSetBadly, .closing: nil
            }
        }

        func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
            switch act {
            case .text: try slot.bind(text)
            case .blob: try [UInt8](text.utf8).bind(to: slot)
            case .long: try slot.bind(String(repeating: text, count: 2000))
            case .null: try slot.bindNull()
            case .number: try slot.bind(Int64(text.count))
            case .nothing: break
            case .twice:
                try slot.bind("not this one, which is longer than the other")
                try slot.bind(text)
            case .throwing:
                try slot.bind(text)
                throw slot.mismatch(Deed.self, "throws")
            case .swallowing: _ = try? slot.mismatch(Deed.self, "is kept").raise()
            case .sameSQL:
                try database.executeUpdate("SELECT ?, ?, ?", "another", "use of", "the text")
                try slot.bind(text)
            case .sameSet, .sameSetBadly:
                if let set, !isNested {
                    isNested = true
                    if act == .sameSet { try set.bind("inner", "inner", "inner") } else { try? set.bind("inner") }
                }
                if act == .sameSetBadly || text.count.isMultiple(of: 2) { try slot.bind(text) }
            case .closing:
                set?.close()
                try? slot.bind(text)
            }
        }
    }

    /// Random values in random ways, against what was given.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func randomRounds(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var set = try database.prepare("SELECT ?, ?, ?")
        for round in 0..<400 {
            if set.statement == nil { set = try database.prepare("SELECT ?, ?, ?") }
            let usesSet = Bool.random(using: &generator)
            let deeds = (0..<3).map { _ in
                // Mostly such as bind something: a round of three that works is rare otherwise.
                let works: [Act] = [.text, .blob, .long, .null, .number, .twice, .sameSQL]
                let isHostile = Int.random(in: 0..<4, using: &generator) == 0
                let act = (isHostile ? Act.allCases : works).randomElement(using: &generator)!
                let letters = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                    "abcdefgh".randomElement(using: &generator)!
                }
                return Deed(act, String(letters), database, usesSet ? set : nil)
            }
            let expected = deeds.map(\.expected)
            // Without a set to bind to, or to close, these two are like others.
            let mustFail = deeds.contains { deed in
                switch deed.act {
                case .sameSet: usesSet || !deed.text.count.isMultiple(of: 2)
                case .sameSetBadly, .closing: usesSet
                default: deed.expected == nil
                }
            }
            let comment: Comment = "seed \(seed), round \(round): \(deeds.map(\.act)), \(usesSet)"
            var rows: [[SQLValue]]?
            if usesSet {
                rows = try? read(set, deeds, Int.random(in: 0..<3, using: &generator))
                // It must not run with what is left of a round that failed.
                if rows == nil { #expect(!set.next(), comment) }
            } else {
                rows = try? read(try database.executeQuery("SELECT ?, ?, ?", deeds[0], deeds[1], deeds[2]))
            }
            #expect((rows == nil) == mustFail, comment)
            guard let rows, !mustFail else { continue }
            for (value, (deed, expected)) in zip(rows[0], zip(deeds, expected)) {
                #expect(value == expected ?? .text(deed.text), comment)
            }
            for deed in deeds { deed.set = nil }
        }
    }

    private func read(_ set: ResultSet, _ deeds: [Deed], _ way: Int) throws -> [[SQLValue]] {
        switch way {
        case 0: try set.bind(deeds[0], deeds[1], deeds[2])
        case 1: guard set.bind(with: deeds) else { throw Failure() }
        default: try set.bind(deeds[0], deeds[1], deeds[2])
        }
        return try read(set)
    }

    private func read(_ set: ResultSet) throws -> [[SQLValue]] {
        var rows: [[SQLValue]] = []
        while try set.nextWithError() {
            rows.append(try (0..<3).map { index in try set.value(SQLValue.self, forColumnIndex: index) })
        }
        return rows
    }

    /// The bytes of one value under the pointer of another one.
    @Test func nothingKeepsNothing() throws {
        enum Note: Bindable {
            case text(String), nothing
            func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
                if case .text(let text) = self { try slot.bind(text) }
            }
        }
        let insert = try database.prepare("INSERT INTO t (a, b) VALUES (?, ?)")
        try insert.bind(Note.text("AAAAAAAA"), "x")
        try insert.stepWithError()
        let error = #expect(throws: DatabaseError.self) { try insert.bind(Note.nothing, "secret") }
        #expect(error?.reason == .misuse)
        #expect(error?.message.contains("parameter 1 bound nothing") == true)
        #expect(throws: DatabaseError.self) { try insert.stepWithError() }
        #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t (a, b) VALUES (?, ?)", "x", Note.nothing)
        }
        #expect(throws: DatabaseError.self) {
            try database.executeQuery("SELECT ?, ?", "x", Note.nothing)
        }
        #expect(!database.executeUpdate("INSERT INTO t (a) VALUES (?)", withArgumentsIn: [Note.nothing]))
        #expect(!database.executeUpdate("INSERT INTO t (a) VALUES (:a)", withParameterDictionary: ["a": Note.nothing]))
        #expect(throws: DatabaseError.self) { try database.executeUpdate("INSERT INTO t (a) VALUES (\(Note.nothing))") }
        #expect(throws: DatabaseError.self) {
            try database.executeUpdate("INSERT INTO t (a) VALUES (?)", Optional(Note.nothing))
        }
        #expect(try database.executeQuery("SELECT a FROM t").all(String.self) == ["AAAAAAAA"])
        #expect(!database.hasOpenResultSets || insert.statement != nil)
    }

    /// It is not the same mistake as a value that binds nothing, and is told as what it is.
    @Test func aRoundWithinTheRound() throws {
        let set = try database.prepare("SELECT ?, ?, ?")
        let error = #expect(throws: DatabaseError.self) {
            try set.bind(Deed(.sameSet, "even", database, set), "x", "y")
        }
        #expect(error?.reason == .misuse && error?.message.contains("bound other values") == true, "\(error as Any)")
        #expect(!set.next())
    }

    /// With more parameters than there are bits in a word.
    @Test func manyParameters() throws {
        struct Nothing: Bindable {
            func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {}
        }
        let sql = "SELECT " + String(repeating: "?, ", count: 199) + "?"
        for gap in [0, 1, 63, 64, 65, 128, 199] {
            var values: [Any] = (0..<200).map { "value \($0)" }
            #expect(database.executeQuery(sql, withArgumentsIn: values)?.next() == true)
            values[gap] = Nothing()
            #expect(database.executeQuery(sql, withArgumentsIn: values) == nil)
            #expect(database.lastErrorMessage().contains("parameter \(gap + 1) bound nothing"))
        }
    }
}

extension DatabaseError {
    fileprivate func raise() throws(DatabaseError) { throw self }
}
