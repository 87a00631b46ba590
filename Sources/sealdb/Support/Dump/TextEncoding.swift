import Foundation
import SealedDB

/// How a store keeps its texts. https://www.sqlite.org/pragma.html#pragma_encoding
enum TextEncoding: String {
    case utf8 = "UTF-8"
    case utf16Little = "UTF-16le"
    case utf16Big = "UTF-16be"

    init(of database: Database) throws {
        let name = try database.executeQuery("PRAGMA encoding").scalar(String.self) ?? ""
        guard let encoding = TextEncoding(rawValue: name) else {
            throw Failure(.software, "The store has an encoding that sealdb does not know.")
        }
        self = encoding
    }

    var isUTF8: Bool { self == .utf8 }

    /// The text as the store keeps it.
    func bytes(of text: String) -> Data {
        switch self {
        case .utf8: Data(text.utf8)
        case .utf16Little: Data(text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] })
        case .utf16Big: Data(text.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] })
        }
    }
}
