internal import CSealedDBSystem
import Synchronization

/// Decides which thread may use a database that a queue or pool lends to one thread after another.
///
/// Without it, a `Database` that escapes from its block could use the connection together with the next block, or after
/// it was closed, and read memory that SQLite has freed. So everything that uses the connection asks here first.
final class ThreadGate: Sendable {
    /// The number of the thread inside; 0 for none.
    private let visitor = Atomic<UInt>(0)

    @inline(__always)
    static var currentThread: UInt { sealeddb_current_thread() }

    func enter() { visitor.store(ThreadGate.currentThread, ordering: .sequentiallyConsistent) }

    func leave() { visitor.store(0, ordering: .sequentiallyConsistent) }

    /// Whether the calling thread is inside. A relaxed load is enough: only this thread itself can have stored its
    /// number.
    @inline(__always)
    var isInside: Bool { visitor.load(ordering: .relaxed) == ThreadGate.currentThread }

    /// Ends the process if the calling thread is not inside: an error could be ignored, and there is no valid state to
    /// continue with.
    @inline(__always)
    func require(_ call: StaticString) {
        if !isInside { ThreadGate.refuse(call) }
    }

    @inline(never)
    private static func refuse(_ call: StaticString) -> Never {
        fatalError(
            """
            \(call): a Database of a queue or pool, or something that it gave, is used outside of the block that it was \
            given to, or on another thread than the block's. Other blocks may be using its connection now. Return values \
            from the block, and call the queue or pool again for more.
            """
        )
    }
}
