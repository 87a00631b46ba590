import RawStore
import SQLiteEngine

/// All that a database holds, told by one number; and the batches of the service under load.
struct Contents: Sendable, Equatable {
    /// Of the schema, the rows of all tables, `user_version` and `application_id`.
    let digest: UInt64
    /// Table `log`: number of each batch, and how many rows it has.
    let batches: [Int: Int]

    init(of connection: RawConnection) throws(RawConnection.Failure) {
        var hash = Hash()
        var batches: [Int: Int] = [:]
        for pragma in ["user_version", "application_id"] { hash.add(try connection.value("PRAGMA \(pragma)")) }
        let schema = try connection.rows("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name")
            // What a store remembers of its slots changes with them.
            .filter { $0[1] != "sealdb_slots" }
        for row in schema { for text in row { hash.add(text) } }
        for row in schema where row[0] == "table" && !row[1].hasPrefix("sqlite_") {
            if row[1] == "log" {
                for batch in try connection.rows("SELECT batch, count(*) FROM log GROUP BY batch") {
                    batches[Int(batch[0]) ?? -1] = Int(batch[1]) ?? -1
                }
            } else {
                for values in try connection.rows("SELECT rowid, * FROM \"\(row[1])\" ORDER BY rowid") {
                    for text in values { hash.add(text) }
                }
            }
        }
        digest = hash.value
        self.batches = batches
    }
}

/// FNV-1a, which is the same in every process.
struct Hash {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }

    mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0)
    }

    /// Eight bytes at a time: whole files pass through here.
    mutating func add(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { buffer in
            let words = buffer.count / 8
            for index in 0..<words {
                let word = buffer.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)
                value = (value ^ word) &* 0x9e37_79b9_7f4a_7c15
                value ^= value >> 29
            }
            for index in words * 8..<buffer.count { add(buffer[index]) }
        }
        add(0xff)
    }
}
