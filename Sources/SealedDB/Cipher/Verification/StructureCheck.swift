/// SQLite's own check of the structure of a database. https://www.sqlite.org/pragma.html#pragma_quick_check
struct StructureCheck {
    let connection: Connection

    enum Depth: String {
        case quick = "quick_check"
        /// Also compares every index with its table.
        case deep = "integrity_check"

        /// How often each page is read, by estimate: SQLite follows the trees, and then reads the rows of the tables. A
        /// deep check looks each row up in its indexes, too.
        fileprivate var timesRead: Double { self == .deep ? 4 : 2 }
    }

    struct Findings: Equatable {
        /// In SQLite's words.
        var problems: [String]
        /// The tables that were checked less deeply than asked for.
        var tablesNotCompared: [String] = []

        fileprivate mutating func add(problem: String) {
            if problem != "ok", !problems.contains(problem) { problems.append(problem) }
        }

        fileprivate mutating func add(notCompared table: String) {
            if !tablesNotCompared.contains(table) { tablesNotCompared.append(table) }
        }
    }

    /// Checks what the connection reads.
    func findings(_ depth: Depth, _ report: ProgressReport) throws(DatabaseError) -> Findings {
        try report.whileReading(connection, .structure, timesRead: depth.timesRead) { () throws(DatabaseError) in
            try findings(depth)
        }
    }

    /// Checks pages as they are authenticated and decrypted without SQLCipher.
    /// - Parameter connection: the one that otherwise would read them.
    /// - Returns: `nil` if SQLite asked for a page that is not authentic.
    static func findings(
        _ depth: Depth,
        in pages: AuthenticPages,
        instead connection: Connection,
        _ report: ProgressReport
    ) throws(DatabaseError) -> Findings? {
        do throws(DatabaseError) {
            let reader = try ServedFile(pages).open()
            defer { reader.close() }
            try keepPages(reader)
            if try connection.integer("PRAGMA ignore_check_constraints") == 1 {
                try reader.run("PRAGMA ignore_check_constraints = ON")
            }
            let findings = try StructureCheck(connection: reader).findings(depth, report)
            // What SQLite was not given, it may have told as damage.
            if let failure = pages.failure { throw failure }
            return pages.isRefused ? nil : findings
        } catch {
            guard error.reason != .interrupted else { throw error }
            if let failure = pages.failure { throw failure }
            guard pages.isRefused else { throw error }
            return nil
        }
    }

    /// Rows are looked up in indexes in no order. With SQLite's own cache, pages would be read and authenticated twenty times.
    static func keepPages(_ connection: Connection) throws(DatabaseError) {
        try connection.run("PRAGMA cache_size = -65536")
    }

    func findings(_ depth: Depth) throws(DatabaseError) -> Findings {
        let answer = try answer("PRAGMA \(depth.rawValue)")
        if answer.failure?.code == SQLITE_ERROR { return try tableByTable(depth) }
        var findings = Findings(problems: [])
        try add(answer, to: &findings)
        if let failure = answer.failure { findings.add(problem: failure.message) }
        return findings
    }

    /// What a check says, and the error that has ended it early: what it said before counts.
    private typealias CheckAnswer = (problems: [String], failure: DatabaseError?)

    private func answer(_ sql: String) throws(DatabaseError) -> CheckAnswer {
        var problems: [String] = []
        do throws(DatabaseError) {
            let statement = try connection.prepare(sql)
            defer { statement.close() }
            while try statement.step() { problems.append(statement.text(at: 0) ?? "") }
        } catch {
            guard error.code == SQLITE_ERROR || error.isOfStructure else { throw error }
            return (problems, error)
        }
        return (problems, nil)
    }

    private func add(_ answer: CheckAnswer, to findings: inout Findings) throws(DatabaseError) {
        for problem in answer.problems {
            if let table = try fullTextTableWithoutContents(problem) {
                findings.add(notCompared: table)
            } else {
                findings.add(problem: problem)
            }
        }
    }

