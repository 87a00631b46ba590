import Foundation
import Testing

@testable import SealedDB

/// What prepared statements do at the edges: values for parameters that they do not have, rows that they do not have,
/// texts that begin like a byte order mark.
@Suite(.hangLimit)
struct StatementEdgeTests {
    private let database: Database
    private let connection: Connection

    init() throws {
        database = Database(path: ":memory:")
        try database.openVerified()
        connection = try #require(database.connection)
    }

    @Test(arguments: [0, 2]) func aParameterThatIsNotThere(index: Int32) throws {
        let statement = try connection.prepare("SELECT ?")
        defer { statement.close() }
        func expectRange(_ bind: () throws -> Void) {
            let error = #expect(throws: DatabaseError.self, performing: bind)
            #expect(error?.code == SQLITE_RANGE)
        }
        expectRange { try statement.bindNull(at: index) }
        expectRange { try statement.bind(Int64(1), at: index) }
        expectRange { try statement.bind(1.5, at: index) }
        expectRange { try statement.bind("a", at: index) }
        expectRange { try statement.bind(Data([1]), at: index) }
        expectRange { try Array("a".utf8).withUnsafeBytes { bytes in try statement.bindText(bytes, at: index) } }
        expectRange { try statement.bind([UInt16(0x61)], at: index) }
        let source = try connection.prepare("SELECT 1")
        defer { source.close() }
        #expect(try source.step())
        expectRange { try statement.bind(column: 0, of: source, at: index, isUTF16: false) }
        #expect(try statement.step())
        #expect(statement.type(at: 0) == .null)
    }

    // MARK: Texts in UTF-16

    @Test(arguments: [[0xfffe, 0x61], [0xfeff, 0x61], [0x61], []] as [[UInt16]])
    func unitsAreBoundAsTheyAre(units: [UInt16]) throws {
        let statement = try connection.prepare("SELECT ?")
        defer { statement.close() }
        try statement.bind(units, at: 1)
        #expect(try statement.step())
        #expect(statement.type(at: 0) == .text)
        #expect(statement.text(at: 0).map { Array($0.utf16) } == units)
    }

