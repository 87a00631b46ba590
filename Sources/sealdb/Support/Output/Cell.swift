import ArgumentParser
import Foundation
import SealedDB

/// One value of a query result.
enum Cell {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    /// Text that is not valid in the store's encoding, which SQLite permits; its bytes there.
    case brokenText(Data)
    case blob(Data)

    init(_ rows: ResultSet, column: Int32) {
        switch rows.type(forColumnIndex: column) {
        case .null: self = .null
        case .integer: self = .integer(rows.longLongInt(forColumnIndex: column))
        case .float: self = .real(rows.double(forColumnIndex: column))
        case .text:
            if let text = rows.string(forColumnIndex: column) {
                self = .text(text)
            } else {
                self = .brokenText(rows.data(forColumnIndex: column) ?? Data())
            }
        case .blob: self = .blob(rows.data(forColumnIndex: column) ?? Data())
        }
    }

    /// Whether both are of one type and have the same bytes.
    func isSame(as other: Cell) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.integer(let own), .integer(let other)): own == other
        case (.real(let own), .real(let other)): own.bitPattern == other.bitPattern
        case (.text(let own), .text(let other)): own.isSame(as: other)
        case (.brokenText(let own), .brokenText(let other)), (.blob(let own), .blob(let other)): own == other
        default: false
        }
    }

    /// The value as a parameter; `nil` for text that is not valid, which has no Swift type.
    var bindable: Any? {
        switch self {
        case .null: NSNull()
        case .integer(let value): value
        case .real(let value): value
        case .text(let text): text
        case .brokenText: nil
        case .blob(let bytes): bytes
        }
    }

    var isBrokenText: Bool {
        if case .brokenText = self { true } else { false }
    }

    var isNumber: Bool {
        switch self {
        case .integer, .real: true
        default: false
        }
    }

    /// The text of the value outside of JSON; `nil` for NULL. Blobs are written as SQL literals.
    var plainText: String? {
        switch self {
        case .null: nil
        case .integer(let value): String(value)
        case .real(let value): value.isFinite ? "\(value)" : value < 0 ? "-Inf" : "Inf"
        case .text(let text): text
        case .brokenText(let bytes): String(decoding: bytes, as: UTF8.self)
        case .blob(let bytes): "X'\(bytes.map { String(format: "%02X", $0) }.joined())'"
        }
    }
}
