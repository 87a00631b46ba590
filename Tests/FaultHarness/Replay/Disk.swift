/// A directory as it would be found after a power failure: what was synced is there, and of the rest any part.
///
/// Data reaches the disk in sectors of 512 bytes, in any order, until a sync of the file. Changes of a directory
/// reach it in the order in which they were made, until a sync of the directory; a sync of a file makes none of them
/// last, and one of a directory none of those of another. That is less than any common file system promises.
struct Disk {
    private struct File {
        var durable: [UInt8]
        /// Since the last sync.
        var pending: [Change] = []
    }

    private enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(Int)
    }

    private enum NameChange {
        case add(String, file: Int)
        case remove(String)
        case rename(String, String)

        /// The directory that is changed.
        var directory: String {
            switch self {
            case .add(let name, _), .remove(let name), .rename(_, let name): Files.directories(of: name).last ?? "."
            }
        }
    }

    /// Stands for a directory among the numbers of files.
    private static let isDirectory = -1

    static let sector = 512

    private var files: [File] = []
    /// As the running system sees the directory.
    private var names: [String: Int] = [:]
    private var durableNames: [String: Int] = [:]
    private var pendingNames: [NameChange] = []
    private var inodes: [UInt64: Int] = [:]

    /// - Parameters:
    ///   - inodes: of the files that are there at the start.
    ///   - unsynced: those of them that were written right before.
    init(_ contents: [String: Files.Bytes], inodes: [String: UInt64], unsynced: Set<String>) {
        for name in contents.keys.flatMap(Files.directories) {
            names[name] = Disk.isDirectory
            durableNames[name] = Disk.isDirectory
        }
        for (name, bytes) in contents.sorted(by: { $0.key < $1.key }) {
            if let inode = inodes[name] { self.inodes[inode] = files.count }
            if unsynced.contains(name) {
                files.append(File(durable: [], pending: [.write(offset: 0, bytes: bytes)]))
                change(.add(name, file: files.count - 1))
            } else {
                files.append(File(durable: bytes))
                names[name] = files.count - 1
                durableNames[name] = files.count - 1
            }
        }
    }

    mutating func apply(_ entry: Recording.Entry) throws {
        switch entry {
        case .create(let name, let inode):
            files.append(File(durable: []))
            inodes[inode] = files.count - 1
            change(.add(name, file: files.count - 1))
        case .write(let inode, let offset, let bytes):
            files[try file(inode)].pending.append(.write(offset: offset, bytes: bytes))
        case .truncate(let inode, let size):
            files[try file(inode)].pending.append(.truncate(size))
        case .synchronize(_, let name) where name == "." || names[name] == Disk.isDirectory:
            for change in pendingNames where change.directory == name { Disk.apply(change, to: &durableNames) }
            pendingNames.removeAll { $0.directory == name }
        case .synchronize(let inode, _):
            let index = try file(inode)
            for change in files[index].pending { Disk.apply(change, to: &files[index].durable) }
            files[index].pending = []
        case .failedSynchronization(_, let name) where name == "." || names[name] == Disk.isDirectory:
            break
        case .failedSynchronization(let inode, _):
            files[try file(inode)].pending = []
        case .makeDirectory(let name):
            change(.add(name, file: Disk.isDirectory))
        case .rename(let old, let new):
            change(.rename(old, new))
        case .link(let old, let new):
            guard let index = names[old] else { throw HarnessError("A link to \(old), which is not there.") }
            change(.add(new, file: index))
        case .unlink(let name):
            change(.remove(name))
        case .output:
            break
        }
    }

    private mutating func change(_ change: NameChange) {
        Disk.apply(change, to: &names)
        pendingNames.append(change)
    }

    private func file(_ inode: UInt64) throws -> Int {
        guard let index = inodes[inode] else { throw HarnessError("A run writes to a file that the recorder missed.") }
        return index
    }

    private static func apply(_ change: NameChange, to names: inout [String: Int]) {
        switch change {
        case .add(let name, let file): names[name] = file
        case .remove(let name): names[name] = nil
        case .rename(let old, let new):
            names[new] = names[old]
            names[old] = nil
        }
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .write(let offset, let data):
            if bytes.count < offset + data.count {
                bytes += [UInt8](repeating: 0, count: offset + data.count - bytes.count)
            }
            bytes.replaceSubrange(offset..<offset + data.count, with: data)
        case .truncate(let size):
            if size < bytes.count {
                bytes.removeLast(bytes.count - size)
            } else {
                bytes += [UInt8](repeating: 0, count: size - bytes.count)
            }
        }
    }

    // MARK: Power failure

    /// How much of what was not synced is there.
    private enum Survival: CaseIterable {
        case none, all, first, changes, sectors
    }

    /// One state that a power failure now could leave.
    func state(_ random: inout Random) -> [String: Files.Bytes] {
        var found = durableNames
        for directory in Set(pendingNames.map(\.directory)).sorted() {
            let changes = pendingNames.filter { $0.directory == directory }
            let count = random.below(3) == 0 ? changes.count : random.below(changes.count + 1)
            for change in changes.prefix(count) { Disk.apply(change, to: &found) }
        }
        var result: [String: Files.Bytes] = [:]
        for (name, index) in found.sorted(by: { $0.key < $1.key }) where !name.hasSuffix("-shm") {
            // What lies in a directory that is not there is not there either.
            guard Files.directories(of: name).allSatisfy({ found[$0] != nil }) else { continue }
            if index == Disk.isDirectory {
                result[name + "/"] = []
            } else {
                result[name] = contents(of: files[index], &random)
            }
        }
        return result
    }

    private func contents(of file: File, _ random: inout Random) -> Files.Bytes {
        guard !file.pending.isEmpty else { return file.durable }
        var bytes = file.durable
        let survival = Survival.allCases[random.below(Survival.allCases.count)]
        let prefix = random.below(file.pending.count + 1)
        // A file can grow before its data arrives; what is read then was never written.
        let growsFirst = survival != .none && random.below(4) == 0
        if growsFirst {
            for case .write(let offset, let data) in file.pending where bytes.count < offset + data.count {
                bytes += (bytes.count..<offset + data.count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            }
        }
        for (index, change) in file.pending.enumerated() {
            switch survival {
            case .none: break
            case .all: Disk.apply(change, to: &bytes)
            case .first: if index < prefix { Disk.apply(change, to: &bytes) }
            case .changes: if random.below(2) == 0 { Disk.apply(change, to: &bytes) }
            case .sectors: applySectors(change, to: &bytes, &random)
            }
        }
        return bytes
    }

    /// Each sector of a write arrives or not.
    private func applySectors(_ change: Change, to bytes: inout [UInt8], _ random: inout Random) {
        guard case .write(let offset, let data) = change else {
            if random.below(2) == 0 { Disk.apply(change, to: &bytes) }
            return
        }
        var start = 0
        while start < data.count {
            let end = min(data.count, (offset + start) / Disk.sector * Disk.sector + Disk.sector - offset)
            if random.below(2) == 0 {
                Disk.apply(.write(offset: offset + start, bytes: Array(data[start..<end])), to: &bytes)
            }
            start = end
        }
    }
}

/// SplitMix64: the same numbers for the same seed.
struct Random {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
