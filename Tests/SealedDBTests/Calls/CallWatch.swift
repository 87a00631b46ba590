import CSealedDBSystem
import FailingCalls
import Foundation
import SealedDB

/// The calls of the system below a directory, from now until ``end(describing:)``.
struct CallWatch {
    private let number: Int32
    private let directory: String?

    /// A file that stays open, without a name. Before SQLite opens a file it asks for its status, if it has any other open.
    /// So a run makes the same calls as the one before, whatever other tests do.
    // Nobody uses it: it is only there.
    nonisolated(unsafe) private static let heldOpen: Database = {
        let path = NSTemporaryDirectory() + "sealeddb-" + UUID().uuidString
        let database = Database(path: path)
        precondition(database.open(), "no file can be held open")
        // It has no contents.
        unlink(path)
        return database
    }()

    /// - Parameters:
    ///   - directory: `nil` for the calls of this thread that concern no file.
    ///   - code: the error number; 0 for one that is likely for each call.
    init(_ directory: String?, failing calls: ClosedRange<Int>? = nil, code: Int32 = EIO) {
        self.directory = directory
        let (first, last) = (Int64(calls?.lowerBound ?? -1), Int64(calls?.upperBound ?? -1))
        precondition(CallWatch.heldOpen.isOpen, "no file is held open")
        // Otherwise how many calls a key takes would depend on those before it.
        if directory == nil { sealeddb_suspend_kept_pages(1) }
        number = failing_calls_begin(directory, first, last, code)
        precondition(number >= 0, "too many watches at once")
    }

    /// The calls of OpenSSL that this thread makes.
    init(openSSLFailing calls: ClosedRange<Int>? = nil) {
        directory = "OpenSSL"
        number = failing_calls_begin_openssl(Int64(calls?.lowerBound ?? -1), Int64(calls?.upperBound ?? -1))
        precondition(number >= 0, "too many watches at once")
    }

    /// - Returns: the call with this number, such as `fsync db`.
    @discardableResult
    func end(describing index: Int = -1) -> String? {
        defer { stop() }
        return describe(Int64(index))
    }

    func endWithAll() -> [String] {
        defer { stop() }
        return (0..<failing_calls_count(number)).compactMap { describe($0) }
    }

    private func stop() {
        failing_calls_end(number)
        if directory == nil { sealeddb_suspend_kept_pages(-1) }
    }

    private func describe(_ index: Int64) -> String? {
        var text = [CChar](repeating: 0, count: 1400)
        guard failing_calls_describe(number, index, &text, text.count) != 0 else { return nil }
        let call = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        // Leaves the name in the directory, and of a temporary file what is the same each time.
        return call.replacing(directory.map { $0 + "/" } ?? "", with: "")
            .replacing(/(sealdb-(?:[a-z]+-)?)[0-9a-f]{16}/) { "\($0.output.1)*" }
            .trimmingCharacters(in: .whitespaces)
    }
}
