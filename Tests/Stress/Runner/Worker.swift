import Foundation
import SealedDB

/// The process that uses the store: all clients of a round at once.
enum Worker {
    /// Makes the tables.
    static func prepare(_ place: Place) throws {
        for (path, key, schema) in [(place.store, 0, Table.schema), (place.side, Place.sideKey, Table.sideSchema)] {
            let queue = try DatabaseQueue(path: path, configuration: Configuration(key: place.key(key)))
            try queue.write { db in
                guard db.executeStatements(schema) else { throw db.lastError() }
            }
            queue.close()
        }
    }

    static func run(_ place: Place, process: Int) async throws {
        let decoder = JSONDecoder()
        let plan = try decoder.decode(RoundPlan.self, from: Data(contentsOf: URL(fileURLWithPath: place.planFile)))
        let model = try decoder.decode(StoreModel.self, from: Data(contentsOf: URL(fileURLWithPath: place.modelFile)))
        let processPlan = plan.processes[process]
        if let room = processPlan.room { try limitFiles(of: place, room: room) }
        let station: Station
        do {
            station = try self.station(place, plan, processPlan)
        } catch let error as DatabaseError where processPlan.room != nil && Client.isFullDisk(error) {
            return
        } catch is DatabaseError where processPlan.faults != nil {
            return
        }
        if station.service != nil { try Data().write(to: URL(fileURLWithPath: place.serviceFile)) }
        await withTaskGroup(of: Void.self) { group in
            for clientPlan in processPlan.clients {
                let client = Client(clientPlan, station: station, state: model.clients[clientPlan.id] ?? ClientState())
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            client.run()
                            continuation.resume()
                        }
                    }
                }
            }
        }
        if let service = station.service {
            try FileManager.default.removeItem(atPath: place.serviceFile)
            await service.access.shutDown()
        }
    }

    /// A peer may read the store at this moment. Then its journal mode cannot be changed, and SQLite does not wait for that. And
    /// a visitor who began sooner may rotate the store: the key that was read is not its key any more, and the next one is not
    /// noted yet.
    private static func station(_ place: Place, _ plan: RoundPlan, _ process: ProcessPlan) throws -> Station {
        while true {
            do {
                return try Station(place: place, plan: plan, process: process)
            } catch let error as DatabaseError
                where error.reason == .busy || error.reason == .wrongKey && plan.rotates
            {
                guard Date().timeIntervalSince1970 < plan.deadline else { throw error }
                usleep(1000)
            }
        }
    }

    /// Lets no file of this process grow beyond the store's size and the room.
    private static func limitFiles(of place: Place, room: Int) throws {
        let size = try FileManager.default.attributesOfItem(atPath: place.store)[.size] as? Int ?? 0
        var limit = rlimit(rlim_cur: rlim_t(size + room), rlim_max: rlim_t(size + room))
        signal(SIGXFSZ, SIG_IGN)
        guard setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else {
            throw Violation("The size of files cannot be limited.")
        }
    }
}
