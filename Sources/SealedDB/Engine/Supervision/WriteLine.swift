import Foundation
import Synchronization

/// The line in which the connections of one pool wait for SQLite's lock for writing.
///
/// SQLite has no line for locks: the first to ask after a commit gets the lock, and that is usually the connection that
/// has just released it. So if a connection of the pool finds the lock taken, it enters this line. For a while, other
/// connections may still get the lock before it, because waking a thread takes longer than a short transaction. After
/// that, the waiting connection is told to ask when the lock is released, and the others let it go first.
///
/// No connection depends on being told: each one that sleeps here also wakes up by itself to try the lock. So another
/// process, or a connection that gives up after it was told, only delays the others by some milliseconds.
final class WriteLine: Sendable {
    private let books = Guarded(Books())
    private let contention = Atomic(false)

    /// Whether a connection stands in the line, or was told to ask. Checked before each statement that writes.
    var isContended: Bool { contention.load(ordering: .relaxed) }

    /// Sleeps until this connection is told to ask, or until it is time to try the lock again. The first call returns
    /// at once: the lock may have been released before others could see that this connection waits.
    func wait(_ supervision: Supervision, seconds: Double) {
        let id = ObjectIdentifier(supervision)
        if enter(id) == .stands { sleep(id, seconds) }
    }

    /// Lets a connection that was told to ask go first. Called before this connection asks for the lock.
    func giveWay(_ supervision: Supervision) {
        let id = ObjectIdentifier(supervision)
        let (mustWait, told) = books.withLock { $0.giveWay(id, now: WriteLine.now) }
        told?.signal()
        guard mustWait else { return }
        _ = enter(id)
        sleep(id, Books.longestSleep)
    }

    /// Records that this connection has released the lock, or no longer wants it.
    func letGo(_ supervision: Supervision) {
        guard isContended else { return }
        let id = ObjectIdentifier(supervision)
        let told = books.withLock { books in
            defer { note(books) }
            return books.leave(id, now: WriteLine.now)
        }
        told?.signal()
    }

    private func enter(_ id: ObjectIdentifier) -> Books.Entry {
        books.withLock { books in
            defer { note(books) }
            return books.enter(id, now: WriteLine.now)
        }
    }

    private func sleep(_ id: ObjectIdentifier, _ seconds: Double) {
        guard let signal = books.withLock({ $0.fallAsleep(id) }) else { return }
        // It makes no difference whether it was told or the time is up: next it tries the lock.
        _ = signal.wait(timeout: .now() + min(seconds, Books.longestSleep))
        books.withLock { $0.wakeUp(id) }
    }

    private func note(_ books: Books) { contention.store(!books.isEmpty, ordering: .relaxed) }

    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension WriteLine {
    /// The connections in the line, and the one that was told. A value without a clock and threads; times are in
    /// nanoseconds.
    struct Books {
        private struct Connection {
            let id: ObjectIdentifier
            let came: UInt64
            let signal = DispatchSemaphore(value: 0)
            /// If false, the connection is trying the lock now, or has given up without leaving the line.
            var isAsleep = false
        }

        enum Entry { case isNew, stands }

        private var line: [Connection] = []
        /// The connection that was told to ask, and when. Kept until it releases the lock, enters the line again, or
        /// does not come within ``longestSleep``.
        private var next: (connection: Connection, since: UInt64)?
        private var lastTold: UInt64 = 0

        /// How long others may get the lock before a connection that waits. It is told only after this time.
        static let tolerance: UInt64 = 5_000_000
        /// The shortest time between telling two connections. Within it, the connection that has the lock may take it
        /// again.
        static let quantum: UInt64 = 2_000_000
        /// How many seconds a connection sleeps at most before it tries the lock by itself.
        static let longestSleep = 0.01

        var isEmpty: Bool { line.isEmpty && next == nil }

        /// Puts the connection into the line. If it stands there, it keeps its position. If it was told, and another
        /// one was faster, it goes to the front. Otherwise it goes to the end.
        mutating func enter(_ id: ObjectIdentifier, now: UInt64) -> Entry {
            if let told = next?.connection, told.id == id {
                next = nil
                line.insert(told, at: 0)
                return .stands
            }
            if line.contains(where: { $0.id == id }) { return .stands }
            line.append(Connection(id: id, came: now))
            return .isNew
        }

        /// - Returns: what the connection sleeps on; `nil` if it does not stand in the line.
        mutating func fallAsleep(_ id: ObjectIdentifier) -> DispatchSemaphore? {
            guard let index = line.firstIndex(where: { $0.id == id }) else { return nil }
            line[index].isAsleep = true
            return line[index].signal
        }

        mutating func wakeUp(_ id: ObjectIdentifier) {
            guard let index = line.firstIndex(where: { $0.id == id }) else { return }
            line[index].isAsleep = false
        }

        /// Returns whether the connection must wait for one that was told. If none was told, the first one may be told
        /// now, because there may be nobody who releases the lock and would tell it.
        mutating func giveWay(_ id: ObjectIdentifier, now: UInt64) -> (mustWait: Bool, told: DispatchSemaphore?) {
            if let next = current(now) { return (next.id != id, nil) }
            let told = tellFirst(now)
            return (told != nil, told)
        }

        /// Takes the connection out of the line.
        /// - Returns: what wakes the connection that can now try the lock; `nil` for none.
        mutating func leave(_ id: ObjectIdentifier, now: UInt64) -> DispatchSemaphore? {
            line.removeAll { $0.id == id }
            let wasTold = next?.connection.id == id
            if wasTold { next = nil }
            guard current(now) == nil else { return nil }
            // Connections that gave way to this one would otherwise sleep on although the lock is free.
            return tellFirst(now) ?? (wasTold ? line.first { $0.isAsleep }?.signal : nil)
        }

        /// The connection that was told. `nil` if it was told so long ago that it probably does not come.
        private mutating func current(_ now: UInt64) -> Connection? {
            if let next, Double(now - next.since) / 1e9 > Books.longestSleep { self.next = nil }
            return next?.connection
        }

        /// Tells the first sleeping connection that has waited for ``tolerance``, if ``quantum`` has passed since the
        /// last one was told.
        private mutating func tellFirst(_ now: UInt64) -> DispatchSemaphore? {
            guard now - lastTold >= Books.quantum,
                let index = line.firstIndex(where: { $0.isAsleep && now - $0.came >= Books.tolerance })
            else { return nil }
            let connection = line.remove(at: index)
            (next, lastTold) = ((connection, now), now)
            return connection.signal
        }
    }
}
