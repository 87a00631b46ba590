import Foundation
import SealedDB

/// The process that uses the store: all clients of a round at once.
enum Worker {
    /// Makes the tables.
    static func prepare(_ place: Place) throws {
        let service = try Service(.queue, path: place.store, key: place.key(0))
        try service.access.write { db in
            guard db.executeStatements(Table.schema) else { throw db.lastError() }
        }
    }

    static func run(_ place: Place) async throws {
        let decoder = JSONDecoder()
        let plan = try decoder.decode(RoundPlan.self, from: Data(contentsOf: URL(fileURLWithPath: place.planFile)))
        let model = try decoder.decode(StoreModel.self, from: Data(contentsOf: URL(fileURLWithPath: place.modelFile)))
        let station = try Station(place: place, plan: plan, model: model)
        await withTaskGroup(of: Void.self) { group in
            for clientPlan in plan.clients {
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
        await station.service.access.shutDown()
    }
}
