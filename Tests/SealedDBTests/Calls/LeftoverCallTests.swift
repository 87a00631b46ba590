import Foundation
import Testing

@testable import SealedDB

/// Whatever call of the system or of OpenSSL fails while a store is opened or recovered that a killed process has left with a
/// log or a journal, no committed row is lost, and none of the transaction that was cut off stays.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct LeftoverCallTests {
    typealias Manner = CallSweep.Manner

    enum Leftover: CaseIterable, Sendable { case log, journal }

    private static let rows = 60

    /// A store as a killed process leaves it: all rows are committed, some of them in the log; or a transaction that has deleted
    /// them is in the file, and its journal beside it.
    private static func make(_ directory: TemporaryDirectory, _ leftover: Leftover) throws {
        let other = try TemporaryDirectory()
        let database = try Database.testing(other.file("db"), journalMode: leftover == .log ? .wal : .delete)
        defer { database.close() }
        try database.fill(rows: rows)
        try database.spillChanges()
        if leftover == .journal {
            try database.execute(script: "BEGIN; UPDATE t SET body = 'changed' || hex(zeroblob(500))")
        }
        for suffix in ["", leftover == .log ? "-wal" : "-journal"] {
            try directory.write("db" + suffix, other.bytes("db" + suffix))
        }
    }

    @Test(arguments: [Manner.alone, .openSSL], Leftover.allCases)
    func opening(_ manner: Manner, _ leftover: Leftover) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, leftover) },
            run: { try StoreCallTests.requireRows($0) },
            check: { directory, _ in try StoreCallTests.requireRows(directory) }
        )
        try sweep(manner)
    }

    @Test(arguments: [Manner.alone, .openSSL], Leftover.allCases)
    func recovery(_ manner: Manner, _ leftover: Leftover) throws {
        let sweep = CallSweep(
            prepare: { try Self.make($0, leftover) },
            run: { directory in
                let path = directory.file("db")
                let report = try StoreRecovery(path: path, key: .testing(1), to: directory.file("new")).run()
                guard report.isComplete else { throw Self.incomplete }
            },
            check: { directory, state in
                if state == .done { try StoreCallTests.requireRows(directory, "new") }
                if state == .undone { try #require(!directory.names.contains("new")) }
                try StoreCallTests.requireRows(directory)
            },
            state: { error in
                if error == Self.incomplete { return .either }
                return error.message.contains("is complete, but") ? .done : .undone
            }
        )
        // What a disk cannot read is left out, and told. Nothing else is left out.
        for (call, error) in try sweep(manner) where error == Self.incomplete {
            #expect(call.hasPrefix("pread "), "\(call)")
        }
    }

    private static let incomplete = DatabaseError(extendedCode: 1, message: "The report says what is missing.")
}
