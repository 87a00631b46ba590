import SealedDB

/// An error that has rolled a transaction back.
struct LostTransaction: Error {
    let error: any Error

    var message: String {
        mayBeStored(error)
            ? "With it the transaction ended."
            : "With it the transaction was rolled back: nothing since BEGIN is stored."
    }
}

/// Whether the error is one of a commit that may have been stored.
private func mayBeStored(_ error: any Error) -> Bool {
    ((error as? LocatedError)?.error ?? error as? DatabaseError)?.mayBeStored ?? false
}

extension Shell {
    /// Runs statements, one by one.
    /// - Throws: ``LocatedError``, ``Failure``.
    func execute(_ sql: String) throws {
        let script = SQLScript(sql)
        try script.requireUsable()
        for (index, statement) in script.statements.enumerated() {
            let wasInTransaction = database.isInTransaction
            do {
                try interrupts?.requireNone()
                do {
                    try execute(statement)
                } catch let error as DatabaseError {
                    throw script.located(error, at: index)
                }
                if !database.isInTransaction { hasOpenCommit = false }
            } catch {
                hasOpenCommit = database.isInTransaction && (hasOpenCommit || mayBeStored(error))
                guard wasInTransaction, !database.isInTransaction else { throw error }
                throw LostTransaction(error: error)
            }
        }
    }

    private func execute(_ statement: SQLScript.Statement) throws {
        let times = ShellTimes()
        if showsPlans, !statement.isExplained { try showPlan(of: statement) }
        let rows = try start(statement.text, statement)
        defer { rows.close() }
        // What a statement returns is not shown before it is stored; in a script, neither is what a transaction returns.
        if !output.isHeld { try output.flush() }
        let wasHeld = output.isHeld
        output.isHeld = wasHeld || !rows.isReadOnlyStatement
        do {
            try write(rows, isExplained: statement.isExplained)
        } catch {
            if !wasHeld, output.isHeld { output.drop() }
            output.isHeld = wasHeld
            throw error
        }
        output.isHeld = interrupts == nil && database.isInTransaction
        if wasHeld, !output.isHeld, statement.verb == "ROLLBACK" { output.drop() }
        if !output.isHeld { try output.flush() }
        if showsChanges, statement.countsChanges, !rows.isReadOnlyStatement {
            try report("changes: \(database.changes)\n")
        }
        if showsTimes { try report(times.text() + "\n") }
    }

    private func start(_ sql: String, _ statement: SQLScript.Statement) throws -> ResultSet {
        let names = statement.parameterNames
        let values = parameters.filter { names.contains($0.key) }
        do {
            guard !values.isEmpty else { return try database.executeQuery(sql, values: []) }
            return try database.executeQuery(sql, values)
        } catch {
            // A parameter has no value.
            throw error.reason == .misuse || error.code == SQLITE_RANGE ? Failure(.usage, error.message) : error
        }
    }

    private func write(_ rows: ResultSet, isExplained: Bool) throws {
        try rows.writeAll(
            // SQLite itself ends a statement that writes.
            check: { try interrupts?.requireNone() },
            remark: {
                database.isInTransaction
                    ? " The statement was executed, within the open transaction."
                    : " The statement was executed, and what it changed is stored."
            }
        ) {
            let plan = isExplained ? PlanWriter(rows, output) : nil
            return plan ?? resultWriter(to: output)
        }
    }

    func resultWriter(to output: ResultOutput) -> any ResultWriter {
        format.writer(to: output, style, table: targetTable)
    }

    private func showPlan(of statement: SQLScript.Statement) throws {
        let rows = try start("EXPLAIN QUERY PLAN " + statement.text, statement)
        defer { rows.close() }
        try write(rows, isExplained: true)
    }

    /// The names of tables, views, indexes and columns, for completion.
    func names() -> [String] {
        // If the store is locked or damaged, no name is completed.
        let objects = try? database.executeQuery("SELECT name, type FROM sqlite_schema").all((String, String).self)
        var names: [String] = []
        for (name, type) in objects ?? [] {
            if !name.foldedForSQL.begins(with: "sqlite_") { names.append(name) }
            guard ["table", "view"].contains(type),
                // A view may be of what is no longer there: it has no columns.
                let columns = try? database.executeQuery("PRAGMA main.table_info(\(identifier: name))")
            else { continue }
            defer { columns.close() }
            while columns.next() { if let column = columns.string(forColumn: "name") { names.append(column) } }
        }
        return names
    }
}
