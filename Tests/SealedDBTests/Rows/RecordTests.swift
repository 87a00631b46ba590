import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct RecordTests {
    private struct Person: Codable, Equatable {
        var id: Int?
        var name: String
        var email: String?
    }

    private let database: Database

    init() throws {
        database = try Database.testing(nil)
        try database.executeUpdate(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE DEFAULT 'none')"
        )
    }

    private func people() throws -> [Person] {
        try database.executeQuery("SELECT * FROM person ORDER BY id").all(Person.self)
    }

    private struct Twice: Codable {
        var id: Int?
        var Name = "one"
        var name = "two"
    }

    /// SQLite takes both, and drops one.
    @Test func twoPropertiesOfOneColumn() throws {
        let error = #expect(throws: DatabaseError.self) { try database.insert(Twice(), into: "person") }
        #expect(error?.reason == .typeMismatch && error?.message.contains("two of its properties") == true)
        #expect(try people() == [])
    }

    @Test func insert() throws {
        #expect(try database.insert(Person(name: "Ada"), into: "person") == 1)
        #expect(try database.insert(Person(id: 7, name: "x'); --", email: "e"), into: "person") == 7)
        // nil is NULL, not the column's default.
        #expect(try people() == [Person(id: 1, name: "Ada"), Person(id: 7, name: "x'); --", email: "e")])
        let error = #expect(throws: DatabaseError.self) {
            try database.insert(Person(name: "Eve", email: "e"), into: "person")
        }
        #expect(error?.extendedCode == SQLITE_CONSTRAINT_UNIQUE)
        #expect(database.lastInsertRowId == 7)
        #expect(throws: DatabaseError.self) { try database.insert(Person(name: "Eve"), into: "nowhere") }
        #expect(throws: DatabaseError.self) { try database.insert(["name": "Eve", "age": "5"], into: "person") }
        #expect(try people().count == 2)
    }

    @Test func rowIDIsNeverThatOfAnEarlierRow() throws {
        try database.executeUpdate("CREATE TABLE quiet (name TEXT UNIQUE ON CONFLICT IGNORE)")
        try database.executeUpdate("CREATE TABLE keyed (name TEXT PRIMARY KEY) WITHOUT ROWID")
        #expect(try database.insert(["name": "a"], into: "quiet") == 1)
        #expect(try database.insert(["name": "b"], into: "quiet") == 2)
        #expect(try database.insert(["name": "a"], into: "quiet") == 0)
        #expect(try database.insert(["name": "a"], into: "keyed") == 0)
        #expect(database.lastInsertRowId == 2)
    }

    @Test func update() throws {
        try database.insert(Person(name: "Ada", email: "a"), into: "person")
        try database.insert(Person(name: "Bob", email: "b"), into: "person")
        #expect(try database.update(Person(id: 2, name: "Bo"), in: "person"))
        #expect(try people() == [Person(id: 1, name: "Ada", email: "a"), Person(id: 2, name: "Bo")])
        #expect(try database.update(Person(id: 3, name: "Eve"), in: "person") == false)
        #expect(try database.update(Person(id: nil, name: "Eve"), in: "person") == false)
        #expect(try people().count == 2)
    }

    @Test func updateNeedsAKey() throws {
        func message(_ value: some Encodable, _ table: String) -> String? {
            #expect(throws: DatabaseError.self) { try database.update(value, in: table) }?.message
        }
        try database.executeUpdate("CREATE TABLE keyless (id, name)")
        #expect(message(Person(name: "a"), "keyless")?.contains("has no primary key") == true)
        #expect(message(Person(name: "a"), "nowhere")?.contains("no such table: nowhere") == true)
        #expect(message(["name": "a"], "person")?.contains("no property for \"id\"") == true)
        #expect(message(["id": 1], "person")?.contains("no property beside the primary key") == true)
    }

    @Test func keysOfSeveralColumns() throws {
        struct Membership: Codable, Equatable {
            var userID: Int
            var groupID: Int
            var role: String?
        }
        database.columnNaming = .snakeCase
        try database.executeUpdate(
            "CREATE TABLE membership (role, GROUP_ID, user_id, PRIMARY KEY (user_id, group_id)) WITHOUT ROWID"
        )
        try database.insert(Membership(userID: 1, groupID: 2, role: "a"), into: "membership")
        try database.insert(Membership(userID: 2, groupID: 1, role: "b"), into: "membership")
        #expect(try database.update(Membership(userID: 2, groupID: 1, role: "c"), in: "membership"))
        try database.upsert(Membership(userID: 1, groupID: 2, role: "d"), into: "membership")
        try database.upsert(Membership(userID: 3, groupID: 3), into: "membership")
        #expect(
            try database.executeQuery("SELECT * FROM membership").all(Membership.self) == [
                Membership(userID: 1, groupID: 2, role: "d"), Membership(userID: 2, groupID: 1, role: "c"),
                Membership(userID: 3, groupID: 3),
            ]
        )
    }

    /// What returns without an error is stored.
    @Test func anUpsertThatTheTableWouldIgnore() throws {
        struct Row: Codable, Equatable { var id: Int, e: String, v: String? }
        try database.execute(
            script:
                """
                CREATE TABLE strict_one (
                    id INTEGER PRIMARY KEY, e TEXT UNIQUE ON CONFLICT IGNORE, v TEXT NOT NULL ON CONFLICT IGNORE
                );
                CREATE TABLE watched (id INTEGER PRIMARY KEY, e, v);
                CREATE TRIGGER watch BEFORE INSERT ON watched BEGIN SELECT RAISE(IGNORE) WHERE NEW.e = 'no'; END;
                """
        )
        let old = Row(id: 1, e: "x", v: "old")
        try database.upsert(old, into: "strict_one")
        #expect(throws: DatabaseError.self) { try database.upsert(Row(id: 3, e: "x", v: "NEW"), into: "strict_one") }
        #expect(throws: DatabaseError.self) { try database.upsert(Row(id: 1, e: "x", v: nil), into: "strict_one") }
        #expect(try database.executeQuery("SELECT * FROM strict_one").all(Row.self) == [old])
        try database.upsert(old, into: "watched")
        #expect(throws: DatabaseError.self) { try database.upsert(Row(id: 1, e: "no", v: ""), into: "watched") }
        #expect(try database.executeQuery("SELECT * FROM watched").all(Row.self) == [old])
    }

    /// In the statement, SQLite's name for the new row would stand for the table's own.
    @Test(arguments: ["excluded", "EXCLUDED"]) func anUpsertIntoATableNamedExcluded(table: String) throws {
        try database.executeUpdate("CREATE TABLE \(identifier: table) (name TEXT, email TEXT, id INTEGER PRIMARY KEY)")
        try database.upsert(Person(id: 1, name: "old"), into: table)
        try database.upsert(Person(id: 1, name: "new", email: "e"), into: table)
        let stored = try database.executeQuery("SELECT * FROM \(identifier: table)").all(Person.self)
        #expect(stored == [Person(id: 1, name: "new", email: "e")])
    }

    /// One that is there counts as stored, one that a trigger ignores does not.
    @Test func anUpsertOfAKeyAlone() throws {
        struct Tag: Codable, Equatable { var name: String }
        try database.execute(
            script: """
                CREATE TABLE tag (name TEXT PRIMARY KEY);
                CREATE TRIGGER watch BEFORE INSERT ON tag BEGIN SELECT RAISE(IGNORE) WHERE NEW.name = 'no'; END;
                """
        )
        for _ in 0..<2 { try database.upsert(Tag(name: "yes"), into: "tag") }
        let error = #expect(throws: DatabaseError.self) { try database.upsert(Tag(name: "no"), into: "tag") }
        #expect(error?.message.contains("ignored the row") == true, "\(error as Any)")
        #expect(try database.executeQuery("SELECT name FROM tag").all(String.self) == ["yes"])
        // Also where the key compares otherwise than its column.
        try database.executeUpdate("CREATE TABLE folded (name TEXT, PRIMARY KEY (name COLLATE NOCASE))")
        for name in ["a", "A"] { try database.upsert(Tag(name: name), into: "folded") }
        #expect(try database.executeQuery("SELECT name FROM folded").all(String.self) == ["a"])
    }

    @Test func upsert() throws {
        try database.upsert(Person(name: "Ada"), into: "person")
        try database.upsert(Person(id: 1, name: "Ada L", email: "a"), into: "person")
        #expect(try people() == [Person(id: 1, name: "Ada L", email: "a")])
        #expect(throws: DatabaseError.self) { try database.upsert(Person(name: "B", email: "a"), into: "person") }
        try database.executeUpdate("CREATE TABLE tag (name TEXT PRIMARY KEY)")
        try database.upsert(["name": "a"], into: "tag")
        try database.upsert(["name": "a"], into: "tag")
        #expect(try database.executeQuery("SELECT name FROM tag").all(String.self) == ["a"])
        try database.executeUpdate("CREATE TABLE keyless (name)")
        #expect(throws: DatabaseError.self) { try database.upsert(["name": "a"], into: "keyless") }
        #expect(throws: DatabaseError.self) { try database.upsert([String: Int](), into: "person") }
    }

    @Test func namesAreQuoted() throws {
        struct Odd: Codable, Equatable {
            var key: Int
            var text: String
            enum CodingKeys: String, CodingKey {
                case key = "k`ey"
                case text = "te\"xt; DROP"
            }
        }
        let table = "o`dd\" ta'ble"
        try database.executeUpdate(
            "CREATE TABLE \(identifier: table) (\(identifier: "k`ey") PRIMARY KEY, \(identifier: "te\"xt; DROP"))"
        )
        try database.insert(Odd(key: 1, text: "a"), into: table)
        #expect(try database.update(Odd(key: 1, text: "b"), in: table))
        try database.upsert(Odd(key: 1, text: "c"), into: table)
        #expect(
            try database.executeQuery("SELECT * FROM \(identifier: table)").all(Odd.self) == [Odd(key: 1, text: "c")]
        )
        #expect(throws: DatabaseError.self) { try database.insert(Odd(key: 1, text: "a"), into: "person\0x") }
    }

    @Test func whatIsNoRow() throws {
        struct Empty: Codable {}
        struct Nested: Encodable {
            enum CodingKeys: CodingKey { case name }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                var nested = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .name)
                try nested.encode(1, forKey: .name)
            }
        }
        struct Failing: Encodable {
            struct Failure: Error {}
            func encode(to encoder: any Encoder) throws { throw Failure() }
        }
        let own = #expect(throws: DatabaseError.self) { try database.insert(Failing(), into: "person") }
        #expect(own?.underlyingError is Failing.Failure)
        struct Unknowable: Encodable { var name = [Double.nan] }
        try database.executeUpdate("CREATE TABLE plain (name DEFAULT 'd')")
        #expect(try database.insert(Empty(), into: "plain") == 1)
        #expect(try database.executeQuery("SELECT name FROM plain").scalar(String.self) == "d")
        for call in [
            { try database.insert(5, into: "plain") }, { try database.insert([1, 2], into: "plain") },
            { try database.insert(Nested(), into: "plain") }, { try database.insert(Unknowable(), into: "plain") },
        ] as [() throws -> Int64] {
            let error = #expect(throws: DatabaseError.self) { _ = try call() }
            #expect(error?.reason == .typeMismatch)
            #expect(database.lastErrorMessage() == error?.message)
        }
        #expect(try database.executeQuery("SELECT count(*) FROM plain").scalar(Int.self) == 1)
    }

    @Test func rowsByTheirPrimaryKey() throws {
        try database.insert(Person(id: 7, name: "Ada"), into: "person")
        try database.insert(Person(id: 8, name: "Bob"), into: "person")
        #expect(try database.find(Person.self, in: "person", key: 7) == Person(id: 7, name: "Ada"))
        #expect(try database.find(Person.self, in: "person", key: 9) == nil)
        #expect(try database.exists(in: "person", key: 8))
        #expect(try !database.exists(in: "person", key: 9))
        #expect(try database.delete(from: "person", key: 8))
        #expect(try !database.delete(from: "person", key: 8))
        #expect(try people() == [Person(id: 7, name: "Ada")])
    }

    @Test func rowsByAKeyOfSeveralColumns() throws {
        struct Place: Codable, Equatable {
            var row: String
            var seat: Int
            var guest: String
        }
        // The order of the key is not that of the columns.
        try database.executeUpdate(
            "CREATE TABLE `a place` (seat INT, row TEXT, guest TEXT, PRIMARY KEY (row, seat)) WITHOUT ROWID"
        )
        for (row, seat) in [("a", 1), ("a", 2), ("b", 1)] {
            try database.insert(Place(row: row, seat: seat, guest: row + "\(seat)"), into: "a place")
        }
        #expect(try database.find(Place.self, in: "a place", key: "a", 2)?.guest == "a2")
        #expect(try database.exists(in: "a place", key: "b", 1))
        #expect(try !database.exists(in: "a place", key: "b", nil as Int?))
        #expect(try database.delete(from: "a place", key: "a", 1))
        #expect(try database.executeQuery("SELECT guest FROM `a place`").all(String.self).sorted() == ["a2", "b1"])
        for (table, message) in [("a place", "1 values were given"), ("nowhere", "no such table")] {
            let error = #expect(throws: DatabaseError.self) { try database.delete(from: table, key: "a") }
            #expect(error?.message.contains(message) == true)
        }
        try database.executeUpdate("CREATE TABLE heap (a)")
        #expect(throws: DatabaseError.self) { try database.exists(in: "heap", key: 1) }
    }

    /// "No such row" would be wrong.
    @Test(arguments: [false, true]) func changesThatTheTableIgnores(inTransaction: Bool) throws {
        struct Row: Codable, Equatable { var id: Int, name: String }
        try database.execute(
            script: """
                CREATE TABLE kept (id INTEGER PRIMARY KEY, name UNIQUE ON CONFLICT IGNORE);
                INSERT INTO kept VALUES (1, 'a'), (2, 'b');
                CREATE TABLE log (what);
                CREATE TRIGGER keep BEFORE DELETE ON kept WHEN old.id = 1 BEGIN SELECT RAISE(IGNORE); END;
                CREATE TRIGGER same BEFORE UPDATE ON kept WHEN old.id = 1 BEGIN
                    INSERT INTO log VALUES ('update'); SELECT RAISE(IGNORE);
                END;
                """
        )
        if inTransaction { #expect(database.beginImmediateTransaction()) }
        func expectIgnored(_ change: () throws -> Bool) {
            let error = #expect(throws: DatabaseError.self) { try change() }
            #expect(error?.code == SQLITE_CONSTRAINT && error?.message.contains("is there, but") == true)
            #expect(database.lastErrorCode() == SQLITE_CONSTRAINT && database.isInTransaction == inTransaction)
        }
        expectIgnored { try database.update(Row(id: 1, name: "z"), in: "kept") }
        expectIgnored { try database.update(Row(id: 2, name: "a"), in: "kept") }
        expectIgnored { try database.delete(from: "kept", key: 1) }
        #expect(try database.update(Row(id: 3, name: "z"), in: "kept") == false)
        #expect(try database.delete(from: "kept", key: 3) == false)
        let rows = try database.executeQuery("SELECT * FROM kept").all(Row.self)
        #expect(rows == [Row(id: 1, name: "a"), Row(id: 2, name: "b")])
        // Not once more for having looked.
        #expect(try database.executeQuery("SELECT count(*) FROM log").scalar(Int.self) == 1)
        #expect(try database.update(Row(id: 2, name: "c"), in: "kept"))
        #expect(try database.delete(from: "kept", key: 2))
    }

    /// Another connection inserts the row after this one has not found it, and before it looks again.
    @Test func aRowThatComesMeanwhile() throws {
        let directory = try TemporaryDirectory()
        let database = try Database.testing(directory.file("db"))
        try database.executeUpdate("CREATE TABLE person (id INTEGER PRIMARY KEY, name, email)")
        let other = try Database.testing(directory.file("db"))
        var hasCome = false
        database.authorizer = { request in
            if request.action == .select, !hasCome {
                hasCome = true
                #expect(throws: Never.self) { try other.insert(Person(id: 1, name: "theirs"), into: "person") }
            }
            return .allow
        }
        #expect(try database.update(Person(id: 1, name: "ours"), in: "person"))
        #expect(hasCome && !database.isInTransaction)
        #expect(try other.find(Person.self, in: "person", key: 1) == Person(id: 1, name: "ours"))
    }

    // MARK: Types that are one of several

    /// A type that finds out what it is by trying one type after another, as those do that hold any JSON.
    private enum AnyJSON: Codable, Equatable {
        case truth(Bool), integer(Int), number(Double), text(String), list([AnyJSON]), object([String: AnyJSON])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let truth = try? value.decode(Bool.self) {
                self = .truth(truth)
            } else if let integer = try? value.decode(Int.self) {
                self = .integer(integer)
            } else if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let list = try? value.decode([AnyJSON].self) {
                self = .list(list)
            } else {
                self = .object(try value.decode([String: AnyJSON].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .truth(let truth): try value.encode(truth)
            case .integer(let integer): try value.encode(integer)
            case .number(let number): try value.encode(number)
            case .text(let text): try value.encode(text)
            case .list(let list): try value.encode(list)
            case .object(let object): try value.encode(object)
            }
        }
    }

    /// The same, but the longer forms are tried first.
    private enum ListOrText: Codable, Equatable {
        case list([Int]), text(String)

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let list = try? value.decode([Int].self) {
                self = .list(list)
            } else {
                self = .text(try value.decode(String.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .list(let list): try list.encode(to: encoder)
            case .text(let text): try text.encode(to: encoder)
            }
        }
    }

    private enum SignedOrNot: Codable, Equatable {
        case signed(Int64), unsigned(UInt64)

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let signed = try? value.decode(Int64.self) {
                self = .signed(signed)
            } else {
                self = .unsigned(try value.decode(UInt64.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .signed(let signed): try value.encode(signed)
            case .unsigned(let unsigned): try value.encode(unsigned)
            }
        }
    }

    private struct Holder<Value: Codable & Equatable>: Codable, Equatable {
        var value: Value
    }

    /// Whether what is inserted is found again. An error of the insertion is none; what is found must be equal.
    private func comesBack<Value: Codable & Equatable>(_ value: Value) throws -> Bool {
        try database.execute(script: "DROP TABLE IF EXISTS any_value; CREATE TABLE any_value (value)")
        do {
            try database.insert(Holder(value: value), into: "any_value")
        } catch {
            #expect(error.reason == .typeMismatch && error.message.contains("Make the property a JSON<"), "\(error)")
            #expect(try database.integers("SELECT count(*) FROM any_value") == [0])
            return false
        }
        let found = try database.executeQuery("SELECT value FROM any_value").all(Holder<Value>.self)
        #expect(found == [Holder(value: value)])
        return true
    }

    /// What a column does not tell apart is refused. JSON tells it apart.
    @Test func typesThatTryOthers() throws {
        let kept: [AnyJSON] = [
            .truth(true), .truth(false), .integer(2), .integer(-1), .integer(.max), .number(1.5), .number(0), .text(""),
            .text("[1]"), .text("1"), .text("true"),
        ]
        for value in kept { #expect(try comesBack(value), "\(value)") }
        let refused: [AnyJSON] = [
            .integer(0), .integer(1), .list([]), .list([.integer(1)]), .object(["a": .integer(1)]),
        ]
        for value in refused { #expect(try !comesBack(value), "\(value)") }
        for value in kept + refused where value != .number(0) { #expect(try comesBack(JSON(value)), "\(value)") }

        for value in [ListOrText.list([]), .list([1, 2]), .text("a"), .text("[a]"), .text("{}"), .text(" 1")] {
            #expect(try comesBack(value), "\(value)")
        }
        for value in [ListOrText.text("[1]"), .text(" [ ]")] { #expect(try !comesBack(value), "\(value)") }

        for value in [SignedOrNot.signed(-1), .signed(5)] { #expect(try comesBack(value)) }
        #expect(try !comesBack(SignedOrNot.unsigned(.max)))
    }

    private enum Level: Int, Codable { case low, high, top }

    private struct Flag: Codable, Equatable {
        var isOn: Bool

        init(isOn: Bool) { self.isOn = isOn }
        init(from decoder: any Decoder) throws { isOn = try decoder.singleValueContainer().decode(Bool.self) }
        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            try value.encode(isOn)
        }
    }

    /// Types of one kind are stored as before.
    @Test func typesOfOneKind() throws {
        for level in [Level.low, .high, .top] { #expect(try comesBack(level)) }
        for isOn in [false, true] { #expect(try comesBack(Flag(isOn: isOn))) }
        for list in [[], ["[1]"]] { #expect(try comesBack(list)) }
        #expect(try comesBack(["a": [1.5]]))
        #expect(try comesBack(Date(timeIntervalSince1970: 1)))
        for number in [0, 1, -1] { #expect(try comesBack(Decimal(number))) }
    }

    /// A type that tries a truth value first would take every number for one.
    @Test func numbersAreNoTruthValuesOfATypeOfOnesOwn() throws {
        #expect(
            try database.executeQuery("SELECT 5 AS value").all(Holder<AnyJSON>.self) == [Holder(value: .integer(5))]
        )
        #expect(throws: DatabaseError.self) { try database.executeQuery("SELECT 5 AS value").all(Holder<Flag>.self) }
        #expect(try database.executeQuery("SELECT 5 AS value").all(Holder<Bool>.self) == [Holder(value: true)])
    }
}
