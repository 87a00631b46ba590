import Foundation

/// Keeps prepared statements for their next use, by their text. If it is full, the least recently used one is removed.
///
/// A statement is not in the cache while it is in use, so two uses of one text never share it.
struct StatementCache {
    /// A text, compared byte by byte: strings that are equal to Swift may be different to SQL.
    struct Key {
        let text: String
        /// Computed from the length and some of the bytes. Texts that differ only in other bytes share a chain.
        let hash: UInt

        init(_ text: String) {
            self.text = text
            hash = text.utf8.withContiguousStorageIfAvailable { Key.hash($0) } ?? UInt(text.utf8.count)
        }

        private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt {
            let bytes = UnsafeRawBufferPointer(bytes)
            var hash = UInt(bytes.count)
            guard bytes.count >= 8 else {
                for byte in bytes { hash = hash &* 31 &+ UInt(byte) }
                return hash
            }
            let last = bytes.count - 8
            for part in 0...4 {
                let word = bytes.loadUnaligned(fromByteOffset: last * part / 4, as: UInt64.self)
                hash = (hash ^ UInt(word)) &* 0x9e37_79b9_7f4a_7c15
                hash ^= hash >> 32
            }
            return hash
        }

        static func == (first: Key, second: Key) -> Bool {
            guard first.hash == second.hash else { return false }
            let isSame = first.text.utf8.withContiguousStorageIfAvailable { first in
                second.text.utf8.withContiguousStorageIfAvailable { second in
                    first.count == second.count && memcmp(first.baseAddress!, second.baseAddress!, first.count) == 0
                }
            }
            return (isSame ?? nil) ?? first.text.utf8.elementsEqual(second.text.utf8)
        }
    }

    /// The maximum number of statements; 0 for no cache.
    private(set) var capacity = 0
    private var count = 0
    private var chains: [PreparedStatement?] = []
    private var tick: UInt64 = 0

    mutating func take(_ key: Key) -> PreparedStatement? {
        guard count > 0 else { return nil }
        let chain = self.chain(of: key)
        var before: PreparedStatement?
        var candidate = chains[chain]
        while let statement = candidate {
            if let own = statement.cacheKey, own == key {
                if let before { before.next = statement.next } else { chains[chain] = statement.next }
                statement.next = nil
                count -= 1
                return statement
            }
            (before, candidate) = (statement, statement.next)
        }
        return nil
    }

    /// Keeps the statement. Returns the statement that must be finalized in exchange, if any.
    mutating func put(_ statement: PreparedStatement) -> PreparedStatement? {
        guard capacity > 0, let key = statement.cacheKey else { return statement }
        // Another use of the same text may have returned earlier.
        let replaced = take(key)
        let evicted = replaced ?? (count >= capacity ? takeOldest() : nil)
        tick += 1
        statement.tick = tick
        let chain = self.chain(of: key)
        statement.next = chains[chain]
        chains[chain] = statement
        count += 1
        return evicted
    }

    /// Removes all statements, and returns them for finalizing.
    mutating func removeAll() -> [PreparedStatement] {
        var all: [PreparedStatement] = []
        for chain in chains.indices {
            while let statement = chains[chain] {
                chains[chain] = statement.next
                statement.next = nil
                all.append(statement)
            }
        }
        count = 0
        return all
    }

    /// Sets the capacity. Returns the statements that must be finalized.
    mutating func setCapacity(_ capacity: Int) -> [PreparedStatement] {
        let all = removeAll()
        let capacity = max(0, capacity)
        self.capacity = capacity
        var size = 16
        while size < min(capacity, 1 << 16) * 2 { size *= 2 }
        chains = Array(repeating: nil, count: size)
        guard all.count <= capacity else { return all }
        return all.sorted { $0.tick < $1.tick }.compactMap { put($0) }
    }

    private func chain(of key: Key) -> Int { Int(key.hash & UInt(chains.count - 1)) }

    private mutating func takeOldest() -> PreparedStatement? {
        var oldest: PreparedStatement?
        for first in chains {
            var candidate = first
            while let statement = candidate {
                if statement.tick < oldest?.tick ?? .max { oldest = statement }
                candidate = statement.next
            }
        }
        return oldest?.cacheKey.flatMap { take($0) }
    }
}
