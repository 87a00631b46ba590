/// What a store must hold, and under which keys.
struct StoreModel: Codable, Sendable {
    var clients: [Int: ClientState] = [:]
    /// Numbers of the keys of which exactly one must open the store: more than one while a change of the key is in doubt.
    var keys: [Int]
    /// Whether the tables are there.
    var hasSchema = false
    /// Names of files that interrupted rounds have left beside the store.
    var leftovers: Set<String> = []

    /// What the clients whose last step was cut off may have instead.
    var alternatives: [Int: ClientState] = [:]

    /// What an acknowledgement says of a step.
    enum Outcome: String, Sendable {
        case done, nothing
        /// It may be there wholly or not at all.
        case doubt
    }

    mutating func apply(_ outcome: Outcome, of step: Step, by client: Int, ids: [Int: Int] = [:]) {
        // Of a block that throws nothing is kept, however it is ended.
        guard outcome != .nothing, step.ending == .commit else { return }
        var state = clients[client] ?? ClientState()
        state.apply(step, ids: ids)
        if outcome == .done {
            clients[client] = state
        } else if state != clients[client] ?? ClientState() {
            alternatives[client] = state
        }
        guard let key = step.newKey else { return }
        if outcome == .done { keys = [key] } else if !keys.contains(key) { keys.append(key) }
    }
}
