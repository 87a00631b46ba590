/// What happens in one round: which processes use the store, and how.
struct RoundPlan: Codable, Sendable {
    let seed: UInt64
    let number: Int
    let scale: Scale
    let service: ServiceKind
    let clients: [ClientPlan]
    /// After so many acknowledgements the service is killed.
    var killsAfter: Int?
    /// Seconds since 1970, when the clients stop before they have made all steps.
    let deadline: Double
}

struct ClientPlan: Codable, Sendable {
    let id: Int
    let role: Role
    let steps: Int
}

enum ServiceKind: String, Codable, CaseIterable, Sendable {
    case queue, pool
}
