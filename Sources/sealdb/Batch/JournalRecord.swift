import Foundation

/// One line of a batch journal. Unknown fields are ignored, such as the words of the command, which earlier versions
/// wrote: they can hold a secret, and somebody else could have written them.
struct JournalRecord: Codable {
    enum Event: String, Codable {
        /// A run begins: the first one of a batch, or one that continues it.
        case begin
        /// The work on a store begins.
        case start
        /// The store has the new key, whose file is about to take the place of the old one.
        case replacing
        /// A store is done: the run changed it, or it was done before.
        case done
        case failed
        /// The work on a store was begun, and the store was left as it was.
        case stopped
        /// The run ended by itself.
        case end
    }

    var event: Event
    var time = Date()
    /// Absolute path of the store. Missing in `begin` and `end`.
    var path: String?

    // Fields of `begin`:
    var version: Int?
    var batch: String?
    var operation: String?
    var process: Int32?
    var directory: String?
    var stores: [String]?

    // Fields of `done`, `failed` and `end`:
    var outcome: String?
    var exitCode: Int32?
    var message: String?
    var seconds: Double?
    var bytes: Int64?

    // Fields of `replacing`, and `keyFile` of a `done` that follows it:
    var keyFile: String?
    var newKeyFile: String?
    /// Where the old key is kept. Missing in journals of earlier versions.
    var formerKeyFile: String?

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

    /// - Returns: `nil` for a line that is not a record, such as one that a power failure cut off.
    init?(line: some DataProtocol) {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        // A line that is not a record is left to the reader of the whole journal.
        guard let record = try? decoder.decode(JournalRecord.self, from: Data(line)) else { return nil }
        self = record
    }
}
