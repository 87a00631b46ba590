import Foundation
import Testing

@testable import sealdb

@Suite(.hangLimit)
struct PathPatternTests {
    @Test(arguments: [
        ("*.db", "a.db", true), ("*.db", ".db", false), (".*", ".db", true), ("*", ".hidden", false),
        ("*.db", "a.dbx", false), ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXbYbZ", false), ("?", "é", true),
        ("?", "", false), ("??", "a", false), ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a]", "b", true),
        ("[!a]", "a", false), ("\\*", "*", true), ("\\*", "a", false), ("", "", true), ("**", "ab", true),
        ("*a*a*a*a*a*b", String(repeating: "a", count: 200), false),
    ]) func names(pattern: String, name: String, isMatch: Bool) throws {
        #expect(try #require(NamePattern(pattern)).matches(name) == isMatch)
    }

    @Test(arguments: ["[", "[]", "[a", "[b-a]", "a\\"]) func noNames(pattern: String) {
        #expect(NamePattern(pattern) == nil)
    }

    @Test(arguments: [
        ("/no/such/*.db", "/no/such/a.db", true), ("/no/such/*.db", "/no/such/x/a.db", false),
        ("/no/**/a.db", "/no/a.db", true), ("/no/**/a.db", "/no/b/c/a.db", true), ("/no/**/a.db", "/noa.db", false),
        ("/no/**/a.db", "/no/.h/a.db", false), ("/no/**", "/no/b/c", true), ("/no/**", "/no", false),
        ("/no/*/a.db", "/no/x/a.db", true), ("/no/*/a.db", "/no/a.db", false), ("/no/a.db", "/no/a.db", true),
        ("/no/a.db", "/no/a.db/b", false), ("/*", "/x", true), ("/no/*", "/no/a\nb", true),
    ]) func paths(pattern: String, path: String, isMatch: Bool) throws {
        #expect(try #require(PathPattern(pattern)).matches(path) == isMatch)
    }

    /// What is found on disk is what matches, without files that belong to stores, links and hidden files.
    @Test func files() throws {
        let sandbox = try Sandbox()
        let manager = FileManager.default
        for directory in ["x/y", "x/.h", "real"] {
            try manager.createDirectory(atPath: sandbox.path(directory), withIntermediateDirectories: true)
        }
        for name in ["a.db", "a.db-wal", "a.db-shm", "a.db-journal", "a.db-sealdb-lock", ".a.db", "b.txt", "x/y/c.db"] {
            try sandbox.write(name, "")
        }
        try sandbox.write("x/.h/d.db", "")
        try sandbox.write("real/e.db", "")
        try manager.createSymbolicLink(atPath: sandbox.path("link"), withDestinationPath: sandbox.path("real"))
        try manager.createSymbolicLink(atPath: sandbox.path("f.db"), withDestinationPath: "a.db")
        func found(_ pattern: String) throws -> [String] {
            var problems: [String] = []
            let pattern = try #require(PathPattern(sandbox.path(pattern)))
            let files = pattern.files { problems.append($0) }
            #expect(problems.isEmpty)
            #expect(files.allSatisfy(pattern.matches))
            return files.map { String($0.dropFirst(StoreItem.identity(of: sandbox.directory).count + 1)) }
        }
        #expect(try found("*.db") == ["a.db"])
        #expect(try found("**/*.db") == ["a.db", "real/e.db", "x/y/c.db"])
        #expect(try found("a*") == ["a.db"])
        #expect(try found("**/**/*.db") == ["a.db", "real/e.db", "x/y/c.db"])
        #expect(try found("absent/*") == [] && found("a.db") == ["a.db"] && found("a.db/*") == [])
        // What a section names without a pattern is missed.
        #expect(try found("absent.db") == ["absent.db"])
        // A link before the first pattern is followed, as in the paths of stores.
        #expect(try found("link/*.db") == ["real/e.db"])
    }

    private func problems(_ pattern: String) throws -> (files: [String], problems: [String]) {
        var problems: [String] = []
        let files = try #require(PathPattern(pattern)).files { problems.append($0) }
        return (files, problems)
    }

    /// A store that is not seen would not be missed.
    @Test func whatCannotBeSeen() throws {
        let sandbox = try Sandbox()
        let manager = FileManager.default
        let place = StoreItem.identity(of: sandbox.directory)
        try manager.createDirectory(atPath: sandbox.path("in/x"), withIntermediateDirectories: true)
        try manager.createDirectory(atPath: sandbox.path("out"), withIntermediateDirectories: false)
        for name in ["in/x/a.db", "in/x/b.db", "out/c.db"] { try sandbox.write(name, "") }
        #expect(try problems(place + "/in/*/*.db").problems == [])
        for code in [EACCES, EIO, ELOOP] {
            // The directory can be opened and read, and nothing in it examined.
            let watch = CallWatch(place + "/in/x", failing: 1...99, code: code)
            let seen = try problems(place + "/in/*/*.db")
            watch.end()
            #expect(seen.files.count < 2 && !seen.problems.isEmpty, "\(seen)")
        }
        for (name, target) in [("x/d.db", "/no/such/file"), ("x/e.db", "../../out/c.db"), ("y", "../out")] {
            try manager.createSymbolicLink(atPath: sandbox.path("in/" + name), withDestinationPath: target)
            #expect(try problems(place + "/in/*/*.db").problems.count == 1, "\(name)")
            #expect(try problems(place + "/in/**/*.db").problems.count == 1, "\(name)")
            try manager.removeItem(atPath: sandbox.path("in/" + name))
        }
    }
}
