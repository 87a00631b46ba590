import Testing

/// A short run of what `scripts/soak` does for as long as one likes.
@Suite(.hangLimit)
struct SoakTests {
    @Test func nothingIsLost() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run([Tool.path("Soak"), "soak", "6"])
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
        #expect(outcome.output.contains("nothing lost"))
        #expect(try sandbox.run([Tool.path("Soak")]).status == 64)
    }
}
