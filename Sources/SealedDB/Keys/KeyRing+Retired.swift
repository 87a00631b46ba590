import Foundation

/// Keys that a ring keeps although it does not use them.
extension KeyRing {
    struct RetiredEntry: Sendable {
        let entry: Entry
        /// The day until which it is to be kept, such as 2026-12-31.
        let day: String
    }

    /// A key that opens nothing any more, and is kept in case that a store or backup still needs it.
    public struct RetiredKey: Sendable, Hashable, Codable {
        /// The name of the key.
        public let id: String
        /// The day until which it is to be kept, such as 2026-12-31, in UTC. Nothing removes it by itself.
        public let keptUntil: String
    }

    /// The retired keys, in the order of their ids.
    public var retiredKeys: [RetiredKey] {
        retiredEntries.map { RetiredKey(id: $0.entry.id, keptUntil: $0.day) }.sorted { $0.id < $1.id }
    }

    func isRetired(_ id: String) -> Bool { retiredEntries.contains { $0.entry.id == id } }

    /// Puts a key aside. The ring opens no store with it any more; ``reinstate(_:)`` makes it an ordinary key again, and
    /// ``remove(_:)`` removes it for good.
    /// - Parameters:
    ///   - id: the id of the key.
    ///   - date: the day until which it is to be kept. Whoever removes it before that is to be asked.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` if the id is unknown, that of the active key, or retired
    ///   already.
    public mutating func retire(_ id: String, until date: Date) throws(DatabaseError) {
        guard !isRetired(id) else { throw .malformedKeyRing("\(id) is a retired key of \(name) already.") }
        let retired = entries.first { $0.id == id }
        // Refuses an id that is unknown or active.
        try remove(id)
        if let retired { retiredEntries.append(RetiredEntry(entry: retired, day: KeyRing.day(date))) }
    }

    /// Makes a retired key an ordinary one again, which is not active.
    /// - Throws: ``DatabaseError/Reason/malformedKeyRing`` if no retired key has the id.
    public mutating func reinstate(_ id: String) throws(DatabaseError) {
        guard let retired = retiredEntries.first(where: { $0.entry.id == id }) else {
            throw .malformedKeyRing("\(name) has no retired key \(id).")
        }
        retiredEntries.removeAll { $0.entry.id == id }
        entries.append(retired.entry)
    }

    /// A retired key.
    package func retiredKey(_ id: String) throws(DatabaseError) -> Key {
        guard let retired = retiredEntries.first(where: { $0.entry.id == id }) else {
            throw .malformedKeyRing("\(name) has no retired key \(id).")
        }
        return try retired.entry.key.key()
    }

    /// The day of a date in UTC.
    package static func day(_ date: Date) -> String {
        date.formatted(.iso8601.year().month().day())
    }

    /// Whether this is a day such as 2026-12-31.
    static func isDay(_ text: String) -> Bool {
        // What cannot be read is no day.
        guard let date = try? Date(text, strategy: .iso8601.year().month().day()) else { return false }
        // Days are compared as texts.
        return text.utf8.count == 10 && day(date).isSame(as: text)
    }
}
