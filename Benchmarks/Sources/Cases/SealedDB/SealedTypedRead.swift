import Foundation
import SealedDB

/// Tuples and Codable structs.
extension SealedMakers {
    private struct MixedRow: Codable {
        var id: Int64
        var title: String
        var price: Double
        var digest: Data
        var note: String?
    }

    static var typedRead: [String: Maker] {
        var result: [String: Maker] = [:]
        result["read.integer.tuple"] = {
            try fetching(.integer, (Int64, Int64, Int64, Int64, Int64).self, $0) { row in
                UInt64(bitPattern: row.0 &+ row.1 &+ row.2 &+ row.3 &+ row.4)
            }
        }
        result["read.real.tuple"] = {
            try fetching(.real, (Double, Double, Double, Double, Double).self, $0) { row in
                UInt64(row.0) &+ UInt64(row.1) &+ UInt64(row.2) &+ UInt64(row.3) &+ UInt64(row.4)
            }
        }
        result["read.text.tuple"] = {
            try fetching(.text, (String, String, String, String, String).self, $0) { row in
                UInt64(
                    row.0.utf8.count + row.1.utf8.count + row.2.utf8.count + row.3.utf8.count + row.4.utf8.count
                )
            }
        }
        result["read.blob.tuple"] = {
            try fetching(.blob, (Data, Data, Data, Data, Data).self, $0) { row in
                UInt64(row.0.count + row.1.count + row.2.count + row.3.count + row.4.count)
            }
        }
        result["read.mixed.tuple"] = {
            try fetching(.mixed, (Int64, String, Double, Data, String?).self, $0) { row in
                UInt64(bitPattern: row.0) &+ UInt64(row.1.utf8.count) &+ UInt64(row.2) &+ UInt64(row.3.count)
                    &+ (row.4 == nil ? 1 : 0)
            }
        }
        result["read.mixed.value"] = {
            try reading(.mixed, $0) { rows, sum in
                sum &+= UInt64(bitPattern: try rows.value(Int64.self, forColumnIndex: 0))
                sum &+= UInt64(try rows.value(String.self, forColumnIndex: 1).utf8.count)
                sum &+= UInt64(try rows.value(Double.self, forColumnIndex: 2))
                sum &+= UInt64(try rows.value(Data.self, forColumnIndex: 3).count)
                sum &+= try rows.value(String?.self, forColumnIndex: 4) == nil ? 1 : 0
            }
        }
        result["read.mixed.codable"] = { fixtures in
            let queue = try StoreOptions().queue(try fixtures.readStore())
            let sql = SQL(raw: "SELECT * FROM \(ValueKind.mixed.table)")
            return Work(units: Fixtures.readRows) {
                try queue.inDatabase { db in
                    var sum: UInt64 = 0
                    let rows = try db.query(MixedRow.self, sql)
                    while let row = try rows.next() {
                        sum &+= UInt64(bitPattern: row.id) &+ UInt64(row.title.utf8.count) &+ UInt64(row.price)
                        sum &+= UInt64(row.digest.count) &+ (row.note == nil ? 1 : 0)
                    }
                    return sum
                }
            }
        }
        return result
    }

    @inline(__always)
    private static func fetching<each Column: ColumnReadable>(
        _ kind: ValueKind,
        _ type: (repeat each Column).Type,
        _ fixtures: Fixtures,
        _ sum: @escaping ((repeat each Column)) -> UInt64
    ) throws -> Work {
        let queue = try StoreOptions().queue(try fixtures.readStore())
        let sql = SQL(raw: "SELECT * FROM \(kind.table)")
        return Work(units: Fixtures.readRows) {
            try queue.inDatabase { db in
                var total: UInt64 = 0
                let rows = try db.query(type, sql)
                while let row = try rows.next() { total &+= sum(row) }
                return total
            }
        }
    }
}
