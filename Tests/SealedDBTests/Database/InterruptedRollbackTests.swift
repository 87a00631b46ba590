import Testing

@testable import SealedDB

/// Transactions of the library that an interrupt meets. SQLite stops every statement until none runs any more, ROLLBACK too.
@Suite(.hangLimit)
struct InterruptedRollbackTests {
    private struct Stop: Error {}
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ name: String?) throws -> Database {
        let key = isEncrypting && name != nil ? try Key.testing(1) : nil
        let database = Database(path: name.map { directory.file($0) }, configuration: Configuration(key: key))
        try database.openVerified()
        return database
    }

    /// As a program would that stops what it no longer waits for, while rows of another query are still open.
    @Test func anInterruptLeavesNoTransaction() throws {
        let source = try open("a")
        try source.fill(rows: 100)
        let rows = try source.prepare("SELECT id FROM t")
        #expect(try rows.nextWithError())
        let connection = try source.openConnection()
        #expect(throws: DatabaseError.self) {
            try connection.snapshot { () throws(DatabaseError) in
                source.interrupt()
                try connection.run("SELECT 1")
            }
        }
        #expect(!source.isInTransaction && source.isOpen)
        // Until then the interrupt holds.
        rows.close()
        try source.run("INSERT INTO t (body) VALUES ('later')")
        #expect(try open("a").value("SELECT count(*) FROM t") == 101)
    }

    /// What is in memory is lost when it is closed. Both keep the interrupt from ending.
    @Test(arguments: [true, false])
    func anInterruptedRollbackKeepsWhatIsInMemory(isBlob: Bool) throws {
        let database = try open(nil)
        try database.fill(rows: 10)
        let rows = try database.prepare("SELECT id FROM t")
        let blob = isBlob ? try database.openBlob(table: "t", column: "body", rowID: 1) : nil
        if !isBlob { #expect(try rows.nextWithError()) }
        #expect(throws: Stop.self) {
            try database.inTransaction {
                try database.run("DELETE FROM t")
                database.interrupt()
                throw Stop()
            }
        }
        #expect(database.isOpen && !database.isInTransaction)
        #expect(try database.value("SELECT count(*) FROM t") == 10)
        // Ended by that.
        if let blob { #expect(throws: DatabaseError.self) { try blob.read(count: 1) } }
    }

    /// There it cannot be rolled back at once: the statement that called the function still runs.
    @Test func anInterruptWithinAFunction() throws {
        let database = try open("a")
        try database.fill(rows: 10)
        database.makeFunctionNamed("f", arguments: 0) { [unowned database] _, _, _ in
            // What it throws is not what is looked at.
            try? database.inTransaction {
                try database.run("DELETE FROM t")
                database.interrupt()
                throw Stop()
            }
        }
        #expect(throws: DatabaseError.self) { try database.rows("SELECT f() FROM t") }
        try database.run("INSERT INTO t (body) VALUES ('later')")
        #expect(!database.isInTransaction && database.close())
        #expect(try open("a").value("SELECT count(*) FROM t") == 11)
    }
}
