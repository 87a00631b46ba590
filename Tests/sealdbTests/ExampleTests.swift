import Foundation
import Testing

/// The programs in `Examples` do what they show.
@Suite(.hangLimit)
struct ExampleTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey()
    }

    /// The arguments with the key file, in the build that takes one.
    private func withKey(_ arguments: String...) -> [String] { arguments + (isEncrypting ? ["key"] : []) }

    @Test func bookStore() throws {
        let first = try sandbox.run([Tool.path("BookStore")] + withKey("books.db"))
        #expect(first.status == 0, "\(first.output)")
        #expect(
            first.lines == [
                "All, by author and title:",
                "  George Eliot: Middlemarch (1871)",
                "  George Eliot: The Mill on the Floss (1860)",
                "  Jane Austen: Emma (1815)",
                "  Jane Austen: Persuasion (1817)",
                "Summary written: true",
                "Emma removed: true, once more: false",
                "Before 1865: Persuasion, The Mill on the Floss",
                "Found in Persuasion: …others advised it [meet] again, eight [years] later.",
            ]
        )
        #expect(try sandbox.contents("books.db").range(of: Data("provincial".utf8)) == nil || !isEncrypting)
        let second = try sandbox.run([Tool.path("BookStore")] + withKey("books.db"))
        #expect(second.status == 0)
        #expect(second.lines.filter { $0.contains("Middlemarch") }.count == 2)
        #expect(try sandbox.run([Tool.path("BookStore")]).status == 64)
        let failed = try sandbox.run([Tool.path("BookStore")] + withKey("no/such/directory/books.db"))
        #expect(failed.status == 1 && failed.output.contains("The book store failed"))
    }

    @Test func objectFetcher() throws {
        let outcome = try sandbox.run([Tool.path("ObjectFetcher")] + withKey("people.db"))
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(
            outcome.lines == [
                "1 Ada, born 1815-12-10, portrait of 42 bytes",
                "2 Grace, born 1906-12-09, portrait of 0 bytes",
                "3 Robert'); DROP TABLE person; --, born 1970-01-01, portrait of 42 bytes",
                "Number 2: Grace; number 9: nobody",
                "Of these: [\"Ada\", \"Grace\"]",
                "Ada: ada@example.org",
                "Grace: no address",
                "Robert'); DROP TABLE person; --: no address",
            ]
        )
        #expect(try sandbox.run([Tool.path("ObjectFetcher")]).status == 64)
    }
}
