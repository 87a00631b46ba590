import Wire

/// Inserts of five values of one type, in one transaction that is rolled back: no page is encrypted or written.
enum BindCases {
    static let rows = 1000
    static let createTable = "CREATE TABLE bound (a, b, c, d, e)"
    static let insert = "INSERT INTO bound VALUES (?, ?, ?, ?, ?)"
    static let insertNamed = "INSERT INTO bound VALUES (:a, :b, :c, :d, :e)"

    static let forms = [
        (id: "prepared", title: "statement prepared once, typed"),
        (id: "cached", title: "SQL text each time, typed"),
        (id: "prepared-any", title: "statement prepared once, [Any]"),
        (id: "cached-any", title: "SQL text each time, [Any]"),
        (id: "named", title: "SQL text each time, dictionary of names"),
        (id: "interpolated", title: "SQL text each time, interpolated"),
    ]

    static var infos: [CaseInfo] {
        let kinds = [
            ("integer", "5 × Int64"), ("real", "5 × Double"), ("text", "5 × String"), ("blob", "5 × Data"),
            ("null", "5 × NULL"), ("date", "5 × Date"), ("mixed", "Int64, String, Double, Data, NULL"),
        ]
        return kinds.flatMap { kind, kindTitle in
            forms.map { form in
                CaseInfo(
                    id: "bind.\(kind).\(form.id)",
                    group: "Bind",
                    title: "\(kindTitle): \(form.title)",
                    unit: "row"
                )
            }
        }
    }
}

/// Reads of 2,000 rows of five columns.
enum ReadCases {
    static let forms = [
        (id: "index", title: "by index"),
        (id: "name", title: "by name"),
        (id: "copied", title: "by index, and C copies the bytes too"),
        (id: "value", title: "by index, typed and checked"),
        (id: "tuple", title: "as tuples"),
        (id: "codable", title: "as Codable structs"),
        (id: "dictionary", title: "as dictionaries"),
    ]

    static var infos: [CaseInfo] {
        let kinds = [
            ("integer", "5 × Int64"), ("real", "5 × Double"), ("text", "5 × String"), ("blob", "5 × Data"),
            ("null", "5 × NULL"), ("date", "5 × Date"), ("mixed", "Int64, String, Double, Data, NULL"),
        ]
        return kinds.flatMap { kind, kindTitle in
            forms.map { form in
                CaseInfo(
                    id: "read.\(kind).\(form.id)",
                    group: "Read",
                    title: "\(kindTitle): \(form.title)",
                    unit: "row"
                )
            }
        }
    }
}
