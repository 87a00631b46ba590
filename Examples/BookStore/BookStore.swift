import Foundation
import SealedDB

/// A data access object: everything that the program does with books goes through it, and no SQL is elsewhere.
///
/// The calls are FMDB's.
final class BookStore: Sendable {
    private let queue: FMDatabaseQueue

    /// Opens the store, and creates its tables if it is new.
    init(path: String, key: Key?) throws {
        var configuration = Configuration(key: key)
        configuration.prepare = { db in db.setDateFormat(FMDatabase.storeableDateFormat("yyyy-MM-dd")) }
        queue = try FMDatabaseQueue(path: path, configuration: configuration)
        try create()
    }

    private func create() throws {
        try queue.inTransaction { db in
            guard !db.tableExists("book") else { return }
            let isCreated = db.executeStatements(
                """
                CREATE TABLE book (
                    id INTEGER PRIMARY KEY, title TEXT NOT NULL, author TEXT NOT NULL, published TEXT NOT NULL,
                    summary TEXT NOT NULL);
                CREATE VIRTUAL TABLE book_text USING fts5(title, summary, content='book', content_rowid='id');
                CREATE TRIGGER book_added AFTER INSERT ON book BEGIN
                    INSERT INTO book_text (rowid, title, summary) VALUES (new.id, new.title, new.summary);
                END;
                CREATE TRIGGER book_removed AFTER DELETE ON book BEGIN
                    INSERT INTO book_text (book_text, rowid, title, summary)
                    VALUES ('delete', old.id, old.title, old.summary);
                END;
                CREATE TRIGGER book_changed AFTER UPDATE ON book BEGIN
                    INSERT INTO book_text (book_text, rowid, title, summary)
                    VALUES ('delete', old.id, old.title, old.summary);
                    INSERT INTO book_text (rowid, title, summary) VALUES (new.id, new.title, new.summary);
                END;
                """
            )
            guard isCreated else { throw db.lastError() }
        }
    }

    /// Adds the books, all or none, and returns them with their ids.
    @discardableResult
    func add(_ books: [Book]) throws -> [Book] {
        try queue.inTransaction { db in
            try books.map { book in
                try db.executeUpdate(
                    "INSERT INTO book (title, author, published, summary) VALUES (?, ?, ?, ?)",
                    values: [book.title, book.author, book.published, book.summary]
                )
                var book = book
                book.id = db.lastInsertRowId
                return book
            }
        }
    }

    /// All books, by author and title.
    func all() throws -> [Book] {
        try books("SELECT * FROM book ORDER BY author COLLATE NOCASE, title COLLATE NOCASE", values: [])
    }

    func published(before date: Date) throws -> [Book] {
        try books("SELECT * FROM book WHERE published < ? ORDER BY published", values: [date])
    }

    /// Changes the book with this id; false if there is none.
    func update(_ book: Book) throws -> Bool {
        try queue.inDatabase { db in
            try db.executeUpdate(
                "UPDATE book SET title = ?, author = ?, published = ?, summary = ? WHERE id = ?",
                values: [book.title, book.author, book.published, book.summary, book.id]
            )
            return db.changes > 0
        }
    }

    /// Removes the book with this id; false if there is none.
    func remove(id: Int64) throws -> Bool {
        try queue.inDatabase { db in
            try db.executeUpdate("DELETE FROM book WHERE id = ?", values: [id])
            return db.changes > 0
        }
    }

    /// Titles that hold the words, best match first, with the words in brackets where they stand.
    func search(_ words: String) throws -> [(title: String, excerpt: String)] {
        try queue.inDatabase { db in
            // Each word in quotes, so that it is taken as a word and not as a query's syntax.
            let query = words.split(separator: " ").map { "\"\($0.replacing("\"", with: "\"\""))\"" }
            let rows = try db.executeQuery(
                """
                SELECT title, snippet(book_text, -1, '[', ']', '…', 8) AS excerpt
                FROM book_text WHERE book_text MATCH ? ORDER BY rank
                """,
                values: [query.joined(separator: " ")]
            )
            var found: [(title: String, excerpt: String)] = []
            while try rows.nextWithError() {
                found.append((rows.string(forColumn: "title") ?? "", rows.string(forColumn: "excerpt") ?? ""))
            }
            return found
        }
    }

    private func books(_ sql: String, values: [Any]) throws -> [Book] {
        try queue.inDatabase { db in
            let rows = try db.executeQuery(sql, values: values)
            var books: [Book] = []
            while try rows.nextWithError() {
                books.append(
                    Book(
                        id: rows.longLongInt(forColumn: "id"),
                        title: rows.string(forColumn: "title") ?? "",
                        author: rows.string(forColumn: "author") ?? "",
                        published: rows.date(forColumn: "published") ?? .distantPast,
                        summary: rows.string(forColumn: "summary") ?? ""
                    )
                )
            }
            return books
        }
    }
}
