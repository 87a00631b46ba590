import Foundation
import Testing

@testable import SealedDB

/// What the kernel calls a file in its table of locks.
@Suite(.hangLimit)
struct MountTableTests {
    private let table = MountTable(
        """
        22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
        28 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,errors=remount-ro
        36 28 0:39 /home /home ro,noatime shared:1 master:2 - btrfs /dev/loop0 ro,space_cache=v2
        41 28 0:45 / /mnt/over ro - overlay overlay ro,lowerdir=/a
        half a line
        """
    )

    @Test func mounts() throws {
        let home = try #require(table.mount(id: "36"))
        #expect(home.device == "0:39" && home.kind == "btrfs" && home.isReadOnly && !home.mayBeShared)
        let root = try #require(table.mount(id: "28"))
        #expect(root.device == "254:1" && root.kind == "ext4" && !root.isReadOnly)
        #expect(table.mount(id: "41")?.mayBeShared == true)
        #expect(table.mount(id: "3") == nil && table.mount(id: "half") == nil)
        #expect(table.hasDevice("0:39") && !table.hasDevice("0:3") && !table.hasDevice("0:40"))
        #expect(MountTable.mountID(ofDescriptor: "pos:\t0\nflags:\t0100000\nmnt_id:\t36\nino:\t2\n") == "36")
        #expect(MountTable.mountID(ofDescriptor: "pos:\t0\n") == nil)
    }

    /// A subvolume has a device of its own, which is that of no mount.
    @Test func partsOfAFileSystem() {
        func name(_ device: dev_t, _ mounts: MountTable?, mount: String? = "36") -> String {
            var file = stat()
            (file.st_dev, file.st_ino) = (device, 257)
            return LockTable.name(of: file, mounts) { table in mount.flatMap { table.mount(id: $0) } }
        }
        #expect(name(0x28, table) == "00:27:257")
        #expect(name(0x27, table, mount: "28") == "00:27:257")
        #expect(name(0x28, table, mount: "28") == "fe:01:257")
        // Where nobody knows, it is as the system tells it.
        #expect(name(0x28, nil) == "00:28:257" && name(0x28, table, mount: nil) == "00:28:257")
        #expect(name(0xfe01, table) == "fe:01:257")
    }

    /// On whatever file system this runs.
    @Test func theKernelCallsAFileSo() throws {
        let directory = try TemporaryDirectory()
        let database = Database(path: directory.file("db"))
        try database.openVerified()
        defer { database.close() }
        try database.execute(script: "CREATE TABLE t (a); BEGIN IMMEDIATE")
        let name = LockTable.name(of: try FileSystem.status(directory.file("db")), at: directory.file("db"))
        // The table may lack a lock, if others come and go.
        var looks = 0
        while LockTable()?.processes(withLocksOn: name).contains(ProcessDescriptors.own) == false, looks < 1000 {
            looks += 1
        }
        #expect(looks < 1000)
        let descriptors = try #require(ProcessDescriptors(of: getpid()))
        let locked = descriptors.numbers.contains { number in
            guard case .file(let file) = descriptors.file(number), file.id == name else { return false }
            var locks = SQLiteLocks()
            locks.insert(file.locks)
            return locks.stores == [name]
        }
        #expect(locked)
    }
}
