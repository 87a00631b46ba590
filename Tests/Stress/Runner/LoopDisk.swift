import Foundation

/// A file system of its own for the files of a program, whose power can be cut.
///
/// What has not reached the device is gone then, as in `scripts/power-cuts`, which says what this does not show.
struct LoopDisk {
    enum Kind: String, CaseIterable, Sendable { case ext4, xfs }

    let kind: Kind
    /// Where it is mounted.
    let path: String

    private var image: String { path + ".image" }

    /// - Throws: ``CommandFailure`` if it cannot be made or mounted here.
    func make() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Command.run(["truncate", "--size", "4G", image])
        try Command.run(["mkfs." + kind.rawValue, "-q", image])
        try mount()
    }

    /// Has all that is there now survive a power cut.
    func sync() throws { try Command.run(["sync", "--file-system", path]) }

    /// From now on nothing reaches the device.
    func cut() throws {
        let directory = open(path, O_RDONLY | O_DIRECTORY)
        defer { _ = close(directory) }
        // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, without flushing the file system's log.
        var flag: UInt32 = 2
        guard ioctl(directory, 0x8004_587d, &flag) == 0 else { throw Violation("The power of \(path) cannot be cut.") }
    }

    /// After the end of all processes that used it.
    func restart() throws {
        try remove()
        // Who entered another mount namespace meanwhile would keep the file system that has no power.
        for attempt in 0... {
            // The kernel may take the device away a little later.
            let devices = try Command.run(["losetup", "--associated", image])
            if devices.isEmpty { break }
            guard attempt < 100 else { throw Violation("\(path) is still mounted elsewhere: \(devices)") }
            usleep(100_000)
        }
        try mount()
    }

    var isMounted: Bool {
        var (inside, outside) = (stat(), stat())
        return stat(path, &inside) == 0 && stat(path + "/..", &outside) == 0 && inside.st_dev != outside.st_dev
    }

    func remove() throws { try Command.run(["umount", path]) }

    private func mount() throws { try Command.run(["mount", "-o", "loop,discard", image, path]) }
}
