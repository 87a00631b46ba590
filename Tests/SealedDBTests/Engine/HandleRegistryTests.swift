import Testing

@testable import SealedDB

/// Who is known to be ending what a connection had open.
@Suite(.hangLimit)
struct HandleRegistryTests {
    /// Whoever ends something itself does not wait for itself.
    @Test func threadsThatEndSomething() {
        var registry = HandleRegistry()
        #expect(!registry.isEnding(besides: 1))
        registry.willEnd(1)
        #expect(!registry.isEnding(besides: 1) && registry.isEnding(besides: 2))
        // Once more, within the first.
        registry.willEnd(1)
        registry.hasEnded(1)
        #expect(registry.isEnding(besides: 2))
        registry.willEnd(2)
        registry.hasEnded(1)
        #expect(registry.isEnding(besides: 1) && !registry.isEnding(besides: 2))
        registry.hasEnded(2)
        #expect(!registry.isEnding(besides: 1) && !registry.isEnding(besides: 2))
    }
}
