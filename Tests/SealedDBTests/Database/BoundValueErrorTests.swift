import Foundation
import Testing

@testable import SealedDB

/// SQLite quotes in its messages what it cannot read. Errors go into logs, where no value that was bound belongs.
@Suite(.hangLimit)
struct BoundValueErrorTests {
    private let database: Database
    private static let secret = "SECRETVALUE"

    init() throws {
        database = try Database.testing(nil)
        #expect(
            database.executeStatements(
                """
                CREATE TABLE t (a UNIQUE NOT NULL CHECK (a <> 'forbidden'), b);
                CREATE VIRTUAL TABLE f USING fts5(x);
                CREATE TRIGGER r BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'keep what is there'); END
                """
            )
        )
    }

    /// Why the statement fails; `nil` if it does not.
    private func failure(_ sql: String, _ values: [Any]) -> DatabaseError? {
        do throws(DatabaseError) {
            let rows = try database.executeQuery(sql, values: values)
            defer { rows.close() }
            while try rows.nextWithError() {}
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        "SELECT json_extract('{}', ?)", "SELECT json_set('{}', ?, 1)", "SELECT '{}' -> ('$' || ?)", "SELECT json(?)",
        "SELECT * FROM f WHERE f MATCH (? || ':x')", "SELECT * FROM f WHERE f MATCH (? || ' ''')",
        "SELECT * FROM f WHERE rank MATCH ?", "INSERT INTO f(f) VALUES (?)",
        "INSERT INTO f(f, rank) VALUES ('rank', ?)",
        "ATTACH '/nonexistent/' || ? AS zz", "VACUUM INTO '/nonexistent/' || ?", "DETACH ?",
        "SELECT fts3_tokenizer(?)", "SELECT load_extension(?)",
        // What SQL makes of it.
        "SELECT json_extract('{}', 'x' || ? || 'y')", "SELECT json_extract('{}', lower(?))",
        "SELECT json_extract('{}', substr(?, 3, 5))", "SELECT json_extract('{}', ?1), :b, ?1",
        "/* ? */ SELECT json_extract('{}', $a::b(c)), '?', \"?\", NULL -- ?",
    ])
    func noValueInAMessage(sql: String) throws {
        let parameters = sql.contains(":b") ? 2 : 1
        // Some SQLite has not the function at all.
        guard let error = failure(sql, [Any](repeating: Self.secret, count: parameters)) else {
            #expect(sql.contains("rank MATCH") || sql.contains("MATCH (? || ':x')"), "\(sql) did not fail")
            return
        }
        for text in [error.description, error.message, database.lastErrorMessage(), "\(database.lastError())"] {
            for part in [Self.secret, "secretvalue", "CRETV"] { #expect(!text.contains(part), "\(sql): \(text)") }
        }
        #expect(error.sql == sql || error.sql == nil)
    }

    @Test func theRestOfTheMessageStays() {
        let error = failure("SELECT * FROM f WHERE f MATCH ?", ["\(Self.secret) : x"])
        #expect(error?.message == "no such column: …", "\(error as Any)")
        #expect(failure("DETACH ?", ["first second"])?.message == "no such database: …")
        // Nothing of these comes from a value, though each word is one of it.
        let words = "UNIQUE constraint failed: t.a NOT NULL CHECK malformed JSON"
        for (sql, message) in [
            ("INSERT INTO t (a, b) VALUES (1, ?), (1, 2)", "UNIQUE constraint failed: t.a"),
            ("INSERT INTO t (b) VALUES (?)", "NOT NULL constraint failed: t.a"),
            ("SELECT json(?)", "malformed JSON"),
        ] {
            #expect(failure(sql, [words])?.message == message)
        }
        #expect(
            failure("INSERT INTO t (a, b) VALUES ('forbidden', ?)", ["forbidden"])?.message.hasPrefix("CHECK") == true
        )
        #expect(database.executeUpdate("INSERT INTO t (a) VALUES (1)", withArgumentsIn: []))
        #expect(failure("DELETE FROM t WHERE a = ?", [1])?.message == "keep what is there")
        #expect(failure("DELETE FROM t WHERE a = ? OR ?", [1, "to keep things"])?.message == "… what is there")
    }

    /// The text of the statement is shown anyway.
    @Test func wordsOfTheStatementStay() {
        #expect(failure("DETACH ? /* mine */", ["mine"])?.message == "no such database: mine")
        #expect(failure("DETACH ? /* mined */", ["mine"])?.message == "no such database: …")
        #expect(failure("DETACH 'literal' || substr(?, 1, 0)", ["other"])?.message == "no such database: literal")
        // The word as a whole is not one of the statement's, and so may come from a row.
        #expect(failure("DETACH substr(?, 1) || 'ing'", ["substr"])?.message == "no such database: …")
    }

    @Test func valuesOfAllTypes() {
        for value: Any in [
            987_654_321, -12.5e100, 1234.5678, 0.25, -77, "a", "it's", "p@$$'!", "$%&/()=", "größer", "日本",
        ] {
            let error = failure("DETACH ?", [value])
            #expect(error?.message == "no such database: …", "\(value): \(error as Any)")
        }
        // A part of it, of which no word between underscores is long enough to be told by itself.
        #expect(failure("DETACH substr(?, 2)", ["ab_cd_ef"])?.message == "no such database: …")
        // Between other values.
        let values: [Any] = [NSNull(), 1, Self.secret, 2.5, "it''s", -3]
        #expect(failure("SELECT ?,?,json_extract('{}',?),?,?,?", values)?.message.contains("…") == true)
        // A blob may be read as any text.
        #expect(failure("DETACH ?", [Data(Self.secret.utf8)])?.message == "SQL logic error")
        #expect(failure("SELECT json_extract('{}', 'x', ?)", [Data([1])])?.message == "SQL logic error")
        // So is what is too long to be looked through.
        #expect(
            failure("SELECT json_extract('{}', 'x', ?)", [String(repeating: "y", count: 1 << 17)])?.message
                == "SQL logic error"
        )
    }

    /// Within the functions of two other statements SQLite shows no values in the statement's text.
    @Test func withinFunctions() throws {
        for depth in 0..<4 {
            try database.addFunction("deeper\(depth)") { [unowned database] _ in
                let sql = depth == 0 ? "SELECT json_extract('{}', ?)" : "SELECT deeper\(depth - 1)(?)"
                let rows = try database.executeQuery(sql, values: [Self.secret])
                defer { rows.close() }
                while try rows.nextWithError() {}
                return .null
            }
        }
        for depth in 0..<4 {
            let error = try #require(failure("SELECT deeper\(depth)(?)", [depth]))
            #expect(error.sql?.contains("json_extract") == true, "\(error)")
            #expect(!error.description.contains(Self.secret), "\(error)")
        }
    }

    /// What goes wrong with the end of a statement is told as a step's failure is.
    @Test func endOfAStatement() throws {
        let connection = try #require(database.connection)
        let statement = try connection.prepare("DETACH ?")
        try statement.bind(Self.secret, at: 1)
        #expect(throws: DatabaseError.self) { _ = try statement.step() }
        #expect(connection.endFailure(connection.lastCode, of: statement.prepared).message.hasSuffix("database: …"))
        #expect(connection.endFailure(connection.lastCode, of: nil).message.contains(Self.secret))
        statement.close()
    }

    /// A path that the library itself was given is to be told.
    @Test func pathsOfTheLibraryAreShown() throws {
        let path = "/nonexistent/\(Self.secret)"
        let error = #expect(throws: DatabaseError.self) {
            try database.attach(path, as: "zz", key: isEncrypting ? .testing(1) : nil)
        }
        #expect(error?.message.contains(path) == true, "\(error as Any)")
    }

    @Test func randomValues() {
        var random = SeededGenerator(seed: 20_26)
        let alphabet = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_ÄÖé日本語 '\"$.:*()[]{}@#!-,;\n\\%")
        let statements = [
            "SELECT json_extract('{}', ?)", "SELECT json_extract('{}', '$.a' || ?)",
            "SELECT json_extract('{}', '$[' || ?)",
            "SELECT json_set('{}', upper(?), 1)", "SELECT * FROM f WHERE f MATCH ?",
            "SELECT * FROM f WHERE f MATCH '\"' || ?",
            "INSERT INTO f(f) VALUES (?)", "DETACH ?", "ATTACH '/nonexistent/x' || ? AS zz",
            "SELECT fts3_tokenizer(?)", "SELECT json_remove('{}', substr(?, 2))",
        ]
        var count = 0
        for _ in 0..<3000 {
            let length = Int.random(in: 4...30, using: &random)
            let value = String((0..<length).map { _ in alphabet.randomElement(using: &random)! })
            let sql = statements.randomElement(using: &random)!
            guard let error = failure(sql, [value]) else { continue }
            count += 1
            #expect(error.sql == sql || sql.hasPrefix("ATTACH"))
            let text = error.description.dropLast(sql.count + 1).lowercased()
            #expect(!text.contains(value.lowercased()), "\(sql), \(value): \(error.message)")
            for word in value.lowercased().split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" })
            where word.utf8.count >= 4 {
                #expect(!text.contains(word), "\(sql), \(value): \(error.message)")
            }
        }
        #expect(count > 1500)
    }
}
