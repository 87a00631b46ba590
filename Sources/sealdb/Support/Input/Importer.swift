import Foundation
import SealedDB

/// Fills one table from delimited text in a single transaction: either all rows are stored or none.
struct Importer {
    let input: InputFile
    let format: DelimitedFormat
    let table: String
    /// Whether rows may be added to an existing table.
    let appends: Bool
    /// Whether a first pass over the data determines the types of the columns.
    let guessesTypes: Bool
    var style = DelimitedStyle()
    /// Whether the first record names the columns.
    var hasHeader = true
    /// The names of the columns, instead of those in the file.
    var names: [String]?
    /// Types that are not guessed, by the names of columns. Only for a new table.
    var types: [ExactText: ColumnType] = [:]
    /// The columns by which a row is found that takes the values of one in the file; none if all rows are new.
    var keys: [String] = []
    /// Where rows go that cannot be stored; without it one such row ends the import.
    var rejects: RejectedRows?
    let progress: ProgressReporter

    private struct Column {
        let name: String
        let type: ColumnType
    }

    /// Imports the file.
    /// - Returns: the number of rows.
    func run(on database: Database) throws -> Int {
        do {
            return try importRows(database)
        } catch let error as DelimitedError {
            throw Failure(.data, "\(input.name), line \(error.line): \(error.reason). Nothing was imported.")
        }
    }

    private func importRows(_ database: Database) throws -> Int {
        if try exists(in: database) && !appends { throw tableExists }
        if try !keys.isEmpty && !exists(in: database) {
            throw Failure(.data, "There is no table \(table) with rows to replace. Nothing was imported.")
        }
        var header: [String] = []
        var guesses: [ColumnGuess] = []
        if guessesTypes && input.isRegular && !appends {
            // Errors in the file are found here, before the store is locked.
            (header, guesses) = try survey(database)
            try input.rewind()
        }
        var reader = DelimitedReader(format: format, style: style, file: input)
        let names = try readHeader(&reader, database)
        if hasHeader { try rejects?.write(reader.record) }
        if header.isEmpty {
            guesses = names.map { _ in ColumnGuess() }
        } else if names != header {
            throw changed
        }
        return try database.inTransaction {
            let columns =
                try exists(in: database)
                ? try existingColumns(names, in: database)
                : try createTable(columns(names, guesses), in: database)
            let count = try insert(&reader, columns: columns, into: database)
            guard try input.isUnchanged() else { throw changed }
            // Rows that are not stored are safe before the others are.
            try rejects?.finish()
            return count
        }
    }

    private func columns(_ names: [String], _ guesses: [ColumnGuess]) throws(Failure) -> [Column] {
        for name in types.keys where !names.contains(where: { ExactText(name: $0) == name }) {
            throw Failure(.usage, "--types names the column \(name.text), which the data does not have.")
        }
        return zip(names, guesses).map { Column(name: $0, type: types[ExactText(name: $0)] ?? $1.type) }
    }

    private var changed: Failure {
        Failure(.inputOutput, "\(input.name) changed while it was read. Nothing was imported. Give a copy of it.")
    }

    // MARK: Reading

    /// The first pass: reads the header, and guesses the type of each column.
    private func survey(_ database: Database) throws -> ([String], [ColumnGuess]) {
        var reader = DelimitedReader(format: format, style: style, file: input)
        let names = try readHeader(&reader, database)
        var guesses = names.map { _ in ColumnGuess() }
        while try nextRow(&reader, phase: "read") {
            guard try counts(reader.record, names.count) else { continue }
            for index in names.indices { guesses[index].observe(reader.record.bytes(at: index)) }
        }
        return (names, guesses)
    }

    /// Whether the types of columns depend on the row: not on one that will be rejected.
    private func counts(_ record: DelimitedRecord, _ fieldCount: Int) throws(DelimitedError) -> Bool {
        do throws(DelimitedError) {
            try requireFields(fieldCount, record)
            try record.validateText()
            return true
        } catch {
            guard rejects == nil else { return false }
            throw error
        }
    }

