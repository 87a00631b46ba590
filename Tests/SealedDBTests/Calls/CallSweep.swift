import Foundation
import Testing

@testable import SealedDB

/// Runs an operation once for each call of the system that it makes, and has that call fail: alone, and with all that
/// follow.
///
/// Whatever fails, the operation throws an error that says so, or is done. Then its files are as `check` wants them, no
/// descriptor is left open, and the same operation succeeds as soon as nothing fails.
struct CallSweep {
    /// Makes the files that the operation needs.
    let prepare: (TemporaryDirectory) throws -> Void
    let run: (TemporaryDirectory) throws -> Void
    /// What must be true in this state.
    let check: (TemporaryDirectory, State) throws -> Void
    /// What an error says of the state; by default, that nothing is done.
    var state: (DatabaseError) -> State = { _ in .undone }
    /// Whether each call fails in its turn, and not only the first and the last of each kind. For what works without
    /// SQLite, and so makes few calls.
    var isComplete = false

    /// What became of the operation.
    enum State {
        case done, undone
        /// The error says that it may be done or not.
        case either
    }

    /// Which calls fail, and how.
    enum Manner: CaseIterable, Sendable {
        /// One call, with an input or output error.
        case alone
        /// One and all that follow, with an error that is likely for it.
        case lasting
    }

    /// - Returns: what was told when each call failed, for a test that expects more; `nil` for a run that succeeded.
    @discardableResult
    func callAsFunction(_ manner: Manner) throws -> [(call: String, error: DatabaseError?)] {
        try chosen(countedRun(), manner).map { index in
            let directory = try TemporaryDirectory()
            try prepare(directory)
            let watch = CallWatch(
                directory.path,
                failing: manner == .alone ? index...index : index...Int.max,
                code: manner == .alone ? EIO : 0
            )
            let error = outcome { try run(directory) }
            let call = watch.end(describing: index) ?? "a call that was not made"
            let comment: Comment = "\(call) fails \(manner): \(error.map { "\($0)" } ?? "done")"
            let state = error.map(state) ?? .done
            expectPlainWords(error, comment)
            expect(state, directory, comment)
            if state == .undone {
                #expect(throws: Never.self, comment) { try run(directory) }
                expect(.done, directory, comment)
            }
            return (call, error)
        }
    }

    private func expect(_ state: State, _ directory: TemporaryDirectory, _ comment: Comment) {
        #expect(descriptors(below: directory.path) == [], comment)
        #expect(throws: Never.self, comment) { try check(directory, state) }
    }

    /// The calls of a run in which none fails.
    private func countedRun() throws -> [String] {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        let watch = CallWatch(directory.path)
        try run(directory)
        let calls = watch.endWithAll()
        try check(directory, .done)
        #expect(descriptors(below: directory.path) == [])
        try #require(!calls.isEmpty)
        return calls
    }

    /// Of each kind of call to a file the first, and the last, too, if it fails alone; or all of them.
    private func chosen(_ calls: [String], _ manner: Manner) -> [Int] {
        guard !isComplete else { return Array(calls.indices) }
        var first: [String: Int] = [:]
        var last: [String: Int] = [:]
        for (index, call) in calls.enumerated() {
            if first[call] == nil { first[call] = index }
            last[call] = index
        }
        let all = Set(first.values).union(manner == .alone ? Array(last.values) : []).sorted()
        let start = Int.random(in: 0..<CallSweep.step)
        return all.enumerated().filter { ($0.offset + start) % CallSweep.step == 0 }.map(\.element)
    }

    /// Where tests take long, as under a sanitizer, one of so many calls fails in a run.
    private static let step = max(1, ProcessInfo.processInfo.environment["SWEEP_STEP"].flatMap { Int($0) } ?? 1)

    private func outcome(_ body: () throws -> Void) -> DatabaseError? {
        do {
            try body()
            return nil
        } catch let error as DatabaseError {
            return error
        } catch {
            Issue.record("\(error) is no DatabaseError")
            return nil
        }
    }

    /// A call that fails says nothing of the store's pages.
    private func expectPlainWords(_ error: DatabaseError?, _ comment: Comment) {
        guard let error else { return }
        #expect(!error.message.isEmpty, comment)
        for reason: DatabaseError.Reason in [.damaged, .wrongKey, .truncated, .notADatabase, .plaintext, .keyRequired] {
            #expect(error.reason != reason, comment)
        }
    }

    private func descriptors(below directory: String) -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return all.compactMap { descriptor in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }.filter { $0.hasPrefix(directory + "/") }
    }
}
