import Foundation
import Testing

@testable import SealedDB

/// An operation on files of which one call of the system fails: what it gives or throws, and what it leaves.
struct FailedCall<Value> {
    let value: Value?
    let error: DatabaseError?
    let directory: TemporaryDirectory

    /// - Parameters:
    ///   - call: such as `fstat`, or `fstat name` for those of one file.
    ///   - number: which of these calls, from 0.
    ///   - prepare: makes the files that the body needs.
    init(
        _ call: String,
        _ code: Int32 = EIO,
        number: Int = 0,
        prepare: (TemporaryDirectory) throws -> Void = { _ in },
        _ body: (TemporaryDirectory) throws -> Value
    ) throws {
        let model = try TemporaryDirectory()
        try prepare(model)
        let count = CallWatch(model.path)
        let made = Result { _ = try body(model) }
        let calls = count.endWithAll()
        try made.get()
        let all = calls.indices.filter { calls[$0] == call || calls[$0].hasPrefix(call + " ") }
        let index = try #require(all.dropFirst(number).first, "\(calls)")

        let directory = try TemporaryDirectory()
        try prepare(directory)
        let watch = CallWatch(directory.path, failing: index...index, code: code)
        let outcome = Result { try body(directory) }
        let failed = watch.end(describing: index)
        #expect(failed?.hasPrefix(call) == true, "\(calls)")
        self.directory = directory
        switch outcome {
        case .success(let found): (value, error) = (found, nil)
        case .failure(let failure as DatabaseError): (value, error) = (nil, failure)
        case .failure(let failure): throw failure
        }
    }

    /// What this process has open there.
    var open: [String] { filesOpen(below: directory) }
}

/// What this process has open of a directory.
func filesOpen(below directory: TemporaryDirectory) -> [String] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return all.compactMap { descriptor in
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
    }.filter { $0.hasPrefix(directory.path + "/") || $0 == directory.path }
}
