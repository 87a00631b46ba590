import Foundation
import SealedDB

extension SealedMakers {
    static var read: [String: Maker] {
        let names = ValueKind.columnNames
        var result: [String: Maker] = [:]
        result["read.integer.index"] = {
            try reading(.integer, $0) { rows, sum in
                for column in Int32(0)..<5 { sum &+= UInt64(bitPattern: rows.longLongInt(forColumnIndex: column)) }
            }
        }
        result["read.integer.name"] = {
            try reading(.integer, $0) { rows, sum in
                for name in names { sum &+= UInt64(bitPattern: rows.longLongInt(forColumn: name)) }
            }
        }
        result["read.real.index"] = {
            try reading(.real, $0) { rows, sum in
                for column in Int32(0)..<5 { sum &+= UInt64(rows.double(forColumnIndex: column)) }
            }
        }
        result["read.real.name"] = {
            try reading(.real, $0) { rows, sum in
                for name in names { sum &+= UInt64(rows.double(forColumn: name)) }
            }
        }
        let texts: Maker = {
            try reading(.text, $0) { rows, sum in
                for column in Int32(0)..<5 { sum &+= UInt64(rows.string(forColumnIndex: column)?.utf8.count ?? 0) }
            }
        }
        result["read.text.index"] = texts
        result["read.text.copied"] = texts
        result["read.text.name"] = {
            try reading(.text, $0) { rows, sum in
                for name in names { sum &+= UInt64(rows.string(forColumn: name)?.utf8.count ?? 0) }
            }
        }
        let blobs: Maker = {
            try reading(.blob, $0) { rows, sum in
                for column in Int32(0)..<5 { sum &+= UInt64(rows.data(forColumnIndex: column)?.count ?? 0) }
            }
        }
        result["read.blob.index"] = blobs
        result["read.blob.copied"] = blobs
        result["read.null.index"] = {
            try reading(.null, $0) { rows, sum in
                for column in Int32(0)..<5 where rows.columnIndexIsNull(column) { sum &+= 1 }
            }
        }
        result["read.date.index"] = {
            try reading(.real, $0) { rows, sum in
                for column in Int32(0)..<5 {
                    sum &+= UInt64(rows.date(forColumnIndex: column)?.timeIntervalSince1970 ?? 0)
                }
            }
        }
        let mixed: Maker = {
            try reading(.mixed, $0) { rows, sum in
                sum &+= UInt64(bitPattern: rows.longLongInt(forColumnIndex: 0))
                sum &+= UInt64(rows.string(forColumnIndex: 1)?.utf8.count ?? 0)
                sum &+= UInt64(rows.double(forColumnIndex: 2))
                sum &+= UInt64(rows.data(forColumnIndex: 3)?.count ?? 0)
                sum &+= rows.columnIndexIsNull(4) ? 1 : 0
            }
        }
        result["read.mixed.index"] = mixed
        result["read.mixed.copied"] = mixed
        result["read.mixed.name"] = {
            try reading(.mixed, $0) { rows, sum in
                sum &+= UInt64(bitPattern: rows.longLongInt(forColumn: names[0]))
                sum &+= UInt64(rows.string(forColumn: names[1])?.utf8.count ?? 0)
                sum &+= UInt64(rows.double(forColumn: names[2]))
                sum &+= UInt64(rows.data(forColumn: names[3])?.count ?? 0)
                sum &+= rows.columnIsNull(names[4]) ? 1 : 0
            }
        }
        result["read.mixed.dictionary"] = {
            try reading(.mixed, $0) { rows, sum in
                guard let row = rows.resultDictionary else { return }
                sum &+= UInt64(bitPattern: (row[names[0]] as? NSNumber)?.int64Value ?? 0)
                sum &+= UInt64((row[names[1]] as? String)?.utf8.count ?? 0)
                sum &+= UInt64((row[names[2]] as? NSNumber)?.doubleValue ?? 0)
                sum &+= UInt64((row[names[3]] as? Data)?.count ?? 0)
                sum &+= row[names[4]] is NSNull ? 1 : 0
            }
        }
        return result
    }

    @inline(__always)
    static func reading(
        _ kind: ValueKind,
        _ fixtures: Fixtures,
        _ read: @escaping (ResultSet, inout UInt64) throws -> Void
    ) throws -> Work {
        let queue = try StoreOptions().queue(try fixtures.readStore())
        let sql = "SELECT * FROM \(kind.table)"
        return Work(units: Fixtures.readRows) {
            try queue.inDatabase { db in
                var sum: UInt64 = 0
                let rows = try db.executeQuery(sql, values: nil)
                while try rows.nextWithError() { try read(rows, &sum) }
                return sum
            }
        }
    }
}