    /// Reads the header, if there is one.
    /// - Returns: the names of the columns.
    private func readHeader(_ reader: inout DelimitedReader, _ database: Database) throws -> [String] {
        guard hasHeader else {
            let names = try names ?? declaredColumns(in: database).map(\.name)
            guard !names.isEmpty else {
                throw Failure(.usage, "There is no table \(table) that could name the columns. Give --columns.")
            }
            return names
        }
        guard try reader.next() else {
            throw DelimitedError(line: 1, reason: "the file is empty, without even a header row")
        }
        if let names {
            guard names.count == reader.record.fieldCount else {
                let found = reader.record.fieldCount
                throw DelimitedError(
                    line: 1,
                    reason: "--columns names \(names.count) columns, but the header has \(found)"
                )
            }
            return names
        }
        var names: [String] = []
        var seen: Set<ExactText> = []
        for index in 0..<reader.record.fieldCount {
            let name = try reader.record.text(at: index)
            if name.isEmpty {
                throw DelimitedError(line: reader.record.line, reason: "column \(index + 1) of the header has no name")
            }
            // Like SQLite, this compares names without regard to the case of ASCII letters.
            guard seen.insert(ExactText(name: name)).inserted else {
                throw DelimitedError(
                    line: reader.record.line,
                    reason: "column \(index + 1) of the header has the name of one before it"
                )
            }
            names.append(name)
        }
        if names.count > Importer.maximumColumnCount {
            throw DelimitedError(
                line: reader.record.line,
                reason: "the header has \(names.count) columns, but SQLite takes \(Importer.maximumColumnCount)"
            )
        }
        return names
    }

    /// SQLite's default for SQLITE_MAX_COLUMN. https://www.sqlite.org/limits.html
    private static let maximumColumnCount = 2000

    private func nextRow(_ reader: inout DelimitedReader, phase: String) throws -> Bool {
        if SignalWatch.wasInterrupted {
            throw DatabaseError(
                extendedCode: SQLITE_INTERRUPT,
                reason: .interrupted,
                message: "Interrupted. Nothing was imported."
            )
        }
        guard try reader.next() else { return false }
        progress.update(phase: phase, completed: input.position, total: input.size)
        return true
    }

    private func requireFields(_ count: Int, _ record: DelimitedRecord) throws(DelimitedError) {
        guard record.fieldCount == count else {
            let expectation = "expected \(count) field\(count == 1 ? "" : "s"), found \(record.fieldCount)"
            throw DelimitedError(
                line: record.line,
                reason: record.isBlankLine ? "\(expectation): the line is blank" : expectation
            )
        }
    }

    // MARK: Writing

    private func exists(in database: Database) throws -> Bool {
        let rows = try database.executeQuery(
            "SELECT 1 FROM main.sqlite_schema WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE",
            values: [table]
        )
        defer { rows.close() }
        return try rows.nextWithError()
    }

    private var tableExists: Failure {
        Failure(
            .cannotCreate,
            "The table \(table) exists already. Nothing was imported. Give --append to add rows to it."
        )
    }

    private func createTable(_ columns: [Column], in database: Database) throws -> [Column] {
        let definitions = columns.map { "\($0.name.quotedIdentifier) \($0.type.rawValue)" }
        try database.executeUpdate(
            "CREATE TABLE main.\(raw: table.quotedIdentifier) (\(raw: definitions.joined(separator: ", ")))",
            values: nil
        )
        return columns
    }

    /// The columns that the header names, with the types that the table declares for them.
    private func existingColumns(_ names: [String], in database: Database) throws -> [Column] {
        guard appends else { throw tableExists }
        let declared = try declaredColumns(in: database)
        return try names.map { name in
            let wanted = ExactText(name: name)
            guard let match = declared.first(where: { ExactText(name: $0.name) == wanted }) else {
                throw DelimitedError(line: 1, reason: "the table \(table) has no column \(name)")
            }
            return match
        }
    }

    /// The columns of the table; none if it does not exist.
    private func declaredColumns(in database: Database) throws -> [Column] {
        var declared: [Column] = []
        let rows = try database.executeQuery("PRAGMA main.table_info(\(raw: table.quotedIdentifier))", values: nil)
        defer { rows.close() }
        while try rows.nextWithError() {
            let type = ColumnType(declared: rows.string(forColumnIndex: 2) ?? "")
            declared.append(Column(name: rows.string(forColumnIndex: 1) ?? "", type: type))
        }
        return declared
    }

