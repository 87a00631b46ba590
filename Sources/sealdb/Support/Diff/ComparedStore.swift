import SealedDB

/// One of two stores that are compared, as it is at one moment.
struct ComparedStore {
    /// How the user calls it.
    let name: String
    let database: Database
    /// What somebody made; tables that virtual tables make for themselves belong to these.
    private(set) var objects: [SchemaObject] { didSet { index() } }
    /// The same, also those that are not compared.
    let all: [SchemaObject]
    private(set) var isRestricted = false
    private var places: [SchemaObject.Identity: Int] = [:]

    init(_ name: String, _ database: Database) throws {
        (self.name, self.database) = (name, database)
        guard database.beginDeferredTransaction() else { throw database.lastError() }
        // The first read takes the snapshot.
        all = try SchemaObject.all(of: database).filter { $0.kind != .shadowTable }
        objects = all
        index()
    }

    private mutating func index() {
        // No two objects of a schema have one identity, unless somebody has written into it.
        places = Dictionary(objects.enumerated().map { ($1.identity, $0) }) { first, _ in first }
    }

    /// Leaves only those that belong to these tables and views.
    mutating func restrict(to names: Set<ExactText>) {
        isRestricted = true
        objects.removeAll { !names.contains(ExactText(name: $0.isOfTable ? $0.table : $0.name)) }
    }

    /// The object of this store that has the name of one of the other store.
    func counterpart(of object: SchemaObject) -> SchemaObject? { self.object(object.identity) }

    func object(_ identity: SchemaObject.Identity) -> SchemaObject? { places[identity].map { objects[$0] } }

    func contains(_ object: SchemaObject) -> Bool { places[object.identity] != nil }

    func table(named name: String) -> SchemaObject? {
        let identity = SchemaObject.Identity(name: ExactText(name: name), isTrigger: false)
        return places[identity].map { objects[$0] }.flatMap { $0.isShown ? $0 : nil }
    }

    /// The columns of a table or virtual table; `nil` for what has no rows of its own.
    func contents(of object: SchemaObject) throws -> TableContents? {
        switch object.kind {
        case .table: return try TableContents(object.name, in: database)
        case .virtualTable:
            guard let text = object.virtualTable,
                case .own(let contents) = try VirtualTable(object, text, in: database).source
            else { return nil }
            return contents
        case .shadowTable, .view, .index, .trigger: return nil
        }
    }

    /// The options that were set in a full-text table, as text.
    func options(of object: SchemaObject) throws -> [String] {
        guard let text = object.virtualTable else { return [] }
        return try VirtualTable(object, text, in: database).options(database).map {
            "\($0.name) = \(SQLLiteral.text(of: $0.value))"
        }
    }

    /// What a pragma returns, as text.
    func value(of pragma: String) throws -> String? {
        let rows = try database.executeQuery(SQL(raw: "PRAGMA \(pragma)"))
        defer { rows.close() }
        return try rows.nextWithError() ? Cell(rows, column: 0).plainText : nil
    }

    /// The next row ids of tables with AUTOINCREMENT, by the name of the table.
    func counters() throws -> [ExactText: Cell] {
        var counters: [ExactText: Cell] = [:]
        for (name, next) in try SQLScriptWriter.counters(objects, in: database) {
            counters[ExactText(name: name)] = next
        }
        return counters
    }
}
