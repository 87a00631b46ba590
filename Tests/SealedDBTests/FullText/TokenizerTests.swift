import Foundation
import SealedDB
import Testing

private struct Failure: Error, Equatable { let place: String }

/// Notes down what it is asked, and gives words at blanks.
private final class Recorder: FTS5Tokenizer {
    var purposes: [TokenizationPurpose] = []
    var texts: [String] = []

    func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws {
        purposes.append(purpose)
        texts.append(String(decoding: text, as: UTF8.self))
        if texts.last!.contains("fail") { throw Failure(place: "tokenize") }
        try eachWord(of: text) { word, range in
            if word == "beyond" { return try tokens.append("x", range: 0..<1000) }
            try tokens.append(word, range: range)
            if word == "first" { try tokens.append("1st", range: range, isColocated: true) }
        }
    }
}

private func eachWord(of text: UnsafeBufferPointer<UInt8>, _ body: (String, Range<Int>) throws -> Void) throws {
    for word in text.split(separator: UInt8(ascii: " ")) {
        try body(String(decoding: word, as: UTF8.self), word.startIndex..<word.endIndex)
    }
}

/// Passes on words as the bytes of the text, and with those of a document their first byte.
private struct SlicingTokenizer: FTS5Tokenizer {
    func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws {
        for word in text.split(separator: UInt8(ascii: " ")) {
            let bytes = UnsafeBufferPointer(rebasing: word)
            try tokens.append(bytes, range: word.startIndex..<word.endIndex)
            guard purpose == .document, let initial = word.first else { continue }
            try withUnsafePointer(to: initial) { initial in
                try tokens.append(
                    UnsafeBufferPointer(start: initial, count: 1),
                    range: word.startIndex..<word.endIndex,
                    isColocated: true
                )
            }
        }
    }
}

@Suite(.hangLimit)
struct TokenizerTests {
    private let directory: TemporaryDirectory
    private let database: Database

    init() throws {
        directory = try TemporaryDirectory()
        database = try Database.testing(directory.file("db"))
    }

    private func matches(_ query: String, in table: String = "s") throws -> [Int] {
        let rows = try database.rows("SELECT rowid FROM \(table) WHERE \(table) MATCH ? ORDER BY rowid", [query])
        return rows.compactMap { row in
            if case .integer(let id)? = row.first { Int(id) } else { nil }
        }
    }

