import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct FullTextCommandTests {
    /// https://www.sqlite.org/fts3.html#the_merge_X_Y_command: first the pages, then the segments.
    @Test func textsOfFTS4() {
        #expect(FullTextCommand.merge(pages: 200, segments: 8).forFTS4 == "merge=200,8")
        #expect(FullTextCommand.automerge(segments: 4).forFTS4 == "automerge=4")
        #expect(FullTextCommand.integrityCheck.forFTS4 == "integrity-check")
    }

    @Test func numbersOfFTS5() {
        #expect(FullTextCommand.merge(pages: 200, segments: 8).forFTS5 == ("merge", 200))
        #expect(FullTextCommand.automerge(segments: 4).forFTS5 == ("automerge", 4))
        #expect(FullTextCommand.optimize.forFTS5 == ("optimize", nil))
    }

    @Test func textsOfFMDB() {
        #expect(FullTextCommand("merge=200,8") == .merge(pages: 200, segments: 8))
        #expect(FullTextCommand("automerge=4") == .automerge(segments: 4))
        for text in ["merge=200", "merge=-1,8", "merge=a,b", "automerge=1,2", "optimize=1", "merge", ""] {
            #expect(FullTextCommand(text) == nil, "\(text)")
        }
    }
}
