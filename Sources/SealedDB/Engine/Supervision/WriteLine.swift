import Foundation
import Synchronization

/// The line before SQLite's lock for writing, of the connections of one pool.
///
/// SQLite has no line: whoever asks first after a commit gets the lock, and that is the connection that has just let it go.
/// So a connection of the pool that finds the lock taken stands in this line. Others may still be faster than it for a
/// while, because waking a thread takes longer than a short transaction. Then it is told that the lock is free, and the
/// others let it go first.
///
/// Nobody relies on being told: a connection that sleeps here looks at the lock by itself, too. So other processes, and a
/// connection that gives up after it was told, cost some milliseconds and nothing else.
final class WriteLine: Sendable {
    private let books = Guarded(Books())
    private let contention = Atomic(false)

    /// Whether a connection stands in the line, or was told to ask. Asked before each statement that writes.
    var isContended: Bool { contention.load(ordering: .relaxed) }

    /// Sleeps until this connection is told, or until it is time to look at the lock. The first call returns at once: the
    /// lock may have been let go of before anybody knew that this connection waits.
    func wait(_ supervision: Supervision, seconds: Double) {
        let id = ObjectIdentifier(supervision)
        if enter(id) == .stands { sleep(id, seconds) }
    }

    /// Lets the connection go first that was told; called without the lock, before it is asked for.
    func giveWay(_ supervision: Supervision) {
        let id = ObjectIdentifier(supervision)
        let (mustWait, told) = books.withLock { $0.giveWay(id, now: WriteLine.now) }
        told?.signal()
        guard mustWait else { return }
        _ = enter(id)
        sleep(id, Books.longestSleep)
    }

    /// This connection has let go of the lock, or does not want it any more.
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
        // Whether it was told or its time is up, it looks at the lock next.
        _ = signal.wait(timeout: .now() + min(seconds, Books.longestSleep))
        books.withLock { $0.wakeUp(id) }
    }

    private func note(_ books: Books) { contention.store(!books.isEmpty, ordering: .relaxed) }

    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension WriteLine {
    /// Who stands in the line, and who was told. A value without clock and threads; times are in nanoseconds.
    struct Books {
        private struct Connection {
            let id: ObjectIdentifier
            let came: UInt64
            let signal = DispatchSemaphore(value: 0)
            /// Otherwise it looks at the lock at this moment, or has given up without telling.
            var isAsleep = false
        }

        enum Entry { case isNew, stands }

        private var line: [Connection] = []
        /// The connection that was told to ask, until it lets go, and when it was told.
        private var next: (connection: Connection, since: UInt64)?
        private var lastTold: UInt64 = 0

        /// How long others may be faster than one that waits.
        static let tolerance: UInt64 = 5_000_000
        /// The time between two that are told, in which whoever has the lock may have it again.
        static let quantum: UInt64 = 2_000_000
        /// Seconds after which a connection looks at the lock without having been told.
        static let longestSleep = 0.01

        var isEmpty: Bool { line.isEmpty && next == nil }

        /// Has the connection stand in the line: where it was, in front if it was told and another one was faster, or last.
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

        /// - Returns: what it sleeps on; `nil` if it does not stand in the line, because it was told.
        mutating func fallAsleep(_ id: ObjectIdentifier) -> DispatchSemaphore? {
            guard let index = line.firstIndex(where: { $0.id == id }) else { return nil }
            line[index].isAsleep = true
            return line[index].signal
        }

        mutating func wakeUp(_ id: ObjectIdentifier) {
            guard let index = line.firstIndex(where: { $0.id == id }) else { return }
            line[index].isAsleep = false
        }

        /// Whether the connection is to wait, and who is to be told now, as nobody who lets go of the lock might.
        mutating func giveWay(_ id: ObjectIdentifier, now: UInt64) -> (mustWait: Bool, told: DispatchSemaphore?) {
            if let next = current(now) { return (next.id != id, nil) }
            let told = tellFirst(now)
            return (told != nil, told)
        }

        /// Takes the connection out of the line.
        /// - Returns: who is to be woken.
        mutating func leave(_ id: ObjectIdentifier, now: UInt64) -> DispatchSemaphore? {
            line.removeAll { $0.id == id }
            let wasTold = next?.connection.id == id
            if wasTold { next = nil }
            guard current(now) == nil else { return nil }
            // Whoever has given way to this one would sleep on beside a lock that is free.
            return tellFirst(now) ?? (wasTold ? line.first { $0.isAsleep }?.signal : nil)
        }

        /// The connection that was told, unless it does not seem to come.
        private mutating func current(_ now: UInt64) -> Connection? {
            if let next, Double(now - next.since) / 1e9 > Books.longestSleep { self.next = nil }
            return next?.connection
        }

        /// Tells the first one that sleeps, if it came long ago and the last one was told long ago.
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
