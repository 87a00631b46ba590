/// What happens in one round: which processes use the store, and how.
struct RoundPlan: Codable, Sendable {
    let seed: UInt64
    let number: Int
    let scale: Scale
    let composition: Composition
    let processes: [ProcessPlan]
    /// After so many acknowledgements the first process is killed, or all and the power is cut.
    var killsAfter: Int?
    /// Seconds since 1970, when the clients stop before they have made all steps.
    let deadline: Double

    var clients: [ClientPlan] { processes.flatMap(\.clients) }
    /// Whether the key may change under others.
    var rotates: Bool { clients.contains { $0.role == .keeper } }
}

struct ProcessPlan: Codable, Sendable {
    var service: ServiceKind?
    let clients: [ClientPlan]
    /// Bytes by which the files may grow: then the disk is full.
    var room: Int?
    var faults: FaultyCalls?
}

struct ClientPlan: Codable, Sendable {
    let id: Int
    let role: Role
    let steps: Int
}

enum ServiceKind: String, Codable, CaseIterable, Sendable {
    case queue, pool
}
