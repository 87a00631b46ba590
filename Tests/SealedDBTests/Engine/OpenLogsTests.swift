import Foundation
import Testing

@testable import SealedDB

/// What this process knows of the logs that its own connections have open.
@Suite(.hangLimit)
struct OpenLogsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func status(_ name: String) throws -> stat { try FileSystem.status(directory.file(name)) }

    @Test func aLogIsKnownAsLongAsItIsOpen() throws {
        let store = try Database.testing(directory.file("db"), journalMode: .wal)
        try store.fill(rows: 3)
        let other = try Database.testing(directory.file("other"), journalMode: .delete)
        try other.fill(rows: 3)
        #expect(other.close())
        let (log, index) = (try status("db-wal"), try status("db-shm"))
        let (own, others) = (try status("db"), try status("other"))
        // Files of other tests do not get their numbers.
        for name in ["db-wal", "db-shm"] {
            try #require(link(directory.file(name), directory.file("kept-" + name)) == 0)
        }
        func uses(_ log: stat?, _ index: stat?, for store: stat) -> Bool? {
            OpenLogs.use(ofLog: log, index, for: store)
        }
        #expect(uses(log, nil, for: own) == true)
        #expect(uses(nil, index, for: own) == true)
        #expect(uses(log, nil, for: others) == false)
        #expect(uses(nil, index, for: others) == false)
        #expect(uses(others, others, for: own) == nil)
        // A second connection has the same files.
        let second = try Database.testing(directory.file("db"))
        #expect(try second.integers("SELECT count(*) FROM t") == [3])
        #expect(store.close())
        #expect(uses(log, nil, for: own) == true && uses(nil, index, for: own) == true)
        #expect(second.close())
        #expect(uses(log, nil, for: own) == nil && uses(nil, index, for: own) == nil)
    }
}
