import Foundation

/// One line of a batch journal. Fields that a reader does not know are passed over, such as the words of the command,
/// which earlier versions wrote: they can hold a secret, and somebody else could have written them.
struct JournalRecord: Codable {
    enum Event: String, Codable {
        /// A run begins: the first one of a batch, or one that goes on with it.
        case begin
        /// A store is begun.
        case start
        /// A store is done, whether the run changed it or found it so.
        case done
        case failed
        /// A store was begun and left as it was.
        case stopped
        /// The run ended by itself.
        case end
    }

    var event: Event
    var time = Date()
    /// The store, absolute; of all events but `begin` and `end`.
    var path: String?

    // Of `begin`:
    var version: Int?
    var batch: String?
    var operation: String?
    var process: Int32?
    var directory: String?
    var stores: [String]?

    // Of `done`, `failed` and `end`:
    var outcome: String?
    var exitCode: Int32?
    var message: String?
    var seconds: Double?
    var bytes: Int64?

    init(_ event: Event) {
        self.event = event
    }

    init(_ event: Event, path: String) {
        self.event = event
        self.path = path
    }

    static let currentVersion = 1

    func line() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return try encoder.encode(self) + [0x0a]
    }

    /// - Returns: `nil` for a line that is no record: one that a power failure cut off.
    init?(line: some DataProtocol) {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        // Whether only the last line is no record is seen by who reads them all.
        guard let record = try? decoder.decode(JournalRecord.self, from: Data(line)) else { return nil }
        self = record
    }
}
