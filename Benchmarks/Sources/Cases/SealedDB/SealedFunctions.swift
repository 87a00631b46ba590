import Foundation
import SealedDB

extension SealedMakers {
    static var functions: [String: Maker] {
        var result: [String: Maker] = [:]
        for (id, sql) in FunctionCases.queries {
            result[id] = { fixtures in
                let queue = try StoreOptions().queue(try fixtures.itemStore())
                try queue.inDatabase { db in
                    if id.hasSuffix(".block") { addBlocks(to: db) } else { try addFunctions(to: db) }
                }
                return Work(units: FunctionCases.calls) {
                    try queue.inDatabase { db in UInt64(bitPattern: try db.integer(sql)) }
                }
            }
        }
        result["fts.insert"] = { try insertDocuments($0, FullTextCases.createTable) }
        result["fts.tokenizer"] = { try insertDocuments($0, FullTextCases.createTokenizedTable) }
        result["fts.match"] = { fixtures in
            let queue = try StoreOptions().queue(try FullTextCases.store(fixtures))
            return Work(units: 1) { try queue.inDatabase { db in UInt64(try db.count(FullTextCases.match)) } }
        }
        return result
    }

    private struct Total: SQLAggregate {
        var total: Int64 = 0

        mutating func step(_ arguments: borrowing FunctionArguments) { total &+= arguments.integer(at: 0) }

        mutating func finalize() -> SQLValue { .integer(total) }
    }

    private static func addFunctions(to db: Database) throws {
        try db.addFunction("twice", argumentCount: 1, options: .deterministic) { arguments in
            .integer(arguments.integer(at: 0) * 2)
        }
        try db.addFunction("half", argumentCount: 1, options: .deterministic) { arguments in
            guard let text = arguments.text(at: 0) else { return .null }
            return .text(String(text.utf8.prefix(text.utf8.count / 2)) ?? "")
        }
        try db.addAggregate("total_of", argumentCount: 1, options: .deterministic, Total.self)
    }

    private static func addBlocks(to db: Database) {
        db.makeFunctionNamed("twice", arguments: 1) { [unowned db] context, _, values in
            db.resultLong(db.valueLong(values[0]) * 2, context: context)
        }
        db.makeFunctionNamed("half", arguments: 1) { [unowned db] context, _, values in
            guard let text = db.valueString(values[0]) else { return }
            db.resultString(String(text.utf8.prefix(text.utf8.count / 2)) ?? "", context: context)
        }
    }

    private static func insertDocuments(_ fixtures: Fixtures, _ createTable: String) throws -> Work {
        let queue = try StoreOptions().queue(fixtures.newPath())
        try queue.inDatabase { db in
            try db.addTokenizer("words") { _ in SimpleTokenizer() }
            try db.executeUpdate(createTable, values: nil)
        }
        return Work(units: FullTextCases.rows) {
            try queue.inDatabase { db in
                guard db.beginTransaction() else { throw db.lastError() }
                for body in FullTextCases.bodies { try db.executeUpdate(FullTextCases.insert, body) }
                guard db.rollback() else { throw db.lastError() }
            }
            return UInt64(FullTextCases.rows)
        }
    }

    static var blobs: [String: Maker] {
        [
            "blob.read": { fixtures in
                let queue = try BlobCases.options.queue(try BlobCases.store(fixtures, named: "blob"))
                var buffer = [UInt8](repeating: 0, count: BlobCases.chunk)
                return Work(units: BlobCases.mebibytes) {
                    try queue.inDatabase { db in
                        let blob = try db.openBlob(table: BlobCases.table, column: BlobCases.column, rowID: 1)
                        var sum: UInt64 = 0
                        for offset in stride(from: 0, to: blob.count, by: BlobCases.chunk) {
                            try buffer.withUnsafeMutableBytes { try blob.read(at: offset, into: $0) }
                            sum += UInt64(buffer[0])
                        }
                        try blob.close()
                        return sum
                    }
                }
            },
            "blob.write": { fixtures in
                let path = try BlobCases.store(fixtures, named: "blob written by SealedDB")
                let queue = try BlobCases.options.queue(path)
                let bytes = [UInt8](repeating: 7, count: BlobCases.chunk)
                return Work(units: BlobCases.mebibytes, isUniform: false) {
                    try queue.inDatabase { db in
                        let blob = try db.openBlob(
                            table: BlobCases.table,
                            column: BlobCases.column,
                            rowID: 1,
                            isWritable: true
                        )
                        for offset in stride(from: 0, to: blob.count, by: BlobCases.chunk) {
                            try blob.write(bytes, at: offset)
                        }
                        try blob.close()
                    }
                    return 1
                }
            },
        ]
    }
}
