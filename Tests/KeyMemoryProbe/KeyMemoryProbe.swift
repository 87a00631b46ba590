// Opens, queries, rotates and closes a store, and after each step counts how often given secrets occur in its own memory.
//
//     KeyMemoryProbe STORE NEEDLES KIND FILE [NEW-KEY-FILE]
//
// KIND is key-file, passphrase-file, passphrase-command (which prints FILE) or key-ring. NEEDLES has a line "NAME MASK
// MASKED" in hex digits for each secret, which is MASK ^ MASKED, so that looking for it does not bring it into memory.
// Prints "STEP NAME COUNT". The first step is a control: FILE lies in memory once.

import Foundation
import SealedDB

struct Needle {
    let name: String
    let mask: [UInt8]
    let masked: [UInt8]
    init(line: Substring) {
        let words = line.split(separator: " ")
        name = String(words[0])
        mask = Needle.bytes(words[1])
        masked = Needle.bytes(words[2])
    }

    private static func bytes(_ digits: Substring) -> [UInt8] {
        let digits = Array(digits.utf8).map { UInt8(Int(String(UnicodeScalar($0)), radix: 16)!) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// Looks for the first byte, which tells nothing, and compares the others one by one.
    func count(in bytes: UnsafeRawBufferPointer) -> Int {
        let first = Int32(mask[0] ^ masked[0])
        let second = mask[1] ^ masked[1]
        let end = bytes.baseAddress! + bytes.count - mask.count
        var count = 0
        var start = bytes.baseAddress!
        while start <= end, let found = memchr(start, first, end - start + 1) {
            if found.load(fromByteOffset: 1, as: UInt8.self) == second,
                mask.indices.allSatisfy({ found.load(fromByteOffset: $0, as: UInt8.self) ^ mask[$0] == masked[$0] })
            {
                count += 1
            }
            start = UnsafeRawPointer(found) + 1
        }
        return count
    }
}

/// All of this process's memory that is its own and can be read.
struct Memory {
    /// Shared, and therefore not looked at itself.
    private let buffer: UnsafeMutableRawPointer
    private let capacity = 1 << 26

    init() {
        buffer = mmap(nil, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | Int32(MAP_ANONYMOUS), -1, 0)
        precondition(buffer != MAP_FAILED)
    }

    func counts(of needles: [Needle]) throws -> [Int] {
        // Foundation reads only the first page of such a file.
        let listing = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/maps")).readToEnd() ?? Data()
        let maps = String(decoding: listing, as: UTF8.self)
        let memory = open("/proc/self/mem", O_RDONLY)
        precondition(memory >= 0)
        defer { close(memory) }
        var counts = [Int](repeating: 0, count: needles.count)
        for line in maps.split(separator: "\n") where !line.hasSuffix("[vsyscall]") {
            let words = line.split(separator: " ")
            guard words[1].hasPrefix("r"), words[1].hasSuffix("p"), !line.hasSuffix("[vvar]") else { continue }
            let bounds = words[0].split(separator: "-").map { UInt64($0, radix: 16)! }
            // Regions larger than the buffer are read in pieces that overlap by more than any secret.
            var start = bounds[0]
            while start < bounds[1] {
                let size = min(Int(bounds[1] - start), capacity)
                let got = pread(memory, buffer, size, off_t(start))
                guard got > 0 else { break }
                for (index, needle) in needles.enumerated() {
                    counts[index] += needle.count(in: UnsafeRawBufferPointer(start: buffer, count: got))
                }
                start += UInt64(got == capacity ? got - 4096 : got)
            }
        }
        return counts
    }
}

@main
struct KeyMemoryProbe {
    let store: String
    let needles: [Needle]
    let kind: String
    let file: String
    let newKeyFile: String?
    let memory = Memory()

    static func main() throws {
        let arguments = CommandLine.arguments
        let lines = try String(contentsOfFile: arguments[2], encoding: .utf8).split(separator: "\n")
        let probe = KeyMemoryProbe(
            store: arguments[1],
            needles: lines.map(Needle.init(line:)),
            kind: arguments[3],
            file: arguments[4],
            newKeyFile: arguments.count > 5 ? arguments[5] : nil
        )
        try probe.control()
        try probe.useStore()
        try probe.report("released")
    }

    private func control() throws {
        let size = 8192
        let pages = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | Int32(MAP_ANONYMOUS), -1, 0)!
        let descriptor = open(file, O_RDONLY)
        precondition(read(descriptor, pages, size) > 0)
        close(descriptor)
        try report("control")
        munmap(pages, size)
    }

    private func configuration() throws -> Configuration {
        switch kind {
        case "key-file": Configuration(keySource: .keyFile(file))
        case "passphrase-file": Configuration(keySource: .passphraseFile(file))
        case "passphrase-command": Configuration(keySource: .passphraseCommand(["/bin/cat", file]))
        default: Configuration(keyRing: try KeyRing(contentsOfFile: file))
        }
    }

    private func useStore() throws {
        let database = Database(path: store, configuration: try configuration())
        try database.openVerified()
        try report("opened")
        let rows = try database.executeQuery("SELECT count(*) FROM sqlite_schema", values: nil)
        while try rows.nextWithError() {}
        rows.close()
        try report("queried")
        if let newKeyFile {
            try database.rotateKey(to: KeySource.keyFile(newKeyFile).key())
            try report("rotated")
        }
        database.close()
        // The configuration still has the key, to open again.
        try report("closed")
    }

    private func report(_ step: String) throws {
        for (needle, count) in zip(needles, try memory.counts(of: needles)) { print(step, needle.name, count) }
    }
}
