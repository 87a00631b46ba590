import Foundation

/// The reading half of a ``DatabasePool``: connections that never write, and are opened when they are needed.
// @unchecked: only the holder of a place uses the database of that place.
final class Readers: @unchecked Sendable {
    let databases: [Database]
    private let reception: Reception
    private let open: (Database) throws(DatabaseError) -> Void

    init(
        databases: [Database],
        reception: Reception,
        open: @escaping (Database) throws(DatabaseError) -> Void
    ) {
        self.databases = databases
        self.reception = reception
        self.open = open
    }

    func read<T>(_ block: (Database) throws -> T) throws -> T {
        try run(reception.enter(.readers, call: "read"), nil, block)
    }

    func read<T: Sendable>(_ block: @Sendable (Database) throws -> T) async throws -> T {
        let request = Reception.Books.Request(desk: .readers, call: "read")
        return try await TaskTurn(reception, request).run { place, stop in try run(place, stop, block) }
    }

    private func run<T>(
        _ place: Reception.Place,
        _ stop: StopFlag?,
        _ block: (Database) throws -> T
    ) throws -> T {
        let database = databases[place.number]
        database.enter()
        defer {
            database.supervision.writeLine?.letGo(database.supervision)
            reception.leave(place, database)
        }
        do {
            try database.recording { () throws(DatabaseError) in try prepare(database) }
            let result = try database.snapshot(stop: stop, block)
            reception.instruments.read(failed: false)
            return result
        } catch {
            reception.instruments.read(failed: true)
            database.closeIfUnusable(after: error)
            throw error
        }
    }

    private func prepare(_ database: Database) throws(DatabaseError) {
        try database.closeIfReplaced()
        guard !database.isOpen else { return }
        try open(database)
        try database.connection?.run("PRAGMA query_only = ON")
    }
}
