/// Prepared statements that wait for their next use, by their text. The one that was used longest ago gives way.
///
/// A statement leaves the cache while it is in use, so that two uses of one text never share it.
struct StatementCache {
    // The pointer is only handed from one owner to the next.
    struct Entry: @unchecked Sendable {
        let pointer: OpaquePointer
        let useCount: Int
        let targets: ChangeCollector.Targets
        fileprivate var tick: UInt64 = 0

        init(pointer: OpaquePointer, useCount: Int, targets: ChangeCollector.Targets) {
            self.pointer = pointer
            self.useCount = useCount
            self.targets = targets
        }
    }

    /// 0 for no cache.
    private(set) var capacity = 0
    private var entries: [String: Entry] = [:]
    private var tick: UInt64 = 0

    mutating func take(_ sql: String) -> Entry? {
        entries.removeValue(forKey: sql)
    }

    /// Keeps the statement; returns what is to be finalised for it.
    mutating func put(_ entry: Entry, for sql: String) -> [OpaquePointer] {
        guard capacity > 0, entries[sql] == nil else { return [entry.pointer] }
        var evicted: [OpaquePointer] = []
        if entries.count >= capacity, let oldest = entries.min(by: { $0.value.tick < $1.value.tick }) {
            entries[oldest.key] = nil
            evicted = [oldest.value.pointer]
        }
        tick += 1
        var entry = entry
        entry.tick = tick
        entries[sql] = entry
        return evicted
    }

    /// Returns what is to be finalised.
    mutating func removeAll() -> [OpaquePointer] {
        defer { entries = [:] }
        return entries.values.map(\.pointer)
    }

    /// Returns what is to be finalised.
    mutating func setCapacity(_ capacity: Int) -> [OpaquePointer] {
        self.capacity = capacity
        return entries.count > capacity ? removeAll() : []
    }
}
