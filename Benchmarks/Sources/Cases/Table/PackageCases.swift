import Wire

/// Real data: the machine's package index.
enum PackageCases {
    static let loading = StoreOptions(synchronous: "normal")
    static let read = "SELECT \(PackageIndex.columns.joined(separator: ", ")) FROM package"
    static let lookup = "SELECT version, description FROM package WHERE name = ?"
    static let queries = [
        "packages.search": "SELECT name FROM package WHERE description LIKE '%encrypt%' ORDER BY name",
        "packages.report": """
        SELECT section, count(*), sum(length(description)) FROM package GROUP BY section ORDER BY 2 DESC
        """,
    ]

    static func store(_ fixtures: Fixtures) throws -> String {
        let packages = try fixtures.packages()
        return try fixtures.store("packages", StoreOptions()) { db in
            try db.execute(PackageIndex.createTable)
            try db.insertPackages(packages)
            try db.execute("CREATE INDEX package_name ON package (name)")
        }
    }

    static let infos = [
        CaseInfo(id: "packages.load", group: "Package index", title: "load all packages, one transaction", unit: "row"),
        CaseInfo(id: "packages.read", group: "Package index", title: "read all columns of all packages", unit: "row"),
        CaseInfo(id: "packages.lookup", group: "Package index", title: "look a package up by its name", unit: "query"),
        CaseInfo(
            id: "packages.search",
            group: "Package index",
            title: "search all descriptions for a word",
            unit: "query"
        ),
        CaseInfo(id: "packages.report", group: "Package index", title: "count packages by section", unit: "query"),
    ]
}
