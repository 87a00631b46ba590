internal import SQLiteEngine

/// The part of SQLite's structure check that concerns pages. https://www.sqlite.org/pragma.html#pragma_quick_check
extension Connection {
    /// Returns what is wrong with pages and b-trees, in SQLite's words. Each page is read once: this is
    /// `PRAGMA quick_check` up to the point where it reads all tables again, to check rows against their constraints.
    /// Copying pages cannot have changed rows: a row that violates a constraint did so in the source too.
    ///
    /// That point is recognized by the first loop that runs, because the statement's program has none before. If the
    /// engine's program differs from the known one, all of `quick_check` runs, and every finding counts.
    /// - Parameter goesOn: called repeatedly; returning false stops the check with `SQLITE_INTERRUPT`.
    func pageProblems(goesOn: () -> Bool) throws(DatabaseError) -> [String] {
        let sql = "PRAGMA main.quick_check"
        let checksPagesFirst = try checksPagesFirst(sql)
        let statement = try prepare(sql)
        defer { statement.close() }
        guard let handle, let pointer = statement.pointer else { throw .notOpen }
        var rows: [String] = []
        var failure: DatabaseError?
        let isAtRows = withoutActuallyEscaping(goesOn) { goesOn in
            let watch = Watch(statement: pointer, checksPagesFirst: checksPagesFirst, goesOn: goesOn)
            return withExtendedLifetime(watch) {
                sqlite3_progress_handler(
                    handle,
                    1000,
                    { Unmanaged<Watch>.fromOpaque($0!).takeUnretainedValue().mustStop ? 1 : 0 },
                    Unmanaged.passUnretained(watch).toOpaque()
                )
                defer { sqlite3_progress_handler(handle, 0, nil, nil) }
                do throws(DatabaseError) {
                    while try statement.step() { rows.append(statement.text(at: 0) ?? "") }
                } catch {
                    failure = error
                }
                return watch.isAtRows
            }
        }
        if let failure, failure.code != SQLITE_INTERRUPT || !isAtRows { throw failure }
        return rows.filter { checksPagesFirst ? $0.hasPrefix(Connection.pageProblemsStart) : $0 != "ok" }
    }

    /// The prefix of the one row that reports all page problems.
    private static let pageProblemsStart = "*** in database main ***\n"

    private final class Watch {
        private let statement: OpaquePointer
        private let checksPagesFirst: Bool
        private let goesOn: () -> Bool
        private(set) var isAtRows = false

        init(statement: OpaquePointer, checksPagesFirst: Bool, goesOn: @escaping () -> Bool) {
            self.statement = statement
            self.checksPagesFirst = checksPagesFirst
            self.goesOn = goesOn
        }

        var mustStop: Bool {
            // Counter 0 has no name in SQLite's API. It counts the loops that are not full scans of a query. If it
            // never counted, the statement would only run to its end.
            if checksPagesFirst, sqlite3_stmt_status(statement, 0, 0) > 0 { isAtRows = true }
            return isAtRows || !goesOn()
        }
    }

    /// Whether the program checks the pages in one instruction, reports its findings, and runs every loop after that.
    /// https://www.sqlite.org/opcode.html
    private func checksPagesFirst(_ sql: String) throws(DatabaseError) -> Bool {
        let statement = try prepare("EXPLAIN \(sql)")
        defer { statement.close() }
        var operations: [String] = []
        var tellsProblems = false
        while try statement.step() {
            operations.append(statement.text(at: 1) ?? "")
            if statement.text(at: 5) == Connection.pageProblemsStart { tellsProblems = true }
        }
        let loops: Set<String> = ["Next", "Prev", "VNext", "SorterNext"]
        guard tellsProblems, let check = operations.firstIndex(of: "IntegrityCk"),
            operations.lastIndex(of: "IntegrityCk") == check,
            let loop = operations.firstIndex(where: { loops.contains($0) })
        else { return false }
        return check < loop
    }
}
