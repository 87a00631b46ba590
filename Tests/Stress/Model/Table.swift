/// The tables of a store. Each has the columns owner, key and value, and each client writes rows of its own only.
enum Table: String, Codable, CaseIterable, CodingKeyRepresentable, Sendable {
    /// An ordinary table, with an index.
    case note
    /// WITHOUT ROWID.
    case pair
    /// With ids that SQLite gives, which are reported by RETURNING.
    case entry
    /// Its values are written in parts.
    case attachment
    /// Full text.
    case words
    /// Each row of one has a row of the other: a deferred foreign key.
    case parent, child
    /// Made and dropped by its client.
    case own
    /// In a second store, which is attached.
    case side

    /// Those of the main store that are always there.
    static let fixed = Table.allCases.filter { $0 != .own && $0 != .side }

    /// In SQL.
    func name(for owner: Int) -> String {
        switch self {
        case .own: "own_\(owner)"
        case .side: "beside.side"
        default: rawValue
        }
    }

    static let schema = """
        CREATE TABLE note (owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key));
        CREATE INDEX note_length ON note (length(value));
        CREATE TABLE pair (owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key)) WITHOUT ROWID;
        CREATE TABLE entry (
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER, key INTEGER, value, UNIQUE (owner, key)
        );
        CREATE TABLE attachment (owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key));
        CREATE VIRTUAL TABLE words USING fts5 (owner UNINDEXED, key UNINDEXED, value);
        CREATE TABLE parent (owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key));
        CREATE TABLE child (
            owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key),
            FOREIGN KEY (owner, key) REFERENCES parent (owner, key) DEFERRABLE INITIALLY DEFERRED
        );
        CREATE TABLE ledger (owner INTEGER PRIMARY KEY, step INTEGER, notes INTEGER, pairs INTEGER);
        """

    static let sideSchema = "CREATE TABLE side (owner INTEGER, key INTEGER, value, PRIMARY KEY (owner, key))"

    /// Of a row in the full-text table.
    static func rowID(owner: Int, key: Int) -> Int { owner * 1_000_000 + key }
}
