import Foundation
import SealedDB

/// Fills one table from a file of rows in a single transaction: either all rows are stored or none.
struct Importer {
    let input: InputFile
    let format: ImportFormat
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

    /// The place in the input of which the progress was told last.
    private let reportedPosition = Position()

    private final class Position { var value: Int64 = -1 }

    private struct Column {
        let name: String
        let type: ColumnType
    }

    /// Imports the file.
    /// - Returns: the number of rows.
    func run(on database: Database) throws -> Int {
        do {
            return try format.isJSON
                ? importRows(database, jsonReader)
                : importRows(database) { _, _ in DelimitedReader(format: format, style: style, file: input) }
        } catch let error as ImportError {
            throw Failure(.data, "\(input.name), line \(error.line): \(error.reason). Nothing was imported.")
        }
    }

    /// - Parameter makeReader: makes a reader for the columns that are known, for the first of two passes or the last.
    private func importRows<Reader: RecordReader>(
        _ database: Database,
        _ makeReader: (_ names: [String]?, _ isSurvey: Bool) throws -> Reader
    ) throws -> Int {
        if try exists(in: database) && !appends { throw tableExists }
        if try !keys.isEmpty && !exists(in: database) {
            throw Failure(.data, "There is no table \(table) with rows to replace. Nothing was imported.")
        }
        var surveyed: (names: [String], types: [ColumnType])?
        // The columns of JSON are known when all of it is read.
        if readsTwice {
            // Errors in the file are found here, before the store is locked.
            var reader = try makeReader(names, true)
            surveyed = try survey(&reader, database)
            try input.rewind()
            reportedPosition.value = -1
        }
        var reader = try makeReader(surveyed?.names ?? names, false)
        let found = try readHeader(&reader, database)
        if hasHeader, !format.isJSON { try rejects?.write(reader.record) }
        if let surveyed, found != surveyed.names { throw changed }
        let guesses = surveyed?.types ?? found.map { _ in format.isJSON ? .any : .text }
        return try database.inTransaction {
            let columns =
                try exists(in: database)
                ? try existingColumns(found, in: database)
                : try createTable(columns(found, guesses), in: database)
            let count = try insert(&reader, columns: columns, into: database)
            guard try input.isUnchanged() else { throw changed }
            // Rows that are not stored are safe before the others are.
            try rejects?.finish()
            return count
        }
    }

    /// - Parameters:
    ///   - names: those of the members that are wanted; `nil` for all.
    ///   - isSurvey: whether the first pass reads it.
    private func jsonReader(_ names: [String]?, isSurvey: Bool) -> JSONReader {
        let input = input
        return JSONReader(
            names: names,
            ignoresOthers: self.names != nil,
            isSurvey: isSurvey,
            keepsText: rejects != nil
        ) { try input.read(into: &$0) }
    }

    private func columns(_ names: [String], _ guesses: [ColumnType]) throws(Failure) -> [Column] {
        for name in types.keys where !names.contains(where: { ExactText(name: $0) == name }) {
            throw Failure(.usage, "--types names the column \(name.text), which the data does not have.")
        }
        return zip(names, guesses).map { Column(name: $0, type: types[ExactText(name: $0)] ?? $1) }
    }

    private var changed: Failure {
        Failure(.inputOutput, "\(input.name) changed while it was read. Nothing was imported. Give a copy of it.")
    }

    // MARK: Reading

    /// The first pass: finds the columns, and guesses their types.
    private func survey(
        _ reader: inout some RecordReader,
        _ database: Database
    ) throws -> (names: [String], types: [ColumnType]) {
        var names = try readHeader(&reader, database)
        var guesses = names.map { _ in ColumnGuess() }
        var hasPlainField = false
        // The first row of JSON is read with the names.
        var isRead = format.isJSON && reader.record.fieldCount > 0
        while try isRead || nextRow(&reader, phase: "read") {
            isRead = false
            if let found = reader.foundNames, found.count > names.count {
                names = found
                while guesses.count < names.count { guesses.append(ColumnGuess()) }
            }
            let record = reader.record
            guard try counts(record, names.count) else { continue }
            for index in 0..<record.fieldCount {
                let (field, kind) = (record.bytes(at: index), record.kind(at: index))
                if kind == .plain, !field.isEmpty { hasPlainField = true }
                guesses[index].observe(field, kind)
            }
        }
        let types: [ColumnType] = guesses.map { guessesTypes ? $0.type(quotesMean: hasPlainField) : .text }
        if guessesTypes, !appends {
            for (name, guess) in zip(names, guesses) where guess.isOfLossyNumbers && !saysType(of: name) {
                StandardError.message(
                    """
                    The column \(name) holds numbers of which some would not stay as they are written, such as 007, 1.10 or \
                    more digits than a REAL has. It became TEXT, and compares as text. To compare numbers: --types \
                    \(name)=REAL or =INTEGER.
                    """,
                    .warning
                )
            }
        }
        return (names, types)
    }

