import Foundation

/// The reading half of a ``DatabasePool``: connections that never write, opened when they are needed.
// @unchecked: each database is used by whoever has its place in the lane.
final class Readers: @unchecked Sendable {
    let lane: Lane
    let databases: [Database]
    private let open: (Database) throws(DatabaseError) -> Void
    private let books: Guarded<Books>

    private struct Books {
        var isOpen: [Bool]
        /// Counts up when all are to be closed.
        var generation = 0
    }

    init(
        databases: [Database],
        instruments: Instruments,
        open: @escaping (Database) throws(DatabaseError) -> Void
    ) {
        self.databases = databases
        self.open = open
        lane = Lane(places: databases.count, name: "pool", instruments: instruments)
        books = Guarded(Books(isOpen: databases.map { _ in false }))
    }

    var openCount: Int { books.withLock { $0.isOpen.count { $0 } } }

    // MARK: Calls

    func read<T>(_ block: (Database) throws -> T) throws -> T {
        let place = try lane.enter()
        defer { lane.leave(place) }
        return try perform(at: place, stop: nil, block)
    }

    func read<T: Sendable>(_ block: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await Call<T>(lane).run(shareable: false) { [self] place, call in
            call.end {
                try perform(at: place, stop: call.stop, block)
            } before: {
                lane.leave(place)
            }
        }
    }

    private func perform<T>(at place: Int, stop: StopFlag?, _ block: (Database) throws -> T) throws -> T {
        let database = databases[place]
        let generation = books.withLock { $0.generation }
        database.enter()
        defer { settle(place, generation) }
        do {
            try database.recording { () throws(DatabaseError) in try prepare(database) }
            let result = try database.snapshot(stop: stop, block)
            lane.instruments.read(failed: false)
            return result
        } catch {
            lane.instruments.read(failed: true)
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

    private func settle(_ place: Int, _ generation: Int) {
        let database = databases[place]
        let isWanted = books.withLock { $0.generation == generation }
        if !isWanted { database.close() }
        let isOpen = database.isOpen
        database.leave()
        books.withLock { $0.isOpen[place] = isOpen }
    }

    // MARK: Closing

    /// Closes the connections: idle ones now, others when their block ends.
    func closeAll() {
        books.withLock { $0.generation += 1 }
        for place in lane.takeFree() {
            databases[place].enter()
            databases[place].close()
            databases[place].leave()
            books.withLock { $0.isOpen[place] = false }
            lane.leave(place)
        }
    }

    /// Remembers that whoever has all places has closed the connections.
    func areClosed() {
        books.withLock { $0.isOpen = databases.map { _ in false } }
    }

    /// After the lane's end.
    func closeForGood() async {
        await withCheckedContinuation { continuation in
            lane.onOwnThread(at: 0) { [self] in
                closeAll()
                continuation.resume()
            }
        }
    }
}
