import Foundation
import SealedDB
import Synchronization

/// What the clients of a process share.
final class Station: Sendable {
    let place: Place
    let plan: RoundPlan
    let service: Service
    private let key: Mutex<Int>

    init(place: Place, plan: RoundPlan, model: StoreModel) throws {
        self.place = place
        self.plan = plan
        key = Mutex(model.keys[0])
        service = try Service(plan.service, path: place.store, key: place.key(model.keys[0]))
    }

    var currentKey: Int {
        get { key.withLock { $0 } }
        set { key.withLock { $0 = newValue } }
    }

    var isOver: Bool { Date().timeIntervalSince1970 > plan.deadline }
}