    private func saysType(of name: String) -> Bool { types[ExactText(name: name)] != nil }

    /// Whether the types of columns depend on the row: not on one that will be rejected.
    private func counts(_ record: ImportedRecord, _ fieldCount: Int) throws(ImportError) -> Bool {
        do throws(ImportError) {
            try requireFields(fieldCount, record)
            if !format.isJSON { try record.validateText() }
            return true
        } catch {
            guard rejects == nil else { return false }
            throw error
        }
    }

    /// Reads the header, if there is one.
    /// - Returns: the names of the columns.
    private func readHeader(_ reader: inout some RecordReader, _ database: Database) throws -> [String] {
        if format.isJSON { return try readNames(&reader, database) }
        guard hasHeader else {
            let names = try names ?? declaredColumns(in: database).map(\.name)
            guard !names.isEmpty else {
                throw Failure(.usage, "There is no table \(table) that could name the columns. Give --columns.")
            }
            return names
        }
        guard try reader.next() else {
            throw ImportError(line: 1, reason: "the file is empty, without even a header row")
        }
        if let names {
            guard names.count == reader.record.fieldCount else {
                let found = reader.record.fieldCount
                throw ImportError(
                    line: 1,
                    reason: "--columns names \(names.count.counted("column")), but the header has \(found)"
                )
            }
            return names
        }
        var names: [String] = []
        var seen: Set<ExactText> = []
        for index in 0..<reader.record.fieldCount {
            // A name is no value, and so may be what stands for NULL.
            let isMark = reader.record.isNull(at: index)
            let name = isMark ? String(decoding: style.null ?? [], as: UTF8.self) : try reader.record.text(at: index)
            if name.isEmpty {
                throw ImportError(line: reader.record.line, reason: "column \(index + 1) of the header has no name")
            }
            try requireNoNUL(name, "column \(index + 1) of the header", line: reader.record.line)
            // Like SQLite, this compares names without regard to the case of ASCII letters.
            guard seen.insert(ExactText(name: name)).inserted else {
                throw ImportError(
                    line: reader.record.line,
                    reason: "column \(index + 1) of the header has the name of one before it"
                )
            }
            names.append(name)
        }
        try requireFewNames(names, line: reader.record.line)
        return names
    }

    /// SQLite's names end there.
    private func requireNoNUL(_ name: String, _ place: String, line: Int) throws(ImportError) {
        guard name.utf8.contains(0) else { return }
        throw ImportError(line: line, reason: "\(place) has a name with a NUL byte")
    }

    private func requireFewNames(_ names: [String], line: Int) throws(ImportError) {
        guard names.count > Importer.maximumColumnCount else { return }
        throw ImportError(
            line: line,
            reason: "there are \(names.count.counted("column")), but SQLite takes \(Importer.maximumColumnCount)"
        )
    }

    /// Reads the first object of JSON, unless it is known already which members are wanted.
    /// - Returns: the names of the columns.
    private func readNames(_ reader: inout some RecordReader, _ database: Database) throws -> [String] {
        var names = reader.foundNames ?? []
        if names.isEmpty {
            guard try reader.next(), let found = reader.foundNames, !found.isEmpty else {
                throw ImportError(line: reader.record.line, reason: "there is no object whose members could be columns")
            }
            names = found
        }
        for (index, name) in names.enumerated() {
            try requireNoNUL(name, "member \(index + 1)", line: reader.record.line)
        }
        return names
    }

    /// SQLite's default for SQLITE_MAX_COLUMN. https://www.sqlite.org/limits.html
    private static let maximumColumnCount = 2000

    private func nextRow(_ reader: inout some RecordReader, phase: String) throws -> Bool {
        if SignalWatch.wasInterrupted {
            throw DatabaseError(
                extendedCode: SQLITE_INTERRUPT,
                reason: .interrupted,
                message: "Interrupted. Nothing was imported."
            )
        }
        guard try reader.next() else { return false }
        if input.position != reportedPosition.value {
            reportedPosition.value = input.position
            progress.update(
                phase: phase,
                completed: input.position,
                total: input.size,
                fraction: fraction(ofReading: phase == "read")
            )
        }
        return true
    }

    /// How much of both passes is done; `nil` if the size of the input is not known.
    private func fraction(ofReading isFirst: Bool) -> Double? {
        guard input.size > 0 else { return nil }
        let share = min(1, Double(input.position) / Double(input.size))
        guard readsTwice else { return share }
        let first = Importer.shareOfReading
        return isFirst ? share * first : first + share * (1 - first)
    }