    /// The table of FTS3 or FTS4 of which SQLite says that it cannot be validated, if its contents need not be there.
    private func fullTextTableWithoutContents(_ problem: String) throws(DatabaseError) -> String? {
        let end = ": SQL logic error"
        guard problem.begins(with: "unable to validate the inverted index"), problem.ends(with: end),
            let start = problem.range(of: " table main.")
        else { return nil }
        let table = String(problem[start.upperBound...].dropLast(end.count))
        // https://www.sqlite.org/fts3.html#the_content_option_
        let sql = "SELECT sql FROM sqlite_schema WHERE name = \(table.quoted(by: "'")) AND sql LIKE '%content%'"
        return try connection.texts(sql).isEmpty ? nil : table
    }

    /// The problems of pages and B-trees, in SQLite's words. Does not compare rows with the constraints of their
    /// tables.
    func pageProblems(goesOn: () -> Bool) throws(DatabaseError) -> [String] {
        do throws(DatabaseError) {
            return try connection.pageProblems(goesOn: goesOn)
        } catch {
            guard error.code == SQLITE_ERROR else { throw error }
            return try tableByTable(.quick).problems
        }
    }

    /// The first of these problems, or why the pages cannot be read; `nil` if there are none.
    /// - Parameter goOn: called now and then. If it throws, the check ends so.
    func pageProblem(goOn: () throws(DatabaseError) -> Void) throws(DatabaseError) -> String? {
        var stop: DatabaseError?
        do throws(DatabaseError) {
            return try pageProblems {
                do throws(DatabaseError) {
                    try goOn()
                    return true
                } catch {
                    stop = error
                    return false
                }
            }.first
        } catch {
            if let stop { throw stop }
            guard error.isOfDamage else { throw error }
            return error.message
        }
    }

    /// For schemas that name a collation, function or tokenizer that only the program that wrote them has, and for
    /// expressions that fail. A deep check compares each table separately. All pages are checked, but not what the rows mean
    /// to that program: whether rows and indexes of such a table belong together, only that program can tell.
    private func tableByTable(_ depth: Depth) throws(DatabaseError) -> Findings {
        try connection.run("PRAGMA ignore_check_constraints = ON")
        let tables = try connection.texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
        var findings = Findings(problems: [])
        if depth == .deep {
            // What a virtual table holds stands in other tables. Only its module knows what that means.
            for name in try connection.texts("SELECT name FROM sqlite_schema WHERE type = 'table'") {
                let answer = try answer("PRAGMA integrity_check(\(name.quoted(by: "'")))")
                try add(answer, to: &findings)
                // FTS5 of SQLite 3.53 says no more if it lacks a tokenizer; that of 3.46 names it.
                let isOfModule = !tables.contains(name) && answer.failure?.message == "SQL logic error"
                if isOfModule { findings.add(notCompared: name) } else { add(answer.failure, of: name, to: &findings) }
            }
        }
        connection.acceptUnknownCollations()
        connection.dropModules()
        // Tables that have their module keep it.
        connection.forgetSchema()
        // Only a check of the whole file finds pages that two tables have, or none, and looks at the list of free pages. It ends at
        // the first expression that fails.
        let whole = try answer("PRAGMA \(Depth.quick.rawValue)")
        try add(whole, to: &findings)
        guard let failure = whole.failure else { return findings }
        var isOfTable = false
        for name in tables {
            let answer = try answer("PRAGMA quick_check(\(name.quoted(by: "'")))")
            try add(answer, to: &findings)
            add(answer.failure, of: name, to: &findings)
            isOfTable = isOfTable || answer.failure != nil
        }
        if !isOfTable { findings.add(problem: failure.message) }
        return findings
    }

    private func add(_ failure: DatabaseError?, of table: String, to findings: inout Findings) {
        guard let failure else { return }
        if failure.code == SQLITE_ERROR, StructureCheck.isOfMissingName(failure) {
            findings.add(notCompared: table)
        } else {
            findings.add(problem: "\(table): \(failure.message)")
        }
    }

    /// Whether SQLite or its modules lack what the schema names.
    private static func isOfMissingName(_ error: DatabaseError) -> Bool {
        ["no such ", "unknown tokenizer", "unknown function", "unable to use function"]
            .contains { error.message.contains($0) }
    }
}
