import Foundation

/// The files that a process has locked as SQLite does, by their ``LockTable/name(of:at:)``.
struct SQLiteLocks {
    /// Those with a lock where SQLite locks a store. https://www.sqlite.org/lockingv3.html
    private(set) var stores: Set<String> = []
    /// Those with a lock where SQLite locks the index of a log. https://www.sqlite.org/walformat.html#locks
    private(set) var indexes: Set<String> = []

    /// - Parameter lines: those of one process.
    mutating func insert(_ lines: [String]) {
        for line in lines {
            // 1: POSIX  ADVISORY  READ 4711 fe:00:1234 1073741826 1073742335
            let fields = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard fields.count == 8, fields[1] == "POSIX", let start = Int64(fields[6]) else { continue }
            switch start {
            case 0x4000_0000...0x4000_01ff: stores.insert(String(fields[5]))
            case 120...128: indexes.insert(String(fields[5]))
            default: break
            }
        }
    }
}

/// The kernel's table of locks, `/proc/locks`, at one moment. It is read page by page, and may lack a lock if it changes in
/// between. So that it lacks one proves nothing. https://man7.org/linux/man-pages/man5/proc_locks.5.html
struct LockTable {
    private let text: String

    /// One that tells of no locks, as the kernel's own may: whoever reads it has to look at descriptors, too.
    static let empty = LockTable(lines: [])

    /// - Returns: `nil` if the table cannot be read. Services can be begun without it, as by systemd's `ProcSubset=pid`.
    init?() {
        guard let text = FileSystem.kernelText("/proc/locks") else { return nil }
        self.text = text
    }

    /// - Parameter lines: as the kernel gives them.
    init(lines: [String]) { text = lines.joined(separator: "\n") }

    /// The processes that have locks on the file, or wait for one. What is no number of a process stands for those of which the
    /// kernel names none.
    /// - Parameter name: that of the file in the table.
    func processes(withLocksOn name: String) -> Set<Int32> {
        let processes: [Int32] = lines(with: name).compactMap { line in
            let fields = line.split(separator: " ")
            // The process stands before the file, in lines of waiting requests, too.
            guard let place = fields.firstIndex(where: { $0 == name }) else { return nil }
            return (place > 0 ? Int32(fields[place - 1]) : nil) ?? -1
        }
        return Set(processes)
    }

    /// Whether a process has locked a file where SQLite locks a store.
    func hasStoreLock(_ file: String, of process: Int32) -> Bool { locks(file, of: process).stores.contains(file) }

    /// Whether a process has locked a file where SQLite locks the index of a log.
    func hasIndexLock(_ file: String, of process: Int32) -> Bool { locks(file, of: process).indexes.contains(file) }

    private func locks(_ file: String, of process: Int32) -> SQLiteLocks {
        var locks = SQLiteLocks()
        locks.insert(lines(with: " \(process) \(file) "))
        return locks
    }

    /// The processes that have reserved another store on the device of a file, to write it.
    /// https://www.sqlite.org/lockingv3.html
    func writers(ofOtherStoresThan own: String) -> Set<Int32> {
        let device = own.prefix(through: own.lastIndex(of: ":") ?? own.startIndex)
        let processes = lines(with: " " + device).compactMap { line -> Int32? in
            let fields = line.split(separator: " ")
            guard fields.count == 8, fields[3] == "WRITE", fields[5] != own, let process = Int32(fields[4]),
                let start = Int64(fields[6]), let end = Int64(fields[7])
            else { return nil }
            return process > 0 && (start...max(start, end)).contains(0x4000_0001) ? process : nil
        }
        return Set(processes)
    }

    /// The lines that contain a text. Only these are copied: the table of a busy machine has thousands of locks, and is read
    /// whenever a store with a log is opened.
    func lines(with text: String) -> [String] {
        self.text.withCString { own in
            var lines: [String] = []
            var rest = own
            while let found = strstr(rest, text) {
                var start = UnsafePointer(found)
                while start > rest, start[-1] != CChar(UInt8(ascii: "\n")) { start -= 1 }
                let length = strcspn(start, "\n")
                lines.append(String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self))
                rest = start + length
            }
            return lines
        }
    }
}