    /// The share of an import that it takes to find the types, by estimate.
    private static let shareOfReading = 0.25

    /// Whether the file is read once to find the columns or their types, and once to store the rows.
    private var readsTwice: Bool { input.isRegular && (format.isJSON || guessesTypes && !appends) }

    private func requireFields(_ count: Int, _ record: ImportedRecord) throws(ImportError) {
        guard record.fieldCount == count else {
            let expectation = "expected \(count) field\(count == 1 ? "" : "s"), found \(record.fieldCount)"
            throw ImportError(
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
                throw ImportError(line: 1, reason: "the table \(table) has no column \(name)")
            }
            return match
        }
    }

    /// The columns of the table; none if it does not exist.
    private func declaredColumns(in database: Database) throws -> [Column] {
        var declared: [Column] = []
        let isStrict = try isStrict(database)
        let rows = try database.executeQuery("PRAGMA main.table_info(\(raw: table.quotedIdentifier))", values: nil)
        defer { rows.close() }
        while try rows.nextWithError() {
            let type = ColumnType(declared: rows.string(forColumnIndex: 2) ?? "", isStrict: isStrict)
            declared.append(Column(name: rows.string(forColumnIndex: 1) ?? "", type: type))
        }
        return declared
    }

    private func isStrict(_ database: Database) throws -> Bool {
        let rows = try database.executeQuery("PRAGMA main.table_list(\(raw: table.quotedIdentifier))", values: nil)
        defer { rows.close() }
        while try rows.nextWithError() {
            if rows.string(forColumn: "schema") == "main" { return rows.bool(forColumn: "strict") }
        }
        return false
    }

