import Foundation

/// The mounts that a process sees. https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
struct MountTable {
    private let mounts: [String: Mount]
    private let devices: Set<String>

    struct Mount {
        let id: String
        /// The device of the whole file system, such as `8:1`.
        let device: String
        /// The kind of file system, such as `ext4`.
        let kind: String
        /// Of the file system itself, and not of this mount of it.
        let isReadOnly: Bool

        /// Whether another machine can write to it, or another mount of its layers.
        var mayBeShared: Bool {
            ["nfs", "cifs", "smb", "9p", "virtiofs", "ceph", "fuse", "afs", "gfs", "ocfs", "overlay"]
                .contains { kind.hasPrefix($0) }
        }

        /// - Parameter line: such as `36 35 98:0 /root /mount ro,noatime shared:1 - ext4 /dev/sda1 ro,errors=continue`.
        init?(_ line: String) {
            let fields = line.parts(between: " ")
            guard fields.count > 2, let dash = fields.firstIndex(of: "-"), fields.count > dash + 3 else { return nil }
            (id, device, kind) = (String(fields[0]), String(fields[2]), String(fields[dash + 1]))
            isReadOnly = fields[dash + 3].parts(between: ",").contains { String($0).isSame(as: "ro") }
        }
    }

    /// - Returns: `nil` if it cannot be read.
    init?(of process: String = "self") {
        guard let text = FileSystem.kernelText("/proc/\(process)/mountinfo") else { return nil }
        self.init(text)
    }

    /// - Parameter text: as the kernel gives it.
    init(_ text: String) {
        let all = text.parts(between: "\n").compactMap { Mount(String($0)) }
        mounts = Dictionary(all.map { ($0.id, $0) }) { first, _ in first }
        devices = Set(all.map(\.device))
    }

    func mount(id: String) -> Mount? { mounts[id] }

    /// The mount in which a file is; `nil` if that cannot be known.
    func mount(of path: String) -> Mount? { MountTable.mountID(of: path).flatMap { mount(id: $0) } }

    /// Whether a device is that of a whole file system.
    func hasDevice(_ device: String) -> Bool { devices.contains(device) }

    private static func mountID(of path: String) -> String? {
        let descriptor = FileSystem.keep(path)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }  // Nothing can be written through it.
        return FileSystem.kernelText("/proc/self/fdinfo/\(descriptor)").flatMap(mountID(ofDescriptor:))
    }

    /// - Parameter text: what the kernel tells of a descriptor. https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html
    static func mountID(ofDescriptor text: String) -> String? {
        text.parts(between: "\n").first { $0.hasPrefix("mnt_id:") }?
            .dropFirst("mnt_id:".count).trimmingCharacters(in: .whitespaces)
    }
}

extension LockTable {
    /// A file as the table names it, such as `fe:00:1234`: major and minor device numbers with two or more hexadecimal digits,
    /// inode in decimal.
    static func name(of file: stat, at path: String) -> String {
        name(of: file, MountTable()) { $0.mount(of: path) }
    }

    /// The table has the device of the whole file system. `stat` has others for subvolumes of btrfs, and for files that overlayfs
    /// takes from other file systems.
    /// - Parameters:
    ///   - mounts: those among which the file's is looked for; `nil` if they cannot be read.
    ///   - mount: that of the file.
    static func name(
        of file: stat,
        _ mounts: @autoclosure () -> MountTable?,
        mount: (MountTable) -> MountTable.Mount?
    ) -> String {
        var device = file.deviceNumbers
        // A disk has one number. Others the kernel makes up as they are needed.
        if device.major == 0, let mounts = mounts(), !mounts.hasDevice("\(device.major):\(device.minor)"),
            let numbers = mount(mounts)?.device.parts(between: ":").compactMap({ UInt64($0) }), numbers.count == 2
        {
            device = (numbers[0], numbers[1])
        }
        return [device.major, device.minor].map { ($0 < 0x10 ? "0" : "") + String($0, radix: 16) + ":" }.joined()
            + "\(file.st_ino)"
    }
}
