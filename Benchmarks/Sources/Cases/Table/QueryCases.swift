import Wire

/// One row of 50,000 by its id, again and again, in an order that no cache foresees.
enum PointCases {
    static let queries = 500
    static let sql = "SELECT number, body FROM item WHERE id = ?"
    /// Reads every page.
    static let warm = "SELECT sum(length(body)) FROM item"
    /// KiB. The store has about 8 MB.
    static let caches: [(name: String, size: Int)] = [("warm", 32 * 1024), ("small", smallCache)]
    /// KiB. It hardly ever has the page that is needed.
    static let smallCache = 64

    static let forms = [(id: "typed", title: "typed"), (id: "any", title: "[Any]")]

    static func id(cache: String, inTransaction: Bool, form: String) -> String {
        "point.\(cache).\(inTransaction ? "transaction" : "alone").\(form)"
    }

    static var infos: [CaseInfo] {
        var result: [CaseInfo] = []
        for cache in caches {
            for inTransaction in [false, true] {
                for form in forms {
                    let place = inTransaction ? "500 in a transaction" : "each alone"
                    let room = cache.name == "warm" ? "all pages cached" : "cache of 64 KiB"
                    result.append(
                        CaseInfo(
                            id: id(cache: cache.name, inTransaction: inTransaction, form: form.id),
                            group: "Point queries",
                            title: "\(room), \(place), \(form.title)",
                            unit: "query"
                        )
                    )
                }
            }
        }
        result.append(
            CaseInfo(
                id: "point.queue",
                group: "Point queries",
                title: "all pages cached, a queue's block for each; C without a lock",
                unit: "query"
            )
        )
        return result
    }
}

/// Scans of a store in which every page is read, and none is found in a cache that is too small for it.
enum ScanCases {
    /// KiB.
    static let smallCache = 64
    static let sql = "SELECT sum(length(payload)) FROM bulk"

    static let infos = [
        CaseInfo(
            id: "scan.cold",
            group: "Scans",
            title: "cold: every page read and decrypted",
            unit: "page",
            bytes: 4096
        ),
        CaseInfo(id: "scan.warm", group: "Scans", title: "warm: every page cached", unit: "page", bytes: 4096),
    ]
}

/// Functions that SQL calls for each of 50,000 rows.
enum FunctionCases {
    static let calls = Fixtures.itemCount
    static let queries = [
        "function.integer": "SELECT sum(twice(number)) FROM item",
        "function.integer.block": "SELECT sum(twice(number)) FROM item",
        "function.text": "SELECT sum(length(half(body))) FROM item",
        "function.text.block": "SELECT sum(length(half(body))) FROM item",
        "function.aggregate": "SELECT total_of(number) FROM item",
    ]

    static let infos = [
        ("function.integer", "function of an integer"),
        ("function.integer.block", "function of an integer, FMDB's form"),
        ("function.text", "function of a text"),
        ("function.text.block", "function of a text, FMDB's form"),
        ("function.aggregate", "aggregate of integers"),
    ].map { CaseInfo(id: $0.0, group: "Functions and full text", title: $0.1, unit: "call") }
}

/// FTS5 over texts of 16 words.
enum FullTextCases {
    static let rows = 2000
    static let createTable = "CREATE VIRTUAL TABLE document USING fts5 (body)"
    static let createTokenizedTable = "CREATE VIRTUAL TABLE document USING fts5 (body, tokenize = 'words')"
    static let insert = "INSERT INTO document (body) VALUES (?)"
    static let match = "SELECT rowid FROM document WHERE document MATCH 'rotate AND \"page cipher\"' ORDER BY rank"

    static let bodies = (0..<rows).map { Values.shared.bodies[Values.index($0)] }

    static func store(_ fixtures: Fixtures) throws -> String {
        try fixtures.store("documents", StoreOptions()) { db in
            try db.execute(createTable)
            for start in 0..<10 {
                let bodies = (0..<rows).map { Values.shared.bodies[Values.index($0 * 7 + start)] }
                try db.insertTexts(insert, CTexts(bodies))
            }
        }
    }

    static let infos = [
        CaseInfo(
            id: "fts.insert",
            group: "Functions and full text",
            title: "FTS5: insert a document",
            unit: "document"
        ),
        CaseInfo(
            id: "fts.tokenizer",
            group: "Functions and full text",
            title: "FTS5: insert a document, tokenizer in Swift; C uses FTS5's own",
            unit: "document"
        ),
        CaseInfo(
            id: "fts.match",
            group: "Functions and full text",
            title: "FTS5: ranked search in 20,000 documents",
            unit: "query"
        ),
    ]
}

/// One BLOB of 4 MiB in parts of 64 KiB.
enum BlobCases {
    static let mebibytes = 4
    static let chunk = 65536
    static let table = "attachment"
    static let column = "content"

    static func store(_ fixtures: Fixtures, named name: String) throws -> String {
        try fixtures.store(name, StoreOptions()) { db in
            try db.execute("CREATE TABLE \(table) (id INTEGER PRIMARY KEY, \(column) BLOB)")
            try db.execute("INSERT INTO \(table) VALUES (1, randomblob(\(mebibytes << 20)))")
        }
    }

    /// Connections that keep no page, and wait for no disk.
    static let options = StoreOptions(synchronous: "off", cacheSize: ScanCases.smallCache)

    static let infos = [
        ("blob.read", "read 4 MiB in parts of 64 KiB"), ("blob.write", "write 4 MiB in parts of 64 KiB (WAL, OFF)"),
    ].map { CaseInfo(id: $0.0, group: "BLOBs", title: $0.1, unit: "MiB", bytes: 1_048_576) }
}
