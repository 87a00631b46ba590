import Foundation

/// The descriptors of a process, as `/proc` shows them.
///
/// A process goes on when its first thread has ended, and then only the folders of the threads that are left show its
/// descriptors. https://man7.org/linux/man-pages/man5/proc_pid_task.5.html
struct ProcessDescriptors {
    /// That of the process, or of one of its threads.
    private let folder: String
    let numbers: [String]
    /// As the process sees them.
    private let mounts: Mounts

    /// Read when they are first needed.
    private final class Mounts {
        private let process: Int32
        private(set) lazy var table = MountTable(of: "\(process)")

        init(of process: Int32) { self.process = process }
    }

    /// - Returns: `nil`, with `errno` set, if they cannot be read.
    init?(of process: Int32) {
        mounts = Mounts(of: process)
        let own = "/proc/\(process)"
        guard let numbers = FileSystem.names(in: own + "/fd") else { return nil }
        guard numbers.isEmpty else {
            (folder, self.numbers) = (own, numbers)
            return
        }
        for thread in FileSystem.names(in: own + "/task") ?? [] where thread != "\(process)" {
            let folder = "\(own)/task/\(thread)"
            guard let numbers = FileSystem.names(in: folder + "/fd") else {
                // That thread has ended.
                if errno == ENOENT || errno == ESRCH { continue }
                return nil
            }
            guard numbers.isEmpty else {
                (self.folder, self.numbers) = (folder, numbers)
                return
            }
        }
        (folder, self.numbers) = (own, [])
    }

    /// This process, as `/proc` and its tables number it: they may be of an outer name space of processes.
    static var own: Int32 {
        var text = [UInt8](repeating: 0, count: 16)
        let count = readlink("/proc/self", &text, text.count)
        // Without /proc, no number in it is asked for.
        return count > 0 ? Int32(String(decoding: text.prefix(count), as: UTF8.self)) ?? getpid() : getpid()
    }

    /// Whether a process has ended, of which something could not be read.
    /// - Parameters:
    ///   - number: the error. It says so, too, of a process that /proc hides.
    ///   - own: this process, as /proc numbers it.
    static func hasEnded(_ process: Int32, _ number: Int32, own: Int32 = ProcessDescriptors.own) -> Bool {
        guard number == ENOENT || number == ESRCH else { return false }
        // Where /proc has other numbers, that is the number of somebody else, or of nobody.
        guard own == getpid() else { return false }
        // No signal is sent.
        return kill(process, 0) != 0 && errno == ESRCH
    }

    /// Leads to the file, whatever has its name now.
    func link(_ number: String) -> String { "\(folder)/fd/\(number)" }

    /// The locks that the process has on the file of a descriptor, at one moment, as lines of ``LockTable`` with other white space.
    /// The kernel tells them all at once. `nil`, with `errno` set, if it does not tell.
    func locks(_ number: String) -> [String]? { state(number).map(ProcessDescriptors.locks) }

    private func state(_ number: String) -> String? { FileSystem.kernelText("\(folder)/fdinfo/\(number)") }

    private static func locks(_ state: String) -> [String] {
        state.split(separator: "\n").filter { $0.hasPrefix("lock:") }.map { String($0.dropFirst(5)) }
    }

    /// What a descriptor leads to.
    func file(_ number: String) -> OpenFile.Found {
        var found = stat()
        var own = stat()
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX) + 16)
        let count = readlink(link(number), &buffer, buffer.count)
        // What has no path is a pipe or the like. If this fails, it was closed meanwhile, or may not be looked at.
        if count > 0, buffer[0] != UInt8(ascii: "/") { return .noFile }
        guard count > 0, stat(link(number), &found) == 0, lstat(link(number), &own) == 0 else {
            return [EACCES, EPERM, ENOMEM].contains(errno) ? .unknown : .noFile
        }
        guard found.st_mode & S_IFMT == S_IFREG else { return .noFile }
        guard let state = state(number) else {
            return [EACCES, EPERM, ENOMEM, EMFILE, ENFILE].contains(errno) ? .unknown : .noFile
        }
        let name = String(decoding: buffer.prefix(count), as: UTF8.self)
        let mark = " (deleted)"
        let isDeleted = name.ends(with: mark)
        return .file(
            OpenFile(
                id: LockTable.name(of: found, mounts.table) { mounts in
                    MountTable.mountID(ofDescriptor: state).flatMap { mounts.mount(id: $0) }
                },
                name: isDeleted ? name.withoutLast(bytes: mark.utf8.count) : name,
                isDeleted: isDeleted,
                // The link of a descriptor has the permissions of that.
                isForWriting: own.st_mode & S_IWUSR != 0,
                locks: ProcessDescriptors.locks(state)
            )
        )
    }
}

/// A file that a process has open.
struct OpenFile {
    enum Found { case file(OpenFile), noFile, unknown }

    /// As the table of locks names it.
    let id: String
    /// Its name now, as that process sees it, or the last one that it had.
    let name: String
    let isDeleted: Bool
    let isForWriting: Bool
    /// The locks that the process has on it, as ``ProcessDescriptors/locks(_:)`` tells them.
    let locks: [String]
}
