import Foundation
import Testing

@testable import SealedDB

/// A wait that ended with the lock. Outside of `write`, nobody says that the lock was taken.
@Suite(.hangLimit)
struct BusyWaitHandOverTests {
    /// Otherwise calls that come later give up too soon: for them, the lock would never have been free.
    @Test func earlierWaitsDoNotCountAfterOneThatGotTheLock() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("db")
        let queue = try DatabaseQueue(
            path: path,
            configuration: Configuration(key: isEncrypting ? try .testing(1) : nil)
        )
        try queue.write { db in try db.run("CREATE TABLE t (n)") }

        // A handler whose line shows from outside that somebody waits.
        let line = WriteLine()
        let supervision = Supervision(timeLimit: nil, isWatching: true)
        supervision.writeLine = line
        let wait = BusyWait(timeout: 3600, supervision: supervision)
        let database = try Database.testing(path)
        // SQLite does not retain the handler.
        defer { _ = withExtendedLifetime(wait) { database.close() } }
        wait.install(on: try #require(database.connection?.handle))

        // Somebody has the lock until this connection waits for it.
        let (held, ended) = (Gate(), Gate())
        Thread.detachNewThread {
            #expect(throws: Never.self) {
                try queue.write { _ in
                    held.open()
                    while !line.isContended { sched_yield() }
                }
            }
            ended.open()
        }
        held.waitBlocking()
        #expect(database.beginImmediateTransaction(), "\(database.lastError())")
        #expect(line.isContended)
        #expect(database.rollback())
        ended.waitBlocking()

        // A call that came before all of this, and looks once. For it, only the present holder's time counts, which
        // begins now.
        let holder = try Database.testing(path)
        defer { holder.close() }
        #expect(holder.beginImmediateTransaction())
        let stop = StopFlag()
        stop.set()
        (supervision.stop, supervision.isStoppable, wait.callCame) = (stop, true, 0)
        #expect(!database.beginImmediateTransaction())
        #expect(database.lastErrorCode() == SQLITE_BUSY)
        #expect(wait.takeWait() == 0)
        #expect(holder.rollback())
    }
}
