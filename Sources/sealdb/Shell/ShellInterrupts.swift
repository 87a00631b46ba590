import Foundation
import SealedDB

/// Ctrl-C in the shell: it ends the statement that runs, or drops the line that is typed, and not the shell.
///
/// The handler of the signal only writes to two pipes. The reader of lines waits for one of them, and a thread that
/// interrupts the database for the other.
final class ShellInterrupts {
    /// Readable as soon as Ctrl-C was pressed.
    let wake: Int32
    private let alarm: Int32

    /// - Throws: ``Failure`` if the system has no descriptors left.
    init(of database: Database) throws(Failure) {
        let (forLines, forThread) = (try ShellInterrupts.newPipe(), try ShellInterrupts.newPipe())
        (wake, alarm) = (forLines.reading, forThread.reading)
        SignalWatch.startNotingInterrupts(writingTo: forLines.writing, and: forThread.writing)
        let alarm = alarm
        // Database is not Sendable. All that the thread calls is `interrupt`, which any thread may call.
        nonisolated(unsafe) let database = database
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while true {
                let count = read(alarm, &byte, 1)
                if count < 0 && errno == EINTR { continue }
                // The other end is never closed, so this ends only with the process.
                guard count > 0 else { return }
                // If nothing runs, this does nothing.
                _ = database.interrupt()
            }
        }
    }

    var hasCome: Bool { SignalWatch.wasInterrupted }

    func requireNone() throws(Failure) {
        if hasCome { throw Failure(.interrupted, "Interrupted.") }
    }

    /// Forgets what was pressed. Called before a line is asked for.
    func clear() {
        var bytes = [UInt8](repeating: 0, count: 64)
        var state = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
        while poll(&state, 1, 0) > 0, read(wake, &bytes, bytes.count) > 0 {}
        SignalWatch.forgetInterrupt()
    }

    private static func newPipe() throws(Failure) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw Failure(.unavailable, "Cannot make a pipe: \(String(cString: strerror(errno))).")
        }
        // Nothing is started from here, so no child inherits them. A handler must not wait.
        // This fails only for a descriptor that is not open.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        return (ends[0], ends[1])
    }
}
