import Foundation
import SealedDB

/// Fills any type from a table whose columns have the names of its properties.
struct ObjectFetcher<Object: Decodable & Sendable>: Sendable {
    private let queue: DatabaseQueue
    private let table: String

    init(_ type: Object.Type, from table: String, of queue: DatabaseQueue) {
        self.queue = queue
        self.table = table
    }

    /// All objects, in the order of a column.
    func all(by column: String) throws -> [Object] {
        try queue.inDatabase { db in
            try db.executeQuery("SELECT * FROM \(identifier: table) ORDER BY \(identifier: column)").all(Object.self)
        }
    }

    /// The object with this id; `nil` if there is none.
    func object(id: Int64) throws -> Object? {
        try queue.inDatabase { db in
            try db.executeQuery("SELECT * FROM \(identifier: table) WHERE id = \(id)").first(Object.self)
        }
    }

    /// The objects whose column has one of the values.
    func objects(where column: String, isIn values: [String]) throws -> [Object] {
        try queue.inDatabase { db in
            try db.executeQuery(
                "SELECT * FROM \(identifier: table) WHERE \(identifier: column) IN \(values) ORDER BY id"
            ).all(Object.self)
        }
    }
}
