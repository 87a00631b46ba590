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
        // Lines are left out, and told twice, while the table changes. Other files have the number too, on other devices.
        var starts: Set<Substring> = []
        for _ in 0..<100 where starts.count < 300 {
            let table = try #require(FileSystem.kernelText("/proc/locks"))
            let locks = table.split(separator: "\n").map { $0.split(separator: " ") }
            let own = locks.filter {
                $0.count == 8 && $0[4] == "\(getpid())" && $0[5].hasSuffix(":\(status.st_ino)") && $0[6] == $0[7]
            }
            starts = Set(own.map { $0[6] })
        }
        #expect(starts.count == 300)
        #expect(LockHolders.hasLocks(on: directory.file("locked"), ifUnknown: false))
        try directory.write("free", [])
        for name in ["free", "absent"] { #expect(!LockHolders.hasLocks(on: directory.file(name), ifUnknown: true)) }
        // Those of a descriptor are told exactly, whatever others do meanwhile.
        let files = FileAtPath.those(of: [directory.file("locked")])
        let exact = LockHolders.locks(ofDescriptorsOf: files).map { $0.split { $0 == " " || $0 == "\t" } }
        #expect(Set(exact.map { $0[6] }).count == 300)
        #expect(exact.allSatisfy { $0[4] == "\(getpid())" })
    }
}
