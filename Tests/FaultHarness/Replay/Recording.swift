/// What one run did to the disk, in order, with the data that it wrote.
struct Recording {
    enum Entry {
        case create(name: String, inode: UInt64)
        case write(inode: UInt64, offset: Int, bytes: [UInt8])
        case truncate(inode: UInt64, size: Int)
        /// Of a file, or of a directory with this name.
        case synchronize(inode: UInt64, name: String)
        /// The kernel may have dropped what it could not write.
        case failedSynchronization(inode: UInt64, name: String)
        case makeDirectory(name: String)
        case rename(from: String, to: String)
        case link(from: String, to: String)
        case unlink(name: String)
        case output(String)
    }

    let entries: [Entry]

    /// Reads what the interposer logged.
    init(_ bytes: [UInt8]) throws {
        var entries: [Entry] = []
        var position = 0
        func take(_ count: Int) throws -> ArraySlice<UInt8> {
            guard position + count <= bytes.count else { throw HarnessError("A recording is cut short.") }
            defer { position += count }
            return bytes[position..<position + count]
        }
        func number(_ count: Int) throws -> UInt64 { try take(count).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        while position < bytes.count {
            let kind = UInt8(try number(4))
            let lengths = [Int(try number(4)), Int(try number(4)), Int(try number(4))]
            let inode = try number(8)
            let offset = Int(try number(8))
            let path = String(decoding: try take(lengths[0]), as: UTF8.self)
            let path2 = String(decoding: try take(lengths[1]), as: UTF8.self)
            let data = Array(try take(lengths[2]))
            guard ![path, path2].contains(where: { $0.hasPrefix("/") || $0.hasPrefix("..") }) else {
                throw HarnessError("A run touches \(path), outside of its directory.")
            }
            switch Character(Unicode.Scalar(kind)) {
            case "C": entries.append(.create(name: path, inode: inode))
            case "W": entries.append(.write(inode: inode, offset: offset, bytes: data))
            case "T": entries.append(.truncate(inode: inode, size: offset))
            case "S": entries.append(.synchronize(inode: inode, name: path))
            case "F": entries.append(.failedSynchronization(inode: inode, name: path))
            case "R": entries.append(.rename(from: path, to: path2))
            case "L": entries.append(.link(from: path, to: path2))
            case "U": entries.append(.unlink(name: path))
            case "M": entries.append(.makeDirectory(name: path))
            case "A": entries.append(.output(String(decoding: data, as: UTF8.self)))
            default: throw HarnessError("A run uses \(path2) on \(path), which the recorder does not follow.")
            }
        }
        self.entries = entries
    }
}
