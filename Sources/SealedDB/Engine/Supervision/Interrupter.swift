/// Interrupts the connection that is now open, from any thread.
final class Interrupter: Sendable {
    // @unchecked: the only call to the connection is `interrupt`, which any thread may make, and it happens under the
    // lock. The owner attaches another connection or `nil` before it closes and releases this one.
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
