import SealedDB

/// Splits SQL text into statements and finds out their kind, with the library's own parser, as far as the commands need
/// it. SQLite itself decides about everything else.
struct SQLScript {
    struct Statement {
        let text: String
        /// The offset of the text in the script, in bytes.
        fileprivate let offset: Int
        fileprivate let form: SQLStatementText

        /// The first word, after `EXPLAIN`, in capital letters; empty if the statement does not begin with a word.
        var verb: String { (form.verb ?? "").uppercased() }

        var isExplained: Bool { form.isExplained }

        /// The names of the parameters, without the signs that begin them.
        var parameterNames: Set<String> {
            Array(text.utf8).withUnsafeBufferPointer { bytes in
                var names: Set<String> = []
                var tokens = SQLTokenizer(bytes)
                while let token = tokens.next() {
                    guard token.kind == .variable else { continue }
                    names.insert(String(decoding: bytes[token.range].dropFirst(), as: UTF8.self))
                }
                return names
            }
        }

        /// Whether SQLite counts the rows that the statement changes, if it writes at all.
        var countsChanges: Bool {
            !form.isExplained && ["INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"].contains(verb)
        }
    }

    /// The statements, without empty ones.
    private(set) var statements: [Statement] = []
    private let sql: String
    private let hidesLines: Bool

    init(_ sql: String) {
        self.sql = sql
        let bytes = Array(sql.utf8)
        hidesLines = bytes.withUnsafeBufferPointer(SQLTokenizer.hidesLines)
        bytes.withUnsafeBufferPointer { bytes in
            var position = 0
            while position < bytes.count {
                let form = SQLStatementText(bytes, from: position)
                guard form.verb != nil else { return }
                statements.append(
                    Statement(
                        text: String(decoding: bytes[form.range], as: UTF8.self),
                        offset: form.range.lowerBound,
                        form: form
                    )
                )
                position = form.range.upperBound
            }
        }
    }

    /// Adds to an error of a statement where it is. If SQLite names no place in the statement, that is its beginning.
    /// - Parameter index: the index of the statement.
    func located(_ error: DatabaseError, at index: Int) -> LocatedError {
        let statement = statements[index]
        let blanks = statement.text.utf8.prefix { [0x09, 0x0a, 0x0c, 0x0d, 0x20].contains($0) }.count
        let before = sql.utf8.prefix(statement.offset + (error.offset ?? blanks))
        let line = before.split(separator: 0x0a, omittingEmptySubsequences: false)
        return LocatedError(
            error: error,
            number: index + 1,
            line: line.count,
            column: (line.last.map { String(Substring($0)).count } ?? 0) + 1
        )
    }

    /// Whether the script begins or ends transactions itself, or has statements that cannot run within one.
    var managesTransactions: Bool {
        statements.contains { SQLScript.verbsOutsideTransactions.contains($0.verb) }
    }

    private static let verbsOutsideTransactions: Set<String> = [
        "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "VACUUM", "PRAGMA", "ATTACH", "DETACH",
    ]

    /// Refuses statements that would take a secret from the command line or break the store: SQLCipher accepts settings
    /// that come too late, and then nothing can open the file.
    /// Refuses what SQLite would pass over, too.
    func requireUsable() throws(Failure) {
        if hidesLines {
            throw Failure(
                .usage,
                "Lines of the SQL follow a comment (--) after a carriage return alone, and SQLite would pass over them. End "
                    + "lines with a line feed."
            )
        }
        for statement in statements {
            guard let pragma = statement.form.pragma else {
                guard statement.form.holdsKey else { continue }
                throw Failure(
                    .usage,
                    "ATTACH with KEY is refused: no key belongs on the command line. Without KEY, the attached "
                        + "database is opened with the store's own key."
                )
            }
            try SQLScript.refuse(pragma, statement.form)
        }
    }

    private static func refuse(_ pragma: String, _ form: SQLStatementText) throws(Failure) {
        if form.holdsKey {
            throw Failure(
                .usage,
                "PRAGMA \(pragma) is refused: no key belongs on the command line. To change a store's key: sealdb rotate"
            )
        }
        if form.pragmaHasValue, pragma.hasPrefix("cipher_") || settingPragmas.contains(pragma) {
            throw Failure(
                .usage,
                "PRAGMA \(pragma) with a value is refused: changed on an open store, it can leave a file "
                    + "that nothing opens, or write plaintext to temporary files."
            )
        }
    }

    private static let settingPragmas: Set<String> = [
        "cipher", "kdf_iter", "fast_kdf_iter", "rekey_cipher", "rekey_kdf_iter", "page_size", "temp_store",
        "temp_store_directory",
    ]
}
