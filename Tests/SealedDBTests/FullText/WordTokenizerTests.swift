import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct WordTokenizerTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
    }

    /// The words of a text with their bytes, as an index over it has them.
    private func words(_ text: String, _ tokenizer: any FTS5Tokenizer = SimpleTokenizer()) throws -> [String] {
        try database.addTokenizer("words") { _ in tokenizer }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = words)")
        try database.run("CREATE VIRTUAL TABLE v USING fts5vocab(s, instance)")
        try database.run("INSERT INTO s VALUES (?)", [text])
        defer { _ = database.executeStatements("DROP TABLE v; DROP TABLE s") }
        return try database.rows("SELECT term FROM v ORDER BY offset").compactMap { row in
            if case .text(let term)? = row.first { term } else { nil }
        }
    }

    @Test(arguments: [
        ("Hello, World!", ["hello", "world"]),
        ("don't 'quote' it's dogs'", ["don't", "quote", "it's", "dogs"]),
        ("l’été d'Été", ["l’été", "d'été"]),
        ("a1 2b 3.14 v2.0", ["a1", "2b", "3", "14", "v2", "0"]),
        ("ÆØÅ straße ΣΊΣΥΦΟΣ σίσυφος", ["æøå", "straße", "σίσυφοσ", "σίσυφοσ"]),
        ("e\u{301}te\u{301} नमस्ते", ["e\u{301}te\u{301}", "नमस्ते"]),
        ("漢字かなカナ", ["漢", "字", "か", "な", "カナ"]),
        ("a漢b", ["a", "漢", "b"]),
        ("🦭 seal🦭s", ["seal", "s"]),
        ("x''y a'1 '", ["x", "y", "a", "1"]),
        ("", []), (" .,;- ", []), ("one\0two", ["one", "two"]),
    ])
    func cutsWords(_ text: String, _ expected: [String]) throws {
        #expect(try words(text) == expected)
    }

    @Test func invalidUTF8() throws {
        try database.addTokenizer("words") { _ in SimpleTokenizer() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = words)")
        try database.run("INSERT INTO s VALUES (CAST(x'61ff62c320e282' AS TEXT))")
        for word in ["a", "b"] { #expect(try database.value("SELECT count(*) FROM s WHERE s MATCH ?", [word]) == 1) }
        #expect(
            try database.value("SELECT hex(highlight(s, 0, '[', ']')) FROM s WHERE s MATCH 'b'") == "61FF5B625DC320E282"
        )
    }

    @Test func marksStandAtTheBytesOfTheWord() throws {
        try database.addTokenizer("words") { _ in SimpleTokenizer() }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = words)")
        try database.run("INSERT INTO s VALUES ('Ünïcode, L’ÉTÉ 漢字!')")
        for (query, marked) in [
            ("ünïcode", "[Ünïcode], L’ÉTÉ 漢字!"), ("\"l’été\"", "Ünïcode, [L’ÉTÉ] 漢字!"), ("字", "Ünïcode, L’ÉTÉ 漢[字]!"),
        ] {
            #expect(
                try database.value("SELECT highlight(s, 0, '[', ']') FROM s WHERE s MATCH ?", [query]) == .text(marked)
            )
        }
    }

    @Test func localeDecidesLowerCase() throws {
        #expect(try words("ISPARTA", SimpleTokenizer(locale: Locale(identifier: "tr"))) == ["ısparta"])
        #expect(try words("ISPARTA", SimpleTokenizer(locale: Locale(identifier: "en"))) == ["isparta"])
        #expect(SimpleTokenizer(locale: Locale(identifier: "tr")).locale?.identifier == "tr")
    }

    @Test func stopWordsAreLeftOutExceptOfPrefixQueries() throws {
        let directory = try TemporaryDirectory()
        try "the\n  of \n\nand\r\nto".write(toFile: directory.file("words"), atomically: true, encoding: .utf8)
        let url = URL(fileURLWithPath: directory.file("words"))
        let tokenizer = try StopWordTokenizer(fileURL: url, baseTokenizer: SimpleTokenizer())
        #expect(tokenizer.words == ["the", "of", "and", "to"])
        #expect(try words("The state of the Union", tokenizer) == ["state", "union"])
        try database.addTokenizer("stop") { _ in tokenizer }
        try database.run("CREATE VIRTUAL TABLE p USING fts5(body, tokenize = stop)")
        try database.run("INSERT INTO p VALUES ('the theatre'), ('state of the union'), ('the end')")
        func count(_ query: String) throws -> SQLValue? {
            try database.value("SELECT count(*) FROM p WHERE p MATCH ?", [query])
        }
        #expect(try count("the*") == 1)
        #expect(try count("the") == 0)
        #expect(try count("\"state the union\"") == 1)
        #expect(throws: (any Error).self) {
            try FMStopWordTokenizer(
                fileURL: URL(fileURLWithPath: directory.file("absent")),
                baseTokenizer: FMSimpleTokenizer(locale: nil)
            )
        }
    }

    @Test func aSynonymTakesThePlaceOfAStopWord() throws {
        struct Synonyms: TokenizerDelegate {
            func tokenize(
                _ text: UnsafeBufferPointer<UInt8>,
                for purpose: TokenizationPurpose,
                into tokens: borrowing TokenSink
            ) throws {
                for (index, word) in ["a", "the", "b"].enumerated() {
                    try tokens.append(word, range: index..<index + 1)
                    try tokens.append(word + "2", range: index..<index + 1, isColocated: true)
                    try tokens.append(word + "3", range: index..<index + 1, isColocated: true)
                }
            }
        }
        try database.addTokenizer("stop") { _ in StopWordTokenizer(words: ["the"], baseTokenizer: Synonyms()) }
        try database.run("CREATE VIRTUAL TABLE s USING fts5(body, tokenize = stop)")
        try database.run("CREATE VIRTUAL TABLE v USING fts5vocab(s, instance)")
        try database.run("INSERT INTO s VALUES ('xyz')")
        #expect(
            try database.rows("SELECT term, offset FROM v ORDER BY offset, term") == [
                ["a", 0], ["a2", 0], ["a3", 0], ["the2", 1], ["the3", 1], ["b", 2], ["b2", 2], ["b3", 2],
            ]
        )
    }
}
