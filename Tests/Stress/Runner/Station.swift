import Foundation
import SealedDB

/// What the clients of a process share.
final class Station: Sendable {
    let place: Place
    let plan: RoundPlan
    let process: ProcessPlan
    let service: Service?

    init(place: Place, plan: RoundPlan, process: ProcessPlan) throws {
        self.place = place
        self.plan = plan
        self.process = process
        service = try process.service.map { kind in
            try Service(
                kind,
                path: place.store,
                key: place.key(place.currentKey),
                setsForeignKeysBySQL: plan.number % 2 == 1
            )
        }
    }

    var isOver: Bool { Date().timeIntervalSince1970 > plan.deadline }
}
