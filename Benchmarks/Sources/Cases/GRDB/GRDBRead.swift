#if PlainSQLite
    import Foundation
    import GRDB

    extension GRDBMakers {
        private struct MixedRow: Codable, FetchableRecord {
            var id: Int64
            var title: String
            var price: Double
            var digest: Data
            var note: String?
        }

        static var read: [String: Maker] {
            let names = ValueKind.columnNames
            var result: [String: Maker] = [:]
            let integers: Maker = {
                try reading(.integer, $0) { row, sum in
                    for column in 0..<5 { sum &+= UInt64(bitPattern: row[column] as Int64) }
                }
            }
            result["read.integer.index"] = integers
            result["read.integer.value"] = integers
            result["read.integer.tuple"] = integers
            result["read.integer.closure"] = integers
            result["read.integer.name"] = {
                try reading(.integer, $0) { row, sum in
                    for name in names { sum &+= UInt64(bitPattern: row[name] as Int64) }
                }
            }
            let reals: Maker = {
                try reading(.real, $0) { row, sum in
                    for column in 0..<5 { sum &+= UInt64(row[column] as Double) }
                }
            }
            result["read.real.index"] = reals
            result["read.real.tuple"] = reals
            result["read.real.name"] = {
                try reading(.real, $0) { row, sum in
                    for name in names { sum &+= UInt64(row[name] as Double) }
                }
            }
            let texts: Maker = {
                try reading(.text, $0) { row, sum in
                    for column in 0..<5 { sum &+= UInt64((row[column] as String).utf8.count) }
                }
            }
            result["read.text.index"] = texts
            result["read.text.copied"] = texts
            result["read.text.value"] = texts
            result["read.text.tuple"] = texts
            result["read.text.name"] = {
                try reading(.text, $0) { row, sum in
                    for name in names { sum &+= UInt64((row[name] as String).utf8.count) }
                }
            }
            let blobs: Maker = {
                try reading(.blob, $0) { row, sum in
                    for column in 0..<5 { sum &+= UInt64((row[column] as Data).count) }
                }
            }
            result["read.blob.index"] = blobs
            result["read.blob.copied"] = blobs
            result["read.blob.tuple"] = blobs
            result["read.null.index"] = {
                try reading(.null, $0) { row, sum in
                    for column in 0..<5 where row.hasNull(atIndex: column) { sum &+= 1 }
                }
            }
            let mixed: Maker = {
                try reading(.mixed, $0) { row, sum in
                    sum &+= UInt64(bitPattern: row[0] as Int64)
                    sum &+= UInt64((row[1] as String).utf8.count)
                    sum &+= UInt64(row[2] as Double)
                    sum &+= UInt64((row[3] as Data).count)
                    sum &+= row.hasNull(atIndex: 4) ? 1 : 0
                }
            }
            result["read.mixed.index"] = mixed
            result["read.mixed.copied"] = mixed
            result["read.mixed.value"] = mixed
            result["read.mixed.tuple"] = mixed
            result["read.mixed.closure"] = mixed
            result["read.mixed.name"] = {
                try reading(.mixed, $0) { row, sum in
                    sum &+= UInt64(bitPattern: row[names[0]] as Int64)
                    sum &+= UInt64((row[names[1]] as String).utf8.count)
                    sum &+= UInt64(row[names[2]] as Double)
                    sum &+= UInt64((row[names[3]] as Data).count)
                    sum &+= (row[names[4]] as DatabaseValue).isNull ? 1 : 0
                }
            }
            let dictionary: Maker = {
                try reading(.mixed, $0) { row, sum in
                    let row: [String: DatabaseValue] = Dictionary(row, uniquingKeysWith: { _, last in last })
                    sum &+= UInt64(bitPattern: row[names[0]].flatMap { Int64.fromDatabaseValue($0) } ?? 0)
                    sum &+= UInt64(row[names[1]].flatMap { String.fromDatabaseValue($0) }?.utf8.count ?? 0)
                    sum &+= UInt64(row[names[2]].flatMap { Double.fromDatabaseValue($0) } ?? 0)
                    sum &+= UInt64(row[names[3]].flatMap { Data.fromDatabaseValue($0) }?.count ?? 0)
                    sum &+= row[names[4]]?.isNull == true ? 1 : 0
                }
            }
            result["read.mixed.dictionary"] = dictionary
            result["read.mixed.dictionary-typed"] = dictionary
            result["read.mixed.codable"] = { fixtures in
                let queue = try StoreOptions().grdbQueue(try fixtures.readStore())
                return Work(units: Fixtures.readRows) {
                    try queue.inDatabase { db in
                        var sum: UInt64 = 0
                        let sql = "SELECT * FROM \(ValueKind.mixed.table)"
                        let rows = try MixedRow.fetchCursor(db.cachedStatement(sql: sql))
                        while let row = try rows.next() {
                            sum &+= UInt64(bitPattern: row.id)
                            sum &+= UInt64(row.title.utf8.count)
                            sum &+= UInt64(row.price)
                            sum &+= UInt64(row.digest.count)
                            sum &+= row.note == nil ? 1 : 0
                        }
                        return sum
                    }
                }
            }
            return result
        }

        @inline(__always)
        private static func reading(
            _ kind: ValueKind,
            _ fixtures: Fixtures,
            _ read: @escaping (Row, inout UInt64) throws -> Void
        ) throws -> Work {
            let queue = try StoreOptions().grdbQueue(try fixtures.readStore())
            let sql = "SELECT * FROM \(kind.table)"
            return Work(units: Fixtures.readRows) {
                try queue.inDatabase { db in
                    var sum: UInt64 = 0
                    let rows = try Row.fetchCursor(db.cachedStatement(sql: sql))
                    while let row = try rows.next() { try read(row, &sum) }
                    return sum
                }
            }
        }
    }
#endif
