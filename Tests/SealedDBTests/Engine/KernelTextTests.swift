import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KernelTextTests {
    /// The kernel gives the table of locks page by page.
    @Test func aTableOfManyLocksIsReadWhole() throws {
        let directory = try TemporaryDirectory()
        try directory.write("locked", [])
        let descriptor = open(directory.file("locked"), O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        for offset in 0..<300 {
            var range = flock(
                l_type: Int16(F_WRLCK),
                l_whence: Int16(SEEK_SET),
                l_start: off_t(2 * offset),
                l_len: 1,
                l_pid: 0
            )
            #expect(fcntl(descriptor, F_SETLK, &range) == 0)
        }
        let status = try FileSystem.status(directory.file("locked"))
        // Lines are left out while the table changes.
        var most = 0
        for _ in 0..<100 where most < 300 {
            let table = try #require(FileSystem.kernelText("/proc/locks"))
            most = max(most, table.split(separator: "\n").filter { $0.contains(":\(status.st_ino) ") }.count)
        }
        #expect(most == 300)
        #expect(LockHolders.hasLocks(on: directory.file("locked")))
    }
}