    /// From a store in UTF-16, with the same type and the same bytes.
    @Test(arguments: [
        "x'fffe6100'", "char(0xfeff) || 'a'", "char(0xfffe) || 'a'", "'a'", "7", "NULL",
    ])
    func valuesAreCopiedAsTheyAre(value: String) throws {
        let other = Database(path: ":memory:")
        try other.openVerified()
        defer { other.close() }
        for database in [database, other] { #expect(database.executeStatements("PRAGMA encoding = 'UTF-16le'")) }
        let target = try #require(other.connection)
        try target.run("CREATE TABLE t (v)")
        let source = try connection.prepare(
            "SELECT \(value) AS v, typeof(v), hex(CAST(v AS BLOB)) FROM (SELECT \(value) AS v)"
        )
        defer { source.close() }
        #expect(try source.step())
        let insertion = try target.prepare("INSERT INTO t VALUES (?)")
        defer { insertion.close() }
        try insertion.bind(column: 0, of: source, at: 1, isUTF16: true)
        #expect(try !insertion.step())
        #expect(try target.text("SELECT typeof(v) FROM t") == source.text(at: 1))
        #expect(try target.text("SELECT hex(CAST(v AS BLOB)) FROM t") == source.text(at: 2))
    }

    // MARK: Rows as bytes

    @Test(arguments: [true, false]) func aRowInPieces(isUTF16: Bool) throws {
        try connection.run("PRAGMA encoding = 'UTF-16le'")
        let statement = try connection.prepare("SELECT 'abc', x'0102', 7, NULL, 1.5, ''")
        defer { statement.close() }
        #expect(throws: DatabaseError.self) { try statement.forEachPiece(isUTF16: isUTF16) { _ in } }
        #expect(try statement.step())
        var pieces: [UInt8] = []
        try statement.forEachPiece(isUTF16: isUTF16) { pieces += $0 }
        var whole = [UInt8](repeating: 0, count: 1000)
        let count = try whole.withUnsafeMutableBytes { try statement.write(into: $0, isUTF16: isUTF16) }
        #expect(try pieces == Array(whole[..<#require(count)]))
        #expect(try !statement.step())
        #expect(throws: DatabaseError.self) { try statement.forEachPiece(isUTF16: isUTF16) { _ in } }
    }

    /// To ask for a column that is not there is no failure of the connection's.
    @Test func aColumnThatIsNotThere() throws {
        let statement = try connection.prepare("SELECT 'a'")
        defer { statement.close() }
        #expect(try statement.step())
        guard case .null = statement.heldValue(at: 1) else {
            Issue.record("a value")
            return
        }
        #expect(connection.lastCode != SQLITE_RANGE)
    }

    // MARK: What is known of a statement

    @Test func whatIsExplainedDoesNothing() throws {
        for (sql, isExplained) in [("", false), ("EXPLAIN ", true), ("EXPLAIN QUERY PLAN ", true)] {
            func prepared(_ statement: String) throws -> PreparedStatement {
                let statement = try connection.prepare(sql + statement)
                defer { statement.close() }
                return statement.prepared
            }
            #expect(try prepared("BEGIN").controlsTransaction == !isExplained)
            #expect(try prepared("SAVEPOINT a").controlsSavepoint == !isExplained)
            #expect(try prepared("ATTACH ':memory:' AS a").changesAttachments == !isExplained)
            if isExplained { #expect(try prepared("PRAGMA optimize").isReadOnly) }
        }
        let queue = try #require(DatabaseQueue(path: nil))
        let program = try queue.write { db in try db.integers("EXPLAIN COMMIT") }
        #expect(!program.isEmpty)
    }

    @Test func aWriterThatDoesNotRun() throws {
        try database.addFunction("isRunning", argumentCount: 0) { [unowned connection] _ in
            SQLValue(connection.hasRunningWriter)
        }
        try connection.run("CREATE TABLE t (a)")
        let statement = try connection.prepare("INSERT INTO t VALUES (1), (2) RETURNING isRunning()")
        defer { statement.close() }
        #expect(!connection.hasRunningWriter)
        #expect(try statement.step())
        #expect(statement.int64(at: 0) == 1)
    }

    @Test func values() {
        #expect(SQLValue(true) == .integer(1) && SQLValue(false) == .integer(0))
        #expect((true as SQLValue) == .integer(1) && (false as SQLValue) == .integer(0))
    }

    // MARK: Failures

    @Test func theFirstOfSeveralFailuresIsKept() {
        let errors = [SQLITE_FULL, SQLITE_IOERR].map { code in DatabaseError(extendedCode: code, message: "a") }
        for error in errors { connection.noteUnnoticed(error) }
        #expect(connection.takeUnnoticedFailure() == errors[0])
        #expect(connection.takeUnnoticedFailure() == nil)
    }

    @Test func onlySomeThrownErrorsAreKept() {
        struct Failure: Error { let number: Int }
        var thrown = ThrownErrors()
        let codes = (1...9).map { thrown.keep(Failure(number: $0), message: "a") }
        let taken = codes.map { (thrown.take($0, sql: nil)?.underlyingError as? Failure)?.number }
        #expect(taken == [nil] + Array(2...9))
    }

    // MARK: Interrupts

    /// An interrupt stops every statement as long as one runs or a blob is open.
    @Test(arguments: [true, false]) func aPragmaIsSetBackAfterAnInterrupt(isBlob: Bool) throws {
        try connection.run("CREATE TABLE t (a)")
        try connection.run("INSERT INTO t VALUES (x'00'), (x'01')")
        let rows = isBlob ? nil : try database.executeQuery("SELECT * FROM t")
        if let rows { #expect(rows.next()) }
        let blob = isBlob ? try database.openBlob(table: "t", column: "a", rowID: 1) : nil
        try connection.with("query_only", true) { connection.interrupt() }
        #expect(try connection.integer("PRAGMA query_only") == 0)
        withExtendedLifetime((rows, blob)) {}
    }

    @Test func aPragmaThatCannotBeSetBack() throws {
        let statement = try connection.prepare("VALUES (1), (2)")
        #expect(try statement.step())
        let error = #expect(throws: DatabaseError.self) {
            try connection.with("query_only", true) { connection.interrupt() }
        }
        #expect(error?.code == SQLITE_INTERRUPT)
        statement.close()
        #expect(try connection.integer("PRAGMA query_only") == 1)
    }

    /// What has to be rolled back stays so until that was done.
    @Test func aRollbackThatIsOwed() throws {
        try connection.run("CREATE TABLE t (a)")
        try connection.run("BEGIN")
        try connection.run("INSERT INTO t VALUES (1)")
        // Compiled before the interrupt, which stops that too.
        let next = try connection.prepare("SELECT 1")
        defer { next.close() }
        let statement = try connection.prepare("VALUES (1), (2)")
        #expect(try statement.step())
        connection.interrupt()
        #expect(!connection.rollBack())
        connection.owesRollback = true
        let error = #expect(throws: DatabaseError.self) { try next.step() }
        #expect(error == .transactionLost)
        #expect(connection.owesRollback)
        statement.close()
        #expect(try connection.integer("SELECT count(*) FROM t") == 0)
        #expect(connection.isAutocommit && !connection.owesRollback)
    }

    /// Within the function that a statement calls nothing is rolled back.
    @Test func aRollbackThatIsOwedWithinAFunction() throws {
        try database.addFunction("owe", argumentCount: 0) { [unowned connection] _ in
            connection.owesRollback = true
            let value = try connection.integer("SELECT count(*) FROM t") ?? 0
            return .integer(connection.isAutocommit ? -1 : value)
        }
        try connection.run("CREATE TABLE t (a)")
        try connection.run("BEGIN")
        try connection.run("INSERT INTO t VALUES (1)")
        #expect(try connection.integer("SELECT owe()") == 1)
        #expect(!connection.isAutocommit)
        #expect(try connection.integer("SELECT count(*) FROM t") == 0)
        #expect(connection.isAutocommit)
    }
}
