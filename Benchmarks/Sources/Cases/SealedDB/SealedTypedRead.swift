import Foundation
import SealedDB

/// Tuples, Codable structs, and values that are read as one type alone.
extension SealedMakers {
    private struct MixedRow: Codable {
        var id: Int64
        var title: String
        var price: Double
        var digest: Data
        var note: String?
    }

    static var typedRead: [String: Maker] {
        [
            "read.integer.tuple": { fixtures in
                try fetching(.integer, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows((Int64, Int64, Int64, Int64, Int64).self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.0, to: &sum)
                        add(row.1, to: &sum)
                        add(row.2, to: &sum)
                        add(row.3, to: &sum)
                        add(row.4, to: &sum)
                    }
                    return sum
                }
            },
            "read.real.tuple": { fixtures in
                try fetching(.real, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows((Double, Double, Double, Double, Double).self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.0, to: &sum)
                        add(row.1, to: &sum)
                        add(row.2, to: &sum)
                        add(row.3, to: &sum)
                        add(row.4, to: &sum)
                    }
                    return sum
                }
            },
            "read.text.tuple": { fixtures in
                try fetching(.text, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows((String, String, String, String, String).self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.0, to: &sum)
                        add(row.1, to: &sum)
                        add(row.2, to: &sum)
                        add(row.3, to: &sum)
                        add(row.4, to: &sum)
                    }
                    return sum
                }
            },
            "read.blob.tuple": { fixtures in
                try fetching(.blob, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows((Data, Data, Data, Data, Data).self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.0, to: &sum)
                        add(row.1, to: &sum)
                        add(row.2, to: &sum)
                        add(row.3, to: &sum)
                        add(row.4, to: &sum)
                    }
                    return sum
                }
            },
            "read.mixed.tuple": { fixtures in
                try fetching(.mixed, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows((Int64, String, Double, Data, String?).self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.0, to: &sum)
                        add(row.1, to: &sum)
                        add(row.2, to: &sum)
                        add(row.3, to: &sum)
                        if row.4 == nil { sum &+= 1 }
                    }
                    return sum
                }
            },
            "read.integer.closure": { fixtures in
                try fetching(.integer, fixtures) { db, sql in
                    var sum: UInt64 = 0
                    try db.executeQuery(sql).forEach { (a: Int64, b: Int64, c: Int64, d: Int64, e: Int64) in
                        add(a, to: &sum)
                        add(b, to: &sum)
                        add(c, to: &sum)
                        add(d, to: &sum)
                        add(e, to: &sum)
                    }
                    return sum
                }
            },
            "read.mixed.closure": { fixtures in
                try fetching(.mixed, fixtures) { db, sql in
                    var sum: UInt64 = 0
                    try db.executeQuery(sql).forEach {
                        (id: Int64, title: String, price: Double, digest: Data, note: String?) in
                        add(id, to: &sum)
                        add(title, to: &sum)
                        add(price, to: &sum)
                        add(digest, to: &sum)
                        if note == nil { sum &+= 1 }
                    }
                    return sum
                }
            },
            "read.mixed.dictionary-typed": { fixtures in
                try fetching(.mixed, fixtures) { db, sql in
                    let names = ValueKind.columnNames
                    let rows = try db.executeQuery(sql).rows([String: SQLValue].self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        if case .integer(let value) = row[names[0]] { add(value, to: &sum) }
                        if case .text(let value) = row[names[1]] { add(value, to: &sum) }
                        if case .real(let value) = row[names[2]] { add(value, to: &sum) }
                        if case .blob(let value) = row[names[3]] { add(value, to: &sum) }
                        if case .null = row[names[4]] { sum &+= 1 }
                    }
                    return sum
                }
            },
            "read.integer.value": { fixtures in
                try fetching(.integer, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql)
                    var sum: UInt64 = 0
                    while try rows.nextWithError() {
                        for column in Int32(0)..<5 { add(try rows.value(Int64.self, forColumnIndex: column), to: &sum) }
                    }
                    return sum
                }
            },
            "read.text.value": { fixtures in
                try fetching(.text, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql)
                    var sum: UInt64 = 0
                    while try rows.nextWithError() {
                        for column in Int32(0)..<5 {
                            add(try rows.value(String.self, forColumnIndex: column), to: &sum)
                        }
                    }
                    return sum
                }
            },
            "read.mixed.value": { fixtures in
                try fetching(.mixed, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql)
                    var sum: UInt64 = 0
                    while try rows.nextWithError() {
                        add(try rows.value(Int64.self, forColumnIndex: 0), to: &sum)
                        add(try rows.value(String.self, forColumnIndex: 1), to: &sum)
                        add(try rows.value(Double.self, forColumnIndex: 2), to: &sum)
                        add(try rows.value(Data.self, forColumnIndex: 3), to: &sum)
                        if try rows.value(String?.self, forColumnIndex: 4) == nil { sum &+= 1 }
                    }
                    return sum
                }
            },
            "read.mixed.codable": { fixtures in
                try fetching(.mixed, fixtures) { db, sql in
                    let rows = try db.executeQuery(sql).rows(MixedRow.self)
                    var sum: UInt64 = 0
                    while let row = try rows.next() {
                        add(row.id, to: &sum)
                        add(row.title, to: &sum)
                        add(row.price, to: &sum)
                        add(row.digest, to: &sum)
                        if row.note == nil { sum &+= 1 }
                    }
                    return sum
                }
            },
        ]
    }

    private static func fetching(
        _ kind: ValueKind,
        _ fixtures: Fixtures,
        _ fetch: @escaping (Database, SQL) throws -> UInt64
    ) throws -> Work {
        let queue = try StoreOptions().queue(try fixtures.readStore())
        let sql = SQL(raw: "SELECT * FROM \(kind.table)")
        return Work(units: Fixtures.readRows) {
            try queue.inDatabase { db in try fetch(db, sql) }
        }
    }

    @inline(__always) private static func add(_ value: Int64, to sum: inout UInt64) {
        sum &+= UInt64(bitPattern: value)
    }

    @inline(__always) private static func add(_ value: Double, to sum: inout UInt64) { sum &+= UInt64(value) }

    @inline(__always) private static func add(_ value: String, to sum: inout UInt64) {
        sum &+= UInt64(value.utf8.count)
    }

    @inline(__always) private static func add(_ value: Data, to sum: inout UInt64) { sum &+= UInt64(value.count) }
}