    private func insert(_ reader: inout some RecordReader, columns: [Column], into database: Database) throws -> Int {
        let statement = try database.prepare(SQL(raw: try insertion(columns)))
        defer { statement.close() }
        // What a trigger has done before it fails, or ignores the row, would stay.
        let isolatesRows = try rejects != nil && hasTriggers(database)
        var values = [HeldValue](repeating: .null, count: columns.count)
        let blobs = ByteBuffer(capacity: 4096)
        var count = 0
        // If it is known only now which members there are, the first object was read with its names.
        var isRead = format.isJSON && reader.record.fieldCount > 0
        while try isRead || nextRow(&reader, phase: "import") {
            isRead = false
            do throws(any Error) {
                let record = reader.record
                try requireFields(columns.count, record)
                if !keys.isEmpty { try requireMembers(columns, record) }
                blobs.removeAll()
                // What is added below does not move what was added before.
                blobs.reserveAll(record.content.count)
                for index in columns.indices {
                    values[index] = try value(of: record, at: index, type: columns[index].type, blobs)
                }
                if isolatesRows {
                    try database.savepoint { try insert(values, statement, database, line: record.line) }
                } else {
                    try insert(values, statement, database, line: record.line)
                }
                count += 1
            } catch let error as ImportError {
                // A trigger may have ended the transaction: what follows would be stored row by row.
                guard let rejects, database.isInTransaction else { throw error }
                try rejects.add(reader.record, reader.text)
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
        // By their numbers, because the table itself may be called "excluded".
        let changes = columns.enumerated().filter { others.isEmpty || !keyNames.contains(ExactText(name: $1.name)) }
            .map { "\($1.name.quotedIdentifier) = ?\($0 + 1)" }
        return start + " ON CONFLICT (\(keys.map(\.quotedIdentifier).joined(separator: ", "))) DO UPDATE SET "
            + changes.joined(separator: ", ")
    }

    /// A member that is missing would be stored as NULL, over the value that the row has.
    private func requireMembers(_ columns: [Column], _ record: ImportedRecord) throws(ImportError) {
        guard let index = columns.indices.first(where: { record.isMissing(at: $0) }) else { return }
        throw ImportError(
            line: record.line,
            reason: """
                the object has no member \(columns[index].name), which others have; with --upsert each needs all of them, \
                null for NULL
                """
        )
    }

    private func insert(_ values: [HeldValue], _ statement: ResultSet, _ database: Database, line: Int) throws {
        do {
            try statement.bind(values)
            try statement.stepWithError()
        } catch {
            throw located(error, line: line)
        }
        guard database.changes == 1 else {
            throw ImportError(line: line, reason: "a trigger of the table ignored it")
        }
    }

    /// Adds the line number to errors that the values of a single row cause.
    private func located(_ error: DatabaseError, line: Int) -> any Error {
        switch error.code {
        case SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG: ImportError(line: line, reason: error.message)
        default: error
        }
    }

    /// - Parameter blobs: where the bytes of a blob are put that is written in hex digits.
    private func value(
        of record: ImportedRecord,
        at index: Int,
        type: ColumnType,
        _ blobs: ByteBuffer
    ) throws(ImportError) -> HeldValue {
        let bytes = record.bytes(at: index)
        switch record.kind(at: index) {
        case .null: return .null
        case .blob: return .blob(bytes)
        case .integer, .real: return try number(of: record, at: index, type: type)
        case .text:
            // It may be one that is not UTF-8, which JSON holds in another form.
            if !type.keepsValues, type != .text { try requireKept(record, at: index, type) }
            return .text(bytes)
        case .quoted where type.keepsValues || type == .text:
            try record.requireText(at: index)
            return .text(bytes)
        case .plain where type == .text:
            // In CSV, a text that reads as a blob stands in quotes. SQLite keeps a blob in a column of any type.
            if format == .csv, ImportedField.isBlob(bytes) { return blob(bytes, blobs) }
            try record.requireText(at: index)
            return .text(bytes)
        case .plain, .quoted: break
        }
        try record.requireText(at: index)
        let field = ImportedField(bytes)
        if type.keepsValues {
            switch field {
            case .integer(let value): return .integer(value)
            case .real(let value): return .real(value)
            case .blob: return blob(bytes, blobs)
            case .text: return .text(bytes)
            }
        }
        // In a column of numbers, an empty field is a number that is missing.
        if bytes.isEmpty { return .null }
        let isQuoted = record.kind(at: index) == .quoted
        switch field {
        case .integer(let value) where type != .real: return .integer(value)
        // SQLite takes the text Inf for no number, so a column of numbers may hold it as well as an infinite one.
        case .real(let value) where value.isInfinite && isQuoted: return .text(bytes)
        case .real(let value): return .real(value)
        case .blob where format == .csv && !isQuoted: return blob(bytes, blobs)
        case .integer, .blob, .text:
            try requireKept(record, at: index, type)
            return .text(bytes)
        }
    }

    /// The value of a field that is a blob, whose bytes it adds to `blobs`.
    private func blob(_ field: UnsafeRawBufferPointer, _ blobs: ByteBuffer) -> HeldValue {
        let start = blobs.count
        ImportedField.addBlob(field, to: blobs)
        return .blob(UnsafeRawBufferPointer(rebasing: blobs.bytes[start...]))
    }

    private func number(of record: ImportedRecord, at index: Int, type: ColumnType) throws(ImportError) -> HeldValue {
        let text = String(decoding: record.bytes(at: index), as: UTF8.self)
        if record.kind(at: index) == .integer, let value = Int64(text) {
            if type == .real { try requireKept(record, at: index, type) }
            return .integer(value)
        }
        // Beyond 64 bits, an integer would lose digits.
        guard record.kind(at: index) == .real, let value = Double(text) else {
            throw ImportError(
                line: record.line,
                reason: "column \(index + 1) has an integer beyond 64 bits, which SQLite could keep only as a text"
            )
        }
        // SQLite would write a REAL into a column of texts with 15 digits.
        if type == .text { return .text(record.bytes(at: index)) }
        let spellsInfinity = ["1e999", "-1e999"].contains { text.isSame(as: $0) }
        guard spellsInfinity || NumberForm.isKept(Array(record.bytes(at: index))[...], asReal: true) else {
            throw ImportError(
                line: record.line,
                reason: """
                    column \(index + 1) has a number of which a REAL would lose digits; only a TEXT column keeps it as it is \
                    written (--types)
                    """
            )
        }
        return .real(value)
    }

    private func requireKept(_ record: ImportedRecord, at index: Int, _ type: ColumnType) throws(ImportError) {
        guard !NumberForm.isKept(Array(record.bytes(at: index))[...], asReal: type == .real) else { return }
        throw ImportError(
            line: record.line,
            reason: """
                the table \(table) declares column \(index + 1) as \(type.rawValue), in which SQLite cannot store this \
                number as it is; only a TEXT column could
                """
        )
    }
}

extension ColumnType {
    /// The affinity that SQLite derives from a declared type.
    /// https://www.sqlite.org/datatype3.html#determination_of_column_affinity
    /// - Parameter isStrict: whether the table is STRICT, where ANY means what no type means elsewhere.
    fileprivate init(declared: String, isStrict: Bool) {
        let type = declared.foldedForSQL
        self =
            if type.hasBytes(of: "int") {
                .integer
            } else if ["char", "clob", "text"].contains(where: { type.hasBytes(of: $0) }) {
                .text
            } else if type.isEmpty || type.hasBytes(of: "blob") || isStrict && type == "any" {
                .any
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
