import CBaseline
import Foundation

/// The stores that cases read, made by C when they are first wanted and shared by all subjects, and room for those that
/// they write.
public final class Fixtures {
    let directory: String
    /// Smaller stores, for a run of a few minutes.
    let isQuick: Bool
    /// The package index as ``PackageIndex`` wants it; `nil` if the machine has none.
    let packageFile: String?
    private var shared: [String: String] = [:]
    private var counter = 0
    private var loadedPackages: PackageIndex?

    public init(directory: String, isQuick: Bool, packageFile: String?) {
        self.directory = directory
        self.isQuick = isQuick
        self.packageFile = packageFile
    }

    /// A path that nothing has used.
    func newPath(_ name: String = "store") -> String {
        counter += 1
        return "\(directory)/\(name)-\(counter).db"
    }

    /// Makes a store once, in rollback-journal mode, so that it is one file.
    func store(_ name: String, _ options: StoreOptions, fill: (Baseline) throws -> Void) throws -> String {
        let name = "\(name) \(options)"
        if let path = shared[name] { return path }
        let path = newPath("shared")
        var options = options
        options.journalMode = "delete"
        options.synchronous = "off"
        let db = try Baseline(path, options)
        try db.execute("BEGIN")
        try fill(db)
        try db.execute("COMMIT")
        shared[name] = path
        return path
    }

    func packages() throws -> PackageIndex {
        if let loadedPackages { return loadedPackages }
        guard let packageFile else { throw Failure("This machine has no package index.") }
        let packages = try PackageIndex(packageFile)
        loadedPackages = packages
        return packages
    }

    // MARK: Stores

    /// A table for each kind, of five columns and 2,000 rows.
    func readStore() throws -> String {
        try store("read", StoreOptions()) { db in
            for kind in ValueKind.allCases {
                let table = kind.table
                try db.execute("CREATE TABLE \(table) (\(ValueKind.columnNames.joined(separator: ", ")))")
                try db.insert("INSERT INTO \(table) VALUES (?, ?, ?, ?, ?)", kind.cKinds, rows: Self.readRows)
            }
        }
    }

    static let readRows = 2000

    /// `item (id, number, body)`: 50,000 rows of about 120 bytes.
    func itemStore(_ options: StoreOptions = StoreOptions(), named name: String = "items") throws -> String {
        try store(name, options) { db in
            try db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, number INTEGER, body TEXT)")
            try db.execute(Self.fillItems)
        }
    }

    static let itemCount = 50_000
    private static let fillItems = """
        WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(itemCount))
        INSERT INTO item SELECT i, i * 7919 % 1000003, printf('item %08d ', i) || hex(zeroblob(48)) FROM n
        """

    /// Ids in an order that no cache can foresee.
    static func itemIDs(_ count: Int) -> [Int64] {
        var random = Random(seed: 7)
        return (0..<count).map { _ in Int64(random.next() % UInt64(itemCount)) + 1 }
    }

    /// Bytes of payload in the store that is copied as a whole.
    var bulkBytes: Int { (isQuick ? 4 : 16) << 20 }

    /// Small, so that a scan is over before something else gets the processor; far larger than a cache of 16 pages.
    func scannedStore(_ options: StoreOptions) throws -> String {
        let bytes = max((isQuick ? 1 : 4) << 20, options.pageSize * 64)
        return try bulkStore(options, named: "scanned", bytes: bytes)
    }

    /// `bulk (id, payload)`: rows of 900 bytes that do not compress into anything.
    func bulkStore(
        _ options: StoreOptions = StoreOptions(),
        named name: String,
        bytes: Int? = nil
    ) throws -> String {
        let rows = (bytes ?? bulkBytes) / 900
        return try store(name, options) { db in
            try db.execute("CREATE TABLE bulk (id INTEGER PRIMARY KEY, payload BLOB)")
            try db.execute(
                """
                WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
                INSERT INTO bulk SELECT i, randomblob(900) FROM n
                """
            )
        }
    }

    /// Pages of a store, to say what one of them costs.
    func pageCount(_ path: String, _ options: StoreOptions) throws -> Int {
        Int(try Baseline(path, options).integer("PRAGMA page_count"))
    }
}

/// What the columns of a table hold.
enum ValueKind: String, CaseIterable {
    case integer, real, text, blob, null, mixed

    var table: String { "of_\(rawValue)" }

    static let columnNames = ["id", "title", "price", "digest", "note"]

    var cKinds: [baseline_kind] {
        switch self {
        case .integer: Array(repeating: BASELINE_INTEGER, count: 5)
        case .real: Array(repeating: BASELINE_REAL, count: 5)
        case .text: Array(repeating: BASELINE_TEXT, count: 5)
        case .blob: Array(repeating: BASELINE_BLOB, count: 5)
        case .null: Array(repeating: BASELINE_NULL, count: 5)
        case .mixed: [BASELINE_INTEGER, BASELINE_TEXT, BASELINE_REAL, BASELINE_BLOB, BASELINE_NULL]
        }
    }
}
