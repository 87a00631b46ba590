/// Reaches the connection that is open now from any thread, to interrupt it.
final class Interrupter: Sendable {
    // @unchecked: the connection is only asked to interrupt, which any thread may do, and under the lock. Its owner lets
    // it go, and closes it, only after having attached another one or none.
    private struct Target: @unchecked Sendable {
        unowned(unsafe) var connection: Connection?
    }

    private let target = Guarded(Target())

    func attach(_ connection: Connection?) {
        let new = Target(connection: connection)
        target.withLock { $0 = new }
    }

    /// https://www.sqlite.org/c3ref/interrupt.html
    func interrupt() -> Bool {
        target.withLock { target in
            guard let connection = target.connection else { return false }
            connection.interrupt()
            return true
        }
    }
}
