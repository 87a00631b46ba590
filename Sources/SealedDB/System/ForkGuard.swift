import Foundation
import Synchronization

/// Tells whether the process has forked since an object was created. In the child, SQLite's connections, locks and
/// threads do not work: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
enum ForkGuard {
    private static let forks = Atomic(0)
    private static let isInstalled: Bool =
        pthread_atfork(nil, nil, { ForkGuard.forks.wrappingAdd(1, ordering: .relaxed) }) == 0

    /// Begins to count forks, and returns ``current``. An object stores the number when it is created, and compares it
    /// before each use: in a forked child, ``current`` is greater.
    static func begin() -> Int {
        // If there was no memory for the handler, forks are not counted, and children are not warned.
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
