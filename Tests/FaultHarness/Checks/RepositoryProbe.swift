import SealedDB

/// Reads a repository by what the guide says of its form, and by nothing of the library but its SHA-256.
struct RepositoryProbe {
    private let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The store of the newest moment, from the last snapshot of the newest generation that has one.
    /// - Returns: `nil` if there is none.
    func newest() throws -> Files.Bytes? {
        guard let names = try? Files.names(in: path) else { return nil }
        let snapshots = names.filter { $0.hasPrefix("generations/") && $0.contains("/snapshot-") }
        guard let newest = snapshots.max() else { return nil }
        guard names.contains("repository") else { throw HarnessError("the repository has no mark") }
        let snapshot = try Lines(Files.read("\(path)/\(newest)"), newest)
        let pageSize = try snapshot.number("page-size")
        var store: Files.Bytes = []
        for chunk in snapshot.values["chunk"] ?? [] {
            let bytes = try Files.read("\(path)/chunks/\(chunk.prefix(2))/\(chunk)")
            guard try RepositoryProbe.digest(bytes[...]) == chunk else { throw HarnessError("\(chunk) is damaged") }
            store += bytes
        }
        guard store.count == (try snapshot.number("page-count")) * pageSize else {
            throw HarnessError("\(newest) has other chunks than pages")
        }
        var previous = snapshot.values["previous"]?.first ?? ""
        let sequence = try snapshot.number("sequence")
        if sequence == 0 { previous = try RepositoryProbe.digest(Files.read("\(path)/\(newest)")[...]) }
        let directory = newest.split(separator: "/").dropLast().joined(separator: "/")
        let last = names.filter { $0.hasPrefix(directory + "/segment-") }.max()
        var next = sequence + 1
        while let last, RepositoryProbe.segment(directory, next) <= last {
            let name = RepositoryProbe.segment(directory, next)
            let bytes = try Files.read("\(path)/\(name)")
            try apply(bytes, name, previous, pageSize, to: &store)
            previous = try RepositoryProbe.digest(bytes[...])
            next += 1
        }
        return store
    }

    private static func segment(_ directory: String, _ number: Int) -> String {
        let digits = String(number)
        return "\(directory)/segment-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    /// Applies the frames of a segment, whose transactions are whole in these trials.
    private func apply(
        _ bytes: Files.Bytes,
        _ name: String,
        _ previous: String,
        _ pageSize: Int,
        to store: inout Files.Bytes
    ) throws {
        let lines = try Lines(bytes, name)
        guard lines.values["previous"] == [previous] else { throw HarnessError("\(name) does not follow") }
        let frames = bytes[lines.count...]
        guard frames.count == (try lines.number("frames")) * (24 + pageSize),
            try lines.values["frames-sha256"] == [RepositoryProbe.digest(frames)]
        else { throw HarnessError("\(name) has other frames") }
        for start in stride(from: frames.startIndex, to: frames.endIndex, by: 24 + pageSize) {
            func number(_ offset: Int) -> Int {
                frames[(start + offset)..<(start + offset + 4)].reduce(0) { $0 << 8 | Int($1) }
            }
            let end = number(0) * pageSize
            if store.count < end { store += Files.Bytes(repeating: 0, count: end - store.count) }
            store.replaceSubrange((end - pageSize)..<end, with: frames[(start + 24)..<(start + 24 + pageSize)])
            if number(4) > 0 { store.removeLast(max(0, store.count - number(4) * pageSize)) }
        }
    }

    fileprivate static func digest(_ bytes: ArraySlice<UInt8>) throws -> String {
        let hash = try SHA256Hash()
        try bytes.withUnsafeBytes { try hash.update($0) }
        return try hash.value().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Names and values, up to the digest of them.
    private struct Lines {
        var values: [String: [String]] = [:]
        /// Their bytes, with the line of the digest.
        private(set) var count = 0
        private let name: String

        init(_ bytes: Files.Bytes, _ name: String) throws {
            self.name = name
            var start = 0
            while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: bytes[start..<end], as: UTF8.self)
                let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
                if parts.count == 2 {
                    let value = String(parts[1].dropFirst())
                    if parts[0] == "sha256" {
                        guard value == (try RepositoryProbe.digest(bytes[..<start])) else { break }
                        count = end + 1
                        return
                    }
                    values[parts[0], default: []].append(value)
                }
                start = end + 1
            }
            throw HarnessError("\(name) is not whole")
        }

        func number(_ key: String) throws -> Int {
            guard let number = values[key]?.first.flatMap({ Int($0) }) else {
                throw HarnessError("\(name) has no \(key)")
            }
            return number
        }
    }
}
