import Testing

/// For tests that look how a process ends. Swift Testing looks for processes that have ended, and spins until the test that has begun
/// one goes on. By default that test comes behind all others that are waiting for a thread, and a processor is lost until then.
struct ProcessPriority: TestTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withoutActuallyEscaping(function) { function in
            try await Task(priority: .userInitiated) { try await function() }.value
        }
    }
}

extension Trait where Self == ProcessPriority {
    /// For each test with `#expect(processExitsWith:)`.
    static var awaitsProcess: Self { ProcessPriority() }
}
