import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct FunctionTests {
    private struct Refused: Error, Equatable { let secret: String }

    @Test func argumentsAndResultsKeepTypeAndValue() throws {
        let database = try Database.testing(nil)
        try database.addFunction("echo", argumentCount: 1) { $0[0] }
        let values: [(Any, SQLValue)] = [
            (NSNull(), nil), (Int64.min, .integer(.min)), (Int64.max, .integer(.max)), (-0.5, -0.5),
            ("a\0b", "a\0b"), ("", ""), ("æ🦭", "æ🦭"), (Data([0, 255]), .blob(Data([0, 255]))), (Data(), .blob(Data())),
        ]
        for (bound, expected) in values { #expect(try database.value("SELECT echo(?)", [bound]) == expected) }
        #expect(try database.value("SELECT typeof(echo(x''))") == "blob")
        #expect(try database.value("SELECT echo(9e999)") == .real(.infinity))
    }

    @Test func literalsAndConversions() throws {
        let database = try Database.testing(nil)
        try database.addFunction("one") { _ in 1 }
        try database.addFunction("half") { _ in 0.5 }
        try database.addFunction("yes") { _ in true }
        try database.addFunction("none") { _ in nil }
        try database.addFunction("word") { arguments in "w\(arguments.count)" }
        try database.addFunction("unsigned") { _ in SQLValue(UInt64.max) }
        try database.addFunction("optional") { arguments in SQLValue(arguments.text(at: 0)) }
        try database.addFunction("nan") { _ in .real(.nan) }
        #expect(
            try database.rows("SELECT one(), half(), yes(), none(), word(1, 2), unsigned(), optional(NULL), nan()")
                == [[1, 0.5, 1, nil, "w2", -1, nil, nil]]
        )
    }

    @Test func argumentsAreReadAsAsked() throws {
        let database = try Database.testing(nil)
        try database.addFunction("described") { arguments in
            #expect(arguments.type(at: 0) == .text)
            #expect(arguments.integer(at: 0) == 12)
            #expect(arguments.real(at: 0) == 12.5)
            #expect(arguments.data(at: 0) == Data("12.5x".utf8))
            #expect(arguments.withBytes(at: 0) { $0.count } == 5)
            #expect(arguments.data(at: 1) == nil)
            #expect(arguments.withBytes(at: 1) { $0.count } == 0)
            #expect(arguments[2] == nil && arguments[-1] == nil && arguments.type(at: 7) == .null)
            #expect(arguments.all == ["12.5x", nil])
            return SQLValue(arguments.count)
        }
        #expect(try database.value("SELECT described('12.5x', NULL)") == 2)
        try database.addFunction("repaired", argumentCount: 1) { arguments in
            #expect(arguments.text(at: 0) == nil)
            #expect(arguments.data(at: 0) == Data([0x61, 0xff]))
            return arguments[0]
        }
        #expect(try database.value("SELECT repaired(CAST(x'61ff' AS TEXT))") == "a\u{fffd}")
    }

    @Test func numberOfArgumentsDecides() throws {
        let database = try Database.testing(nil)
        try database.addFunction("f", argumentCount: 1) { _ in "one" }
        try database.addFunction("f", argumentCount: 2) { _ in "two" }
        #expect(try database.rows("SELECT f(1), F(1, 2)") == [["one", "two"]])
        #expect(throws: DatabaseError.self) { try database.value("SELECT f()") }
        try database.removeFunction("F", argumentCount: 1)
        #expect(throws: DatabaseError.self) { try database.value("SELECT f(1)") }
        #expect(try database.value("SELECT f(1, 2)") == "two")
        try database.removeFunction("never")
    }

    // MARK: Errors

    @Test func databaseErrorComesOutUnchanged() throws {
        let database = try Database.testing(nil)
        let thrown = DatabaseError(extendedCode: SQLITE_CONSTRAINT_UNIQUE, reason: .busy, message: "my own")
        try database.addFunction("f") { _ in throw thrown }
        let error = #expect(throws: DatabaseError.self) { try database.run("SELECT f()") }
        #expect(error == thrown)
        #expect(database.lastErrorMessage() == "my own")
        #expect(database.lastExtendedErrorCode() == SQLITE_CONSTRAINT_UNIQUE)
        #expect(!database.executeStatements("SELECT 1; SELECT f()"))
        #expect(database.lastError() as? DatabaseError == thrown)
    }

    @Test func otherErrorIsCarriedAndNotRepeated() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 2)
        try database.addFunction("f", argumentCount: 1) { arguments in
            throw Refused(secret: arguments.text(at: 0) ?? "")
        }
        let error = #expect(throws: DatabaseError.self) { try database.run("UPDATE t SET body = f(?)", ["hush"]) }
        #expect(error?.underlyingError as? Refused == Refused(secret: "hush"))
        #expect(error?.code == SQLITE_ERROR && error?.extendedCode == SQLITE_ERROR && error?.reason == .closureFailed)
        #expect(error?.sql == "UPDATE t SET body = f(?)")
        #expect(error?.message.contains("Refused") == true && error?.message.contains("f failed") == true)
        #expect(error?.description.contains("hush") == false)
        #expect((error as NSError?)?.userInfo[NSUnderlyingErrorKey] is Refused)
        #expect(try database.value("SELECT count(*) FROM t WHERE body LIKE 'secret%'") == 2)
    }

    @Test func identityOfTheErrorIsKept() throws {
        final class Mine: Error {}
        let mine = Mine()
        let queue = try DatabaseQueue(path: nil, configuration: Configuration())
        let error = #expect(throws: DatabaseError.self) {
            try queue.inTransaction { db in
                try db.addFunction("f") { _ in throw mine }
                try db.run("CREATE TABLE u AS SELECT f()")
            }
        }
        #expect(error?.underlyingError as? Mine === mine)
    }

    @Test func errorsAreEqualWhateverTheyCarry() {
        let plain = DatabaseError(extendedCode: 1, message: "m")
        let carrying = DatabaseError(extendedCode: 1, message: "m", underlyingError: Refused(secret: "s"))
        #expect(plain == carrying && plain.hashValue == carrying.hashValue)
        #expect(plain != DatabaseError(extendedCode: 1, message: "m", sql: "s"))
    }

    @Test func aSwallowedErrorIsNotTakenForALaterOne() throws {
        let database = try Database.testing(nil)
        try database.addFunction("bad") { _ in throw Refused(secret: "inner") }
        try database.addFunction("careful") { [unowned database] _ in
            SQLValue((try? database.value("SELECT bad()")) == nil)
        }
        #expect(try database.value("SELECT careful()") == 1)
        let error = #expect(throws: DatabaseError.self) { try database.run("SELECT * FROM absent") }
        #expect(error?.underlyingError == nil && error?.message.contains("no such table") == true)
        try database.addFunction("handing") { [unowned database] _ in try database.value("SELECT bad()") ?? nil }
        let handed = #expect(throws: DatabaseError.self) { try database.run("SELECT handing()") }
        #expect(handed?.underlyingError as? Refused == Refused(secret: "inner"))
    }

    @Test func rowsBeforeAnErrorAreKept() throws {
        let database = try Database.testing(nil)
        try database.addFunction("upTo", argumentCount: 1) { arguments in
            if arguments.integer(at: 0) > 2 { throw Refused(secret: "") }
            return arguments[0]
        }
        let rows = try database.executeQuery("SELECT upTo(column1) FROM (VALUES (1), (2), (3))", values: nil)
        #expect(rows.next() && rows.next() && !rows.next())
        #expect((database.lastError() as? DatabaseError)?.reason == .closureFailed)
    }

    @Test func anErrorLeavesTheTransactionOpen() throws {
        let database = try Database.testing(nil)
        try database.fill(rows: 1)
        try database.addFunction("bad") { _ in throw Refused(secret: "") }
        #expect(database.beginImmediateTransaction())
        try database.run("INSERT INTO t (body) VALUES ('kept')")
        #expect(throws: DatabaseError.self) { try database.run("INSERT INTO t (body) SELECT bad()") }
        #expect(database.isInTransaction && database.commit())
        #expect(try database.integers("SELECT count(*) FROM t") == [2])
    }

    // MARK: Where functions may be called

    @Test func schemaMayNotCallByDefault() throws {
        let database = try Database.testing(nil)
        try database.addFunction("f", options: .deterministic) { _ in 7 }
        try database.run("CREATE TABLE t (a)")
        try database.run("CREATE VIEW v AS SELECT f() AS b")
        #expect(try database.value("SELECT f()") == 7)
        let error = #expect(throws: DatabaseError.self) { try database.value("SELECT b FROM v") }
        #expect(error?.message.contains("unsafe use of f") == true)
        #expect(throws: DatabaseError.self) { try database.run("CREATE INDEX i ON t (f())") }
        try database.addFunction("f", options: [.deterministic, .allowedInSchema]) { _ in 8 }
        #expect(try database.value("SELECT b FROM v") == 8)
        try database.run("CREATE INDEX i ON t (f())")
        try database.run("PRAGMA trusted_schema = OFF")
        #expect(throws: DatabaseError.self) { try database.value("SELECT b FROM v") }
        try database.addFunction("f", options: [.innocuous, .deterministic]) { _ in 9 }
        #expect(try database.value("SELECT b FROM v") == 9)
    }

    @Test func fmdbFunctionsMayBeCalledByTheSchema() throws {
        let database = try Database.testing(nil)
        database.makeFunctionNamed("f", arguments: 0) { [unowned database] context, _, _ in
            database.resultInt(7, context: context)
        }
        try database.run("CREATE VIEW v AS SELECT f() AS b")
        #expect(try database.value("SELECT b FROM v") == 7)
        try database.removeFunction("f", argumentCount: 0)
        #expect(throws: DatabaseError.self) { try database.value("SELECT b FROM v") }
    }

    @available(*, deprecated, message: "tests what is deprecated")
    @Test func formerNameOfFunctions() throws {
        let database = try Database.testing(nil)
        database.makeFunctionNamed("f", maximumArguments: 1) { [unowned database] context, _, argv in
            database.resultInt(database.valueInt(argv[0]) + 1, context: context)
        }
        #expect(try database.value("SELECT f(1)") == 2)
    }

    // MARK: What is refused

    @Test func refusals() throws {
        let database = Database(path: nil)
        let closed = #expect(throws: DatabaseError.self) { try database.addFunction("f") { _ in 1 } }
        #expect(closed?.code == SQLITE_MISUSE && closed?.message.contains("not open") == true)
        #expect(database.lastError() as? DatabaseError == closed)
        database.makeFunctionNamed("f", arguments: 0) { _, _, _ in }
        #expect(database.lastErrorMessage().contains("not open"))
        #expect(throws: DatabaseError.self) { try database.removeFunction("f") }
        #expect(database.open())
        #expect(throws: DatabaseError.self) { try database.value("SELECT f()") }
        for name in ["", "a\0b", String(repeating: "n", count: 256)] {
            let error = #expect(throws: DatabaseError.self) { try database.addFunction(name) { _ in 1 } }
            #expect(error?.code == SQLITE_MISUSE)
        }
        for count in [-2, -1, 128] {
            #expect(throws: DatabaseError.self) { try database.addFunction("f", argumentCount: count) { _ in 1 } }
        }
        try database.addFunction(String(repeating: "n", count: 255), argumentCount: 100) { _ in 1 }
    }

    @Test func aRunningStatementKeepsItsFunction() throws {
        let database = try Database.testing(nil)
        let old = Token(), new = Token()
        try database.addFunction("f") { [old] _ in withExtendedLifetime(old) { 1 } }
        let rows = try database.executeQuery("SELECT f() UNION ALL SELECT f()", values: nil)
        #expect(rows.next())
        let error = #expect(throws: DatabaseError.self) {
            try database.addFunction("f") { [new] _ in withExtendedLifetime(new) { 2 } }
        }
        #expect(error?.code == SQLITE_BUSY)
        #expect(throws: DatabaseError.self) { try database.removeFunction("f") }
        #expect(rows.next() && rows.int(forColumnIndex: 0) == 1)
        rows.close()
        try database.addFunction("f") { _ in 2 }
        #expect(try database.value("SELECT f()") == 2)
    }

    @Test func builtInFunctionsMayBeReplaced() throws {
        let database = try Database.testing(nil)
        try database.addFunction("UPPER", argumentCount: 1) { SQLValue($0.text(at: 0)?.uppercased()) }
        #expect(try database.value("SELECT upper('straße')") == "STRASSE")
        try database.removeFunction("upper", argumentCount: 1)
        database.close()
        #expect(database.open())
        #expect(try database.value("SELECT upper('aä')") == "Aä")
    }

    /// What a function makes of a text, such as its hash, does not depend on the encoding of the store.
    @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func bytesOfTexts(encoding: String) throws {
        let database = try Database.testing(nil)
        try database.execute(script: "PRAGMA encoding = \(raw: "'\(encoding)'"); CREATE TABLE t (a)")
        try database.executeUpdate("INSERT INTO t VALUES (\("aß🦭"))")
        try database.addFunction("bytes", argumentCount: 1) { arguments in
            .blob(arguments.data(at: 0) ?? Data())
        }
        try database.addFunction("raw", argumentCount: 1) { arguments in
            arguments.withBytes(at: 0) { .blob(Data($0)) }
        }
        let expected = SQLValue.blob(Data("aß🦭".utf8))
        #expect(
            try database.rows("SELECT bytes(a), raw(a), bytes('') FROM t") == [[expected, expected, .blob(Data())]]
        )
    }
}
