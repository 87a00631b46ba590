import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct TransferPaceTests {
    @Test func aDirectoryGetsNoMoreInASecond() throws {
        let directory = try TemporaryDirectory()
        let pace = TransferPace(bytesPerSecond: 1_000_000) { false }
        let storage = try DirectoryStorage(directory.file("repository"), creates: true, pace: pace)
        let bytes = [UInt8](repeating: 7, count: 300_000)
        let began = ContinuousClock.now
        #expect(try storage.write(bytes, as: "chunks/one"))
        #expect(ContinuousClock.now - began >= .milliseconds(290))
        #expect(try storage.read("chunks/one") == bytes)
        #expect(ContinuousClock.now - began >= .milliseconds(590))
    }

    /// Who wants to end does not wait for what is left.
    @Test func theEndIsNotSlow() throws {
        let directory = try TemporaryDirectory()
        let stop = StopFlag()
        let isDone = Gate()
        let repository = directory.file("repository")
        Thread.detachNewThread {
            // It would take days.
            #expect(throws: Never.self) {
                let pace = TransferPace(bytesPerSecond: 1) { stop.isSet }
                let storage = try DirectoryStorage(repository, creates: true, pace: pace)
                _ = try storage.write([UInt8](repeating: 7, count: 300_000), as: "chunks/one")
            }
            isDone.open()
        }
        while !FileSystem.exists(repository + "/chunks") { sched_yield() }
        stop.set()
        isDone.waitBlocking()
        let storage = try DirectoryStorage(repository, creates: false)
        #expect(try storage.read("chunks/one")?.count == 300_000)
    }
}
