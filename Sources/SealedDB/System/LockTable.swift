import Foundation

/// The kernel's table of locks, `/proc/locks`, at one moment. It is read page by page, and may lack a lock if it changes in
/// between. https://man7.org/linux/man-pages/man5/proc_locks.5.html
struct LockTable {
    private let text: String

    /// - Returns: `nil` if the table cannot be read.
    init?() {
        guard let text = FileSystem.kernelText("/proc/locks") else { return nil }
        self.text = text
    }

    /// The processes that have locks on the file, or wait for one. What is no number of a process stands for those of which the
    /// kernel names none.
    func processes(withLocksOn file: stat) -> Set<Int32> {
        let name = LockTable.name(of: file)
        let processes: [Int32] = lines(with: name).compactMap { line in
            let fields = line.split(separator: " ")
            // The process stands before the file, in lines of waiting requests, too.
            guard let place = fields.firstIndex(where: { $0 == name }) else { return nil }
            return (place > 0 ? Int32(fields[place - 1]) : nil) ?? -1
        }
        return Set(processes)
    }

    /// The files that a process has locked as SQLite does, by their ``name(of:)``.
    struct SQLiteFiles: Equatable {
        /// Those with a lock where SQLite locks a store. https://www.sqlite.org/lockingv3.html
        var stores: Set<String> = []
        /// Those with a lock where SQLite locks the index of a log. https://www.sqlite.org/walformat.html#locks
        var indexes: Set<String> = []
    }

    func files(lockedBy process: Int32) -> SQLiteFiles {
        var files = SQLiteFiles()
        let number = "\(process)"
        for line in lines(with: " \(number) ") {
            // 1: POSIX  ADVISORY  READ 4711 fe:00:1234 1073741826 1073742335; lines with "->" are waiting requests.
            let fields = line.split(separator: " ")
            guard fields.count == 8, fields[1] == "POSIX", fields[4] == number, let start = Int64(fields[6]) else {
                continue
            }
            switch start {
            case 0x4000_0000...0x4000_01ff: files.stores.insert(String(fields[5]))
            case 120...128: files.indexes.insert(String(fields[5]))
            default: break
            }
        }
        return files
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

    /// A file as the table names it, such as `fe:00:1234`: major and minor device numbers with two or more hexadecimal digits,
    /// inode in decimal.
    static func name(of file: stat) -> String {
        let (major, minor) = file.deviceNumbers
        return [major, minor].map { ($0 < 0x10 ? "0" : "") + String($0, radix: 16) + ":" }.joined() + "\(file.st_ino)"
    }
}
