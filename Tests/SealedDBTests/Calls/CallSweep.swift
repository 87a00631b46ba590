import Foundation
import Testing

@testable import SealedDB

/// Runs an operation once for each call of the system, or of OpenSSL, that it makes, and has that call fail: alone, and
/// with all that follow.
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
    /// How many calls of OpenSSL fail besides the first and the last of each kind.
    var callsBetween = number("SWEEP_CALLS") ?? 12
    /// Calls that need not fail, because their failure is an answer.
    var answers: Set<String> = []

    /// What became of the operation.
    enum State {
        case done, undone
        /// The error says that it may be done or not.
        case either
    }

    /// Which calls fail, and how.
    enum Manner: Sendable {
        /// One call, with an input or output error.
        case alone
        /// One and all that follow, with an error that is likely for it.
        case lasting
        /// One call of OpenSSL on this thread, by the library or by SQLCipher.
        case openSSL

        static let files: [Manner] = [.alone, .lasting]
        static let all: [Manner] = [.alone, .lasting, .openSSL]
    }

    /// - Returns: what was told when each call failed, for a test that expects more; `nil` for a run that succeeded.
    @discardableResult
    func callAsFunction(_ manner: Manner) throws -> [(call: String, error: DatabaseError?)] {
        try chosen(countedRun(manner), manner).map { index in
            let directory = try TemporaryDirectory()
            try prepare(directory)
            let watch = watch(directory, manner, failing: index)
            let error = outcome { try run(directory) }
            let call = watch.end(describing: index) ?? "a call that was not made"
            let comment: Comment = "\(call) fails \(manner): \(error.map { "\($0)" } ?? "done")"
            // Runs differ by some calls, so that another one may have failed than was chosen.
            if answers.contains(where: call.hasPrefix) { return (call, error) }
            let state = error.map(state) ?? .done
            expectPlainWords(error, comment)
            // SQLCipher tells a failure of OpenSSL as want of memory. After that no connection is closed, so its file is in use
            // as long as the process lives: see StoreOpening.open().
            let isAbandoned = manner == .openSSL && error?.code == SQLITE_NOMEM
            guard !isAbandoned else {
                #expect(throws: Never.self, comment) { try check(directory, state) }
                return (call, error)
            }
            expect(state, directory, comment)
            if state == .undone {
                #expect(throws: Never.self, comment) { try run(directory) }
                expect(.done, directory, comment)
            }
            return (call, error)
        }
    }

    private func watch(_ directory: TemporaryDirectory, _ manner: Manner, failing index: Int? = nil) -> CallWatch {
        switch manner {
        case .alone: CallWatch(directory.path, failing: index.map { $0...$0 })
        case .lasting: CallWatch(directory.path, failing: index.map { $0...Int.max }, code: 0)
        case .openSSL: CallWatch(openSSLFailing: index.map { $0...$0 })
        }
    }

    private func expect(_ state: State, _ directory: TemporaryDirectory, _ comment: Comment) {
        #expect(descriptors(below: directory.path) == [], comment)
        #expect(throws: Never.self, comment) { try check(directory, state) }
    }

    /// The calls of a run in which none fails.
    private func countedRun(_ manner: Manner) throws -> [String] {
        let directory = try TemporaryDirectory()
        try prepare(directory)
        let watch = watch(directory, manner)
        try run(directory)
        let calls = watch.endWithAll()
        try check(directory, .done)
        #expect(descriptors(below: directory.path) == [])
        try #require(!calls.isEmpty)
        return calls
    }

    /// Of each kind of call to a file the first, and the last, too, if it fails alone; of OpenSSL's, which are many and say
    /// nothing of what they are for, also some between these; or all of them.
    private func chosen(_ calls: [String], _ manner: Manner) -> [Int] {
        guard !isComplete else { return Array(calls.indices) }
        var first: [String: Int] = [:]
        var last: [String: Int] = [:]
        for (index, call) in calls.enumerated() {
            if first[call] == nil { first[call] = index }
            last[call] = index
        }
        var all = Set(first.values)
        if manner != .lasting { all.formUnion(last.values) }
        if manner == .openSSL, callsBetween > 0 {
            all.formUnion(stride(from: 0, to: calls.count, by: max(1, calls.count / callsBetween)))
        }
        let failing = all.filter { index in !answers.contains { calls[index].hasPrefix($0) } }.sorted()
        let start = Int.random(in: 0..<CallSweep.step)
        return failing.enumerated().filter { ($0.offset + start) % CallSweep.step == 0 }.map(\.element)
    }

    /// Where tests take long, as under a sanitizer, one of so many calls fails in a run.
    private static let step = max(1, number("SWEEP_STEP") ?? 1)

    private static func number(_ variable: String) -> Int? {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) }
    }

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
