internal import SQLiteEngine

/// What SQLite itself says about SQL text, without a database.
package enum SQLKeywords {
    /// The keywords that the engine knows, in capital letters. https://www.sqlite.org/c3ref/keyword_check.html
    package static let all: [String] = (0..<sqlite3_keyword_count()).compactMap { index in
        var name: UnsafePointer<CChar>?
        var count: Int32 = 0
        guard sqlite3_keyword_name(index, &name, &count) == SQLITE_OK, let name else { return nil }
        return String(decoding: UnsafeRawBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// Whether a text ends with a whole statement: with a semicolon that is no part of a literal, comment or trigger.
    /// https://www.sqlite.org/c3ref/complete.html
    package static func isComplete(_ sql: String) -> Bool { sqlite3_complete(sql) == 1 }
}
