import SealedDB
import Testing

@Suite(.hangLimit)
struct PlaintextSwitchTests {
    /// Only stores with a key are protected from SQL: ported code may do with others what SQLite lets it do.
    @Test func aDatabaseWithoutAKeyIsAsSQLiteHasIt() throws {
        let directory = try TemporaryDirectory()
        var configuration = Configuration()
        configuration.isDefensive = true
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        try database.run("CREATE VIRTUAL TABLE search USING fts5(body)")
        try database.run("DELETE FROM search_data")
        #expect(try database.value("PRAGMA journal_mode = OFF") == "off")
        database.close()
    }
}
