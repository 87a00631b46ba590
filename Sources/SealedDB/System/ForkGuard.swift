import Foundation
import Synchronization

/// Knows whether the process is a child that came about by `fork()` since something was made. SQLite's connections, locks and
/// threads do not survive that: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
enum ForkGuard {
    private static let forks = Atomic(0)
    private static let isInstalled: Bool =
        pthread_atfork(nil, nil, { ForkGuard.forks.wrappingAdd(1, ordering: .relaxed) }) == 0

    /// How many forks lead from the first process to this one; to be called before anything depends on it.
    static func begin() -> Int {
        // Without the handler, for which there was no memory, nobody is warned.
        _ = isInstalled
        return current
    }

    static var current: Int { forks.load(ordering: .relaxed) }
}

extension DatabaseError {
    static var forked: DatabaseError {
        @inline(never) get {
            DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    The database was opened before this process was forked, and belongs to the parent, which goes on with \
                    it. Nothing was executed. Open it anew in the child.
                    """
            )
        }
    }
}
