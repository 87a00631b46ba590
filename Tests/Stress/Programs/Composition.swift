/// Who uses the store at the same time.
enum Composition: String, Codable, CaseIterable, Sendable {
    case queue, pool
    /// Another process of ours has the store open, so that no rotation may succeed.
    case queueAndPeer, poolAndPeer
    /// The command and the stock shell come and go.
    case queueAndVisitor, poolAndVisitor
    case alone
    case custody
    /// The disk is full before long.
    case fullDisk
    /// Calls of the system fail.
    case faults

    func processes(steps: Int, isTour: Bool, _ random: inout Random) -> [ProcessPlan] {
        func client(_ id: Int, _ role: Role, share: Int = 1) -> ClientPlan {
            ClientPlan(id: id, role: role, steps: isTour ? Operation.deck(of: role).count : steps / share + 1)
        }
        func service(_ kind: ServiceKind, room: Int? = nil, faults: FaultyCalls? = nil) -> ProcessPlan {
            let writers = (1...random.int(1..<4)).map { client($0, .writer) }
            let others = [
                client(10, .reader), client(11, .janitor, share: 3), client(12, .tide, share: 6),
                client(13, .keeper, share: 3),
            ]
            return ProcessPlan(service: kind, clients: writers + others, room: room, faults: faults)
        }
        let peer = ProcessPlan(clients: [client(20, .peer)])
        let visitor = ProcessPlan(clients: [client(30, .visitor, share: 4)])
        return switch self {
        case .queue: [service(.queue)]
        case .pool: [service(.pool)]
        case .queueAndPeer: [service(.queue), peer]
        case .poolAndPeer: [service(.pool), peer]
        case .queueAndVisitor: [service(.queue), visitor]
        case .poolAndVisitor: [service(.pool), visitor]
        case .alone: [ProcessPlan(clients: [client(40, .soloist)])]
        case .custody: [ProcessPlan(clients: [client(50, .custodian, share: 3)])]
        case .fullDisk: [service(random.pick(ServiceKind.allCases), room: random.int(0..<3_000_000))]
        case .faults:
            [
                service(
                    random.pick(ServiceKind.allCases),
                    faults: FaultyCalls(
                        seed: random.next(),
                        rate: isTour ? 1 : random.pick([50, 500, 5000]),
                        allowed: random.int(isTour ? 100..<400 : 0..<2000)
                    )
                )
            ]
        }
    }
}