    private func insert(_ reader: inout DelimitedReader, columns: [Column], into database: Database) throws -> Int {
        let statement = try database.prepare(SQL(raw: try insertion(columns)))
        defer { statement.close() }
        // What a trigger has done before it fails, or ignores the row, would stay.
        let isolatesRows = try rejects != nil && hasTriggers(database)
        var values = [Any](repeating: NSNull(), count: columns.count)
        var count = 0
        while try nextRow(&reader, phase: "import") {
            do throws(any Error) {
                try requireFields(columns.count, reader.record)
                for (index, column) in columns.enumerated() {
                    values[index] = try value(of: reader.record, at: index, type: column.type)
                }
                let (row, line) = (values, reader.record.line)
                if isolatesRows {
                    try database.savepoint { try insert(row, statement, database, line: line) }
                } else {
                    try insert(row, statement, database, line: line)
                }
                count += 1
            } catch let error as DelimitedError {
                // A trigger may have ended the transaction: what follows would be stored row by row.
                guard let rejects, database.isInTransaction else { throw error }
                try rejects.add(reader.record)
                if rejects.count <= Importer.maximumReports {
                    StandardError.message(
                        "\(input.name), line \(error.line): \(error.reason). The row was rejected.",
                        .warning
                    )
                }
            }
        }
        return count
    }

    private func hasTriggers(_ database: Database) throws -> Bool {
        let rows = try database.executeQuery(
            """
            SELECT 1 FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
            UNION ALL SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
            """,
            values: [table]
        )
        defer { rows.close() }
        return try rows.nextWithError()
    }

    /// So many rejected rows are told one by one.
    private static let maximumReports = 10

    private func insertion(_ columns: [Column]) throws(Failure) -> String {
        let names = columns.map(\.name.quotedIdentifier)
        let placeholders = Array(repeating: "?", count: columns.count).joined(separator: ", ")
        // OR ABORT overrides conflict clauses of the table, so that no row is left out or replaced without an error.
        let start = """
            INSERT OR ABORT INTO main.\(table.quotedIdentifier) (\(names.joined(separator: ", "))) VALUES (\(placeholders))
            """
        guard !keys.isEmpty else { return start }
        for key in keys where !columns.contains(where: { ExactText(name: $0.name) == ExactText(name: key) }) {
            throw Failure(
                .usage,
                "--upsert names the column \(key), which the data does not have. Nothing was imported."
            )
        }
        let keyNames = Set(keys.map { ExactText(name: $0) })
        let others = columns.filter { !keyNames.contains(ExactText(name: $0.name)) }
        // With nothing else to set, a row that is there is set to its own key: it counts as stored.
        let changes = (others.isEmpty ? columns : others).map(\.name.quotedIdentifier).map { "\($0) = excluded.\($0)" }
        return start + " ON CONFLICT (\(keys.map(\.quotedIdentifier).joined(separator: ", "))) DO UPDATE SET "
            + changes.joined(separator: ", ")
    }

    private func insert(_ values: [Any], _ statement: ResultSet, _ database: Database, line: Int) throws {
        guard statement.bind(with: values) else { throw database.lastError() }
        do {
            try statement.stepWithError()
        } catch {
            throw located(error, line: line)
        }
        guard database.changes == 1 else {
            throw DelimitedError(line: line, reason: "a trigger of the table ignored it")
        }
    }

    /// Adds the line number to errors that the values of a single row cause.
    private func located(_ error: DatabaseError, line: Int) -> any Error {
        switch error.code {
        case SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG: DelimitedError(line: line, reason: error.message)
        default: error
        }
    }

    private func value(of record: DelimitedRecord, at index: Int, type: ColumnType) throws -> Any {
        if record.isNull(at: index) { return NSNull() }
        let text = try record.text(at: index)
        if type == .text { return text }
        let bytes = record.bytes(at: index)
        let form = NumberForm(bytes)
        guard form.isKept(in: type) || NumberForm.isKept(bytes, asReal: type == .real) else {
            throw DelimitedError(
                line: record.line,
                reason: """
                    the table \(table) declares column \(index + 1) as \(type.rawValue), in which SQLite cannot store this \
                    number as it is; only a TEXT column could
                    """
            )
        }
        return text.isEmpty ? NSNull() : form.bindable(text: text)
    }
}

extension ColumnType {
    /// The affinity that SQLite derives from a declared type.
    /// https://www.sqlite.org/datatype3.html#determination_of_column_affinity
    fileprivate init(declared: String) {
        let type = declared.foldedForSQL
        self =
            if type.hasBytes(of: "int") {
                .integer
            } else if type.isEmpty || ["char", "clob", "text", "blob"].contains(where: { type.hasBytes(of: $0) }) {
                .text
            } else if ["real", "floa", "doub"].contains(where: { type.hasBytes(of: $0) }) {
                .real
            } else {
                .numeric
            }
    }
}

extension String {
    /// The string as a quoted SQL identifier.
    var quotedIdentifier: String { quoted(by: "\"") }
}
