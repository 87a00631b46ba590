import Foundation
import SealedDB
import Testing

@Suite(.hangLimit)
struct FullTextTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
    }

    @Test(arguments: ["fts3", "fts4", "fts5"])
    func tablesWorkThroughSQL(_ module: String) throws {
        try database.run("CREATE VIRTUAL TABLE mail USING \(module)(subject, body)")
        try database.run("INSERT INTO mail VALUES ('hello', 'This message is a hello world message.')")
        try database.run("INSERT INTO mail VALUES ('urgent: serious', 'This mail is seen as a more serious mail')")
        #expect(try database.value("SELECT subject FROM mail WHERE mail MATCH 'world'") == "hello")
        #expect(try database.value("SELECT count(*) FROM mail WHERE body MATCH 'this'") == 2)
        try database.run("UPDATE mail SET body = 'gone' WHERE subject = 'hello'")
        #expect(try database.value("SELECT count(*) FROM mail WHERE mail MATCH 'world'") == 0)
    }

    @Test(arguments: ["fts3", "fts4", "fts5"], ["mail", "my \"mail\" it's"])
    func commands(_ module: String, _ name: String) throws {
        let quoted = "\"" + name.replacing("\"", with: "\"\"") + "\""
        try database.run("CREATE VIRTUAL TABLE \(quoted) USING \(module)(body)")
        for number in 0..<50 { try database.run("INSERT INTO \(quoted) VALUES (?)", ["word\(number) common"]) }
        for command in [kFTSCommandOptimize, kFTSCommandRebuild, kFTSCommandIntegrityCheck] {
            #expect(database.issueCommand(command, forTable: name), "\(command): \(database.lastError())")
        }
        #expect(database.issueCommand(String(format: kFTSCommandMerge, 500 as UInt32, 8 as UInt32), forTable: name))
        #expect(database.issueCommand(String(format: kFTSCommandAutoMerge, 8 as UInt32), forTable: name))
        for command: FullTextCommand in [
            .optimize, .rebuild, .integrityCheck, .merge(pages: 9, segments: 2), .automerge(segments: 0),
        ] {
            try database.perform(command, onTable: name)
        }
        for command in ["nonsense", "merge", "merge=a,b", "merge=1", "optimize=1", "automerge=-1", ""] {
            #expect(!database.issueCommand(command, forTable: name))
            #expect(database.lastErrorMessage().contains("not a command"))
        }
        #expect(try database.value("SELECT count(*) FROM \(quoted) WHERE \(quoted) MATCH 'common'") == 50)
    }

    @Test func integrityCheckFindsADifference() throws {
        for module in ["fts4", "fts5"] {
            let table = module + "_table"
            try database.run("CREATE VIRTUAL TABLE \(table) USING \(module)(body)")
            try database.run("INSERT INTO \(table) VALUES ('one two')")
            try database.run("UPDATE \(table)_content SET c0\(module == "fts4" ? "body" : "") = 'three'")
            let error = #expect(throws: DatabaseError.self) { try database.perform(.integrityCheck, onTable: table) }
            #expect(error?.code == SQLITE_CORRUPT)
            #expect(!database.issueCommand(kFTSCommandIntegrityCheck, forTable: table))
            try database.perform(.rebuild, onTable: table)
            try database.perform(.integrityCheck, onTable: table)
            #expect(try database.value("SELECT count(*) FROM \(table) WHERE \(table) MATCH 'three'") == 1)
        }
    }

    @Test func otherTablesAreRefused() throws {
        try database.run("CREATE TABLE t (t, rank)")
        for name in ["t", "absent", "t\"; DROP TABLE t; --"] {
            let error = #expect(throws: DatabaseError.self) { try database.perform(.optimize, onTable: name) }
            #expect(error?.message.contains("not a table for full-text search") == true)
            #expect(!database.issueCommand(kFTSCommandOptimize, forTable: name))
        }
        #expect(try database.value("SELECT count(*) FROM t") == 0)
        database.close()
        #expect(!database.issueCommand(kFTSCommandOptimize, forTable: "t"))
    }

    @Test func offsetsTellColumnTermAndBytes() throws {
        try database.run("CREATE VIRTUAL TABLE mail USING fts3(subject, body)")
        try database.run("INSERT INTO mail VALUES ('hello world', 'Ünïcode: this message is a hello world message.')")
        let rows = try database.executeQuery(
            "SELECT offsets(mail) AS o FROM mail WHERE mail MATCH '\"hello world\"'",
            values: nil
        )
        #expect(rows.next())
        let offsets = try #require(rows.offsets(forColumnIndex: 0))
        #expect(rows.offsets(forColumn: "o") == offsets)
        #expect(offsets.map(\.column) == [0, 0, 1, 1])
        #expect(offsets.map(\.term) == [0, 1, 0, 1])
        #expect(offsets.first?.range == 0..<5)
        let body = Array("Ünïcode: this message is a hello world message.".utf8)
        #expect(offsets[2...].map { String(decoding: body[$0.range], as: UTF8.self) } == ["hello", "world"])
        var enumerated: [[Int]] = []
        offsets.enumerate { column, term, range in enumerated.append([column, term, range.location, range.length]) }
        #expect(enumerated.first == [0, 0, 0, 5] && enumerated.count == 4)
    }

    @Test(arguments: ["1", "0 0 1", "a b c d", "0 0 -1 2", "0 0 1 -2", "0 0 9223372036854775807 1"])
    func otherTextIsNoOffsets(_ text: String) {
        #expect(TextOffsets(text) == nil)
    }

    @Test func noMatchesAreNoOffsets() {
        #expect(TextOffsets("")?.isEmpty == true)
    }
}
