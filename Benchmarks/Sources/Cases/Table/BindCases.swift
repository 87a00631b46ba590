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
        (id: "named-typed", title: "SQL text each time, typed dictionary of names"),
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
    /// Where values are made that outlast the row, C makes them too: it copies texts and blobs.
    static let forms = [
        (id: "index", title: "by index", lasts: false),
        (id: "name", title: "by name", lasts: false),
        (id: "copied", title: "by index; C copies", lasts: true),
        (id: "value", title: "by index, typed and checked; C copies", lasts: true),
        (id: "tuple", title: "as tuples; C copies", lasts: true),
        (id: "closure", title: "by a closure of the columns; C copies", lasts: true),
        (id: "codable", title: "as Codable structs; C copies", lasts: true),
        (id: "dictionary", title: "as dictionaries; C copies", lasts: true),
        (id: "dictionary-typed", title: "as typed dictionaries; C copies", lasts: true),
    ]

    static var infos: [CaseInfo] {
        let kinds = [
            ("integer", "5 × Int64"), ("real", "5 × Double"), ("text", "5 × String"), ("blob", "5 × Data"),
            ("null", "5 × NULL"), ("date", "5 × Date"), ("mixed", "Int64, String, Double, Data, NULL"),
        ]
        return kinds.flatMap { kind, kindTitle in
            forms.map { form in
                // Numbers need no copy.
                let title =
                    ["text", "blob", "mixed"].contains(kind) ? form.title : form.title.replacing("; C copies", with: "")
                return CaseInfo(
                    id: "read.\(kind).\(form.id)",
                    group: "Read",
                    title: "\(kindTitle): \(title)",
                    unit: "row"
                )
            }
        }
    }
}
