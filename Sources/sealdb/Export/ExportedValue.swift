import SealedDB

/// A value of the store, where SQLite holds it.
enum ExportedValue {
    case null
    case integer(Int64)
    case real(Double)
    /// Valid UTF-8.
    case text(UnsafeRawBufferPointer)
    /// A text that is not valid in the store's encoding, which SQLite permits; its bytes there.
    case brokenText(UnsafeRawBufferPointer)
    case blob(UnsafeRawBufferPointer)

    init(_ value: HeldValue) {
        switch value {
        case .null: self = .null
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .text(let bytes): self = bytes.isUTF8 ? .text(bytes) : .brokenText(bytes)
        case .blob(let bytes): self = .blob(bytes)
        }
    }

    /// How much of it there is to carry, for the progress that is shown.
    var size: Int64 {
        switch self {
        case .null: 0
        case .integer, .real: 8
        case .text(let bytes), .brokenText(let bytes), .blob(let bytes): Int64(bytes.count)
        }
    }
}

/// Where a row is, told without its values: these belong into no message.
struct RowPlace {
    /// From 1, in the order in which the table is read.
    let number: Int64
    let rowID: Int64?

    var text: String { rowID.map { "row id \($0)" } ?? "row \(number) in the order of the primary key" }
}