    @Test func tokensSynonymsAndMarks() throws {
        let recorder = Recorder()
        try database.addTokenizer("recorder") { _ in recorder }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'recorder')")
        try database.run("INSERT INTO s VALUES ('I won first place'), ('æble pie')")
        #expect(recorder.purposes == [.document, .document])
        #expect(try matches("first") == [1])
        #expect(try matches("\"won 1st place\"") == [1])
        #expect(try matches("pla*") == [1])
        #expect(recorder.purposes.suffix(3) == [.query, .query, .prefixQuery])
        #expect(try database.value("SELECT highlight(s, 0, '[', ']') FROM s WHERE s MATCH 'pie'") == "æble [pie]")
        #expect(
            try database.value("SELECT snippet(s, 0, '<', '>', '…', 2) FROM s WHERE s MATCH '1st'") == "…<first> place"
        )
        #expect(recorder.purposes.contains(.auxiliary))
    }

    @Test func tokensGivenAsBytes() throws {
        try database.addTokenizer("slicing") { _ in SlicingTokenizer() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'slicing')")
        try database.run("INSERT INTO s VALUES ('I won first place'), ('æble pie')")
        #expect(try matches("first") == [1])
        #expect(try matches("\"won f place\"") == [1])
        #expect(try matches("pl*") == [1])
        #expect(try matches("æble") == [2])
        #expect(try database.value("SELECT highlight(s, 0, '[', ']') FROM s WHERE s MATCH 'pie'") == "æble [pie]")
    }

    @Test func argumentsAndTheirErrors() throws {
        var given: [[String]] = []
        try database.addTokenizer("picky") { arguments in
            given.append(arguments)
            if arguments == ["bad"] { throw Failure(place: "make") }
            return SimpleTokenizer()
        }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'picky one ''two 2''')")
        try database.run("INSERT INTO s VALUES ('hello')")
        #expect(given.contains(["one", "two 2"]))
        let error = #expect(throws: DatabaseError.self) {
            try database.run("CREATE VIRTUAL TABLE b USING fts5(body, tokenize = 'picky bad')")
            try database.run("INSERT INTO b VALUES ('x')")
        }
        #expect(error?.underlyingError as? Failure == Failure(place: "make"))
    }

    @Test func errorsReachTheCaller() throws {
        try database.addTokenizer("recorder") { _ in Recorder() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'recorder')")
        try database.run("INSERT INTO s VALUES ('good words')")
        for (sql, value) in [("INSERT INTO s VALUES (?)", "to fail"), ("SELECT * FROM s WHERE s MATCH ?", "\"fail\"")] {
            let error = #expect(throws: DatabaseError.self) { try database.rows(sql, [value]) }
            #expect(error?.underlyingError as? Failure == Failure(place: "tokenize"))
            #expect(error?.description.contains("to fail") == false)
        }
        let range = #expect(throws: DatabaseError.self) { try database.run("INSERT INTO s VALUES ('far beyond')") }
        #expect(range?.code == SQLITE_RANGE && range?.message.contains("1000") == true)
        #expect(try matches("good") == [1])
        try database.perform(.integrityCheck, onTable: "s")
        #expect(try database.integers("SELECT count(*) FROM s") == [1])
    }

    /// FMDB cut tokens at 128 bytes; FTS5 itself stops at 32 KiB.
    @Test func longTokensEmptyTextAndNULs() throws {
        try database.addTokenizer("recorder") { _ in Recorder() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'recorder')")
        let long = String(repeating: "a", count: 20_000)
        try database.run("INSERT INTO s VALUES (?), (''), (NULL), (?)", [long + "b c", long + "d"])
        #expect(try matches(long + "b") == [1])
        #expect(try matches(long + "*") == [1, 4])
        try database.run("INSERT INTO s VALUES (CAST(x'61ff2062' AS TEXT))")
        #expect(try matches("b") == [5])
    }

    @Test func comesBackWithTheConnectionAndIsNeeded() throws {
        try database.addTokenizer("recorder") { _ in Recorder() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'recorder')")
        try database.run("INSERT INTO s VALUES ('here')")
        #expect(database.close() && database.open())
        #expect(try matches("here") == [1])
        let other = try Database.testing(directory.file("db"))
        let error = #expect(throws: DatabaseError.self) { try other.rows("SELECT * FROM s WHERE s MATCH 'here'") }
        #expect(error?.message.contains("no such tokenizer") == true)
        // Replaced: tables that are used for the first time take the new one.
        try other.addTokenizer("recorder") { _ in SimpleTokenizer() }
        #expect(try other.value("SELECT count(*) FROM s WHERE s MATCH 'HERE'") == 1)
        let closed = Database()
        #expect(throws: DatabaseError.self) { try closed.addTokenizer("x") { _ in SimpleTokenizer() } }
        #expect(throws: DatabaseError.self) { try other.addTokenizer("") { _ in SimpleTokenizer() } }
    }

    @Test func worksUnderAnAuthorizerThatDeniesEverything() throws {
        database.authorizer = { _ in .deny }
        try database.addTokenizer("simple") { _ in SimpleTokenizer() }
        database.authorizer = nil
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'simple')")
        try database.run("INSERT INTO s VALUES ('Word')")
        #expect(try database.value("SELECT count(*) FROM s WHERE s MATCH 'word'") == 1)
    }

    /// A file that will get its key only after it is opened, as FMDB does it.
    @Test(.enabled(if: isEncrypting, "needs a codec"))
    func keySetAfterwards() throws {
        let late = Database(path: directory.file("late"))
        #expect(late.open())
        try late.addTokenizer("simple") { _ in SimpleTokenizer() }
        #expect(late.setKey("correct horse"))
        try late.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'simple')")
        try late.run("INSERT INTO s VALUES ('Word')")
        #expect(late.close())
        let again = Database(path: directory.file("late"))
        #expect(again.open())
        try again.addTokenizer("simple") { _ in SimpleTokenizer() }
        #expect(again.setKey("correct horse"))
        #expect(try again.value("SELECT count(*) FROM s WHERE s MATCH 'word'") == 1)
        #expect(again.close() && again.open() && again.setKey("correct horse"))
        #expect(try again.value("SELECT count(*) FROM s WHERE s MATCH 'word'") == 1)
        // Who goes on without the key is told so, and not that there is no FTS5.
        let keyless = Database(path: directory.file("late"))
        #expect(keyless.open())
        try keyless.addTokenizer("simple") { _ in SimpleTokenizer() }
        let error = #expect(throws: DatabaseError.self) { try keyless.rows("SELECT * FROM s WHERE s MATCH 'word'") }
        #expect(error?.code == SQLITE_NOTADB)
    }

    /// As in an engine that was built without FTS5, whether the file can be read or has no key yet.
    @Test func withoutFTS5() throws {
        try database.removeFunction("fts5", argumentCount: 1)
        let error = #expect(throws: DatabaseError.self) { try database.addTokenizer("x") { _ in SimpleTokenizer() } }
        #expect(error?.reason == .unsupported)
        let late = Database(path: directory.file("db"))
        #expect(late.open())
        try late.removeFunction("fts5", argumentCount: 1)
        let early = #expect(throws: DatabaseError.self) { try late.addTokenizer("x") { _ in SimpleTokenizer() } }
        #expect(early?.reason == .unsupported)
        // It was not kept for the next connection, where FTS5 is back.
        #expect(database.close() && database.open())
        #expect(throws: DatabaseError.self) {
            try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'x')")
        }
    }

    @Test func tokenizersAreDroppedWithTheirTables() throws {
        final class Mortal: FTS5Tokenizer {
            let token: Token
            init(_ token: Token) { self.token = token }
            func tokenize(
                _ text: UnsafeBufferPointer<UInt8>,
                for purpose: TokenizationPurpose,
                into tokens: borrowing TokenSink
            ) {}
        }
        var made: [Watched] = []
        try database.addTokenizer("mortal") { _ in
            let token = Token()
            made.append(Watched(token))
            return Mortal(token)
        }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'mortal')")
        try database.run("INSERT INTO s VALUES ('x')")
        #expect(!made.isEmpty && made.contains { $0.isAlive })
        try database.run("DROP TABLE s")
        #expect(made.allSatisfy { !$0.isAlive })
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = 'mortal')")
        try database.run("INSERT INTO s VALUES ('x')")
        #expect(database.close())
        #expect(made.allSatisfy { !$0.isAlive })
    }

    // MARK: FMDB's names

    @Test func registeredOnceForTheProcess() throws {
        var token: Token? = Token()
        let watched = Watched(token!)
        final class Kept: FMTokenizerDelegate {
            let token: Token
            init(_ token: Token) { self.token = token }
            func tokenize(
                _ text: UnsafeBufferPointer<UInt8>,
                for purpose: TokenizationPurpose,
                into tokens: borrowing TokenSink
            ) throws {
                try tokens.append("word", range: 0..<text.count)
            }
        }
        FMDatabase.registerTokenizer(Kept(token!), withKey: "kept-\(directory.path)")
        token = nil
        #expect(watched.isAlive)
        #expect(database.installTokenizerModule(withName: "mine") && database.installTokenizerModule())
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = \"mine 'kept-\(directory.path)'\")")
        try database.run("INSERT INTO s VALUES ('anything')")
        #expect(try matches("else") == [1])
        #expect(database.close() && database.open())
        #expect(try matches("else") == [1])
        let error = #expect(throws: DatabaseError.self) {
            try database.run("CREATE VIRTUAL TABLE b USING fts5(body, tokenize = 'fmdb nobody')")
            try database.run("INSERT INTO b VALUES ('x')")
        }
        #expect(error?.message.contains("nobody") == true)
        FMDatabase.registerTokenizer(FMSimpleTokenizer(locale: nil))
        try database.run("CREATE VIRTUAL TABLE c USING fts5(body, tokenize = 'fmdb')")
        try database.run("INSERT INTO c VALUES ('One')")
        #expect(try matches("one", in: "c") == [1])
        #expect(!Database().installTokenizerModule())
        FMDatabase.registerTokenizer(FMSimpleTokenizer(locale: nil), withKey: "kept-\(directory.path)")
        #expect(database.close())
        #expect(!watched.isAlive)
    }
}
extension Token: @unchecked Sendable {}  // It has no state.
