/// The values of one row, as they are stored. <https://www.sqlite.org/fileformat.html#record_format>
struct SalvagedRecord {
    let values: [SalvagedValue]

    /// - Returns: `nil` if the bytes are not a record.
    init?(_ bytes: [UInt8]) {
        var header = ByteReader(bytes[...], from: 0)
        guard let headerSize = header.varint(), headerSize >= 1, headerSize <= bytes.count else { return nil }
        var types: [Int64] = []
        while header.position < headerSize {
            guard let type = header.varint() else { return nil }
            types.append(type)
        }
        guard header.position == headerSize else { return nil }
        var body = ByteReader(bytes[...], from: Int(headerSize))
        var values: [SalvagedValue] = []
        for type in types {
            guard let value = SalvagedRecord.value(type, &body) else { return nil }
            values.append(value)
        }
        guard body.position == bytes.count else { return nil }
        self.values = values
    }

    private static func value(_ type: Int64, _ body: inout ByteReader) -> SalvagedValue? {
        switch type {
        case 0: return .null
        case 1...6:
            let count = [1, 2, 3, 4, 6, 8][Int(type) - 1]
            guard let bytes = body.bytes(count), let first = bytes.first else { return nil }
            // The sign is that of the first byte.
            return .integer(bytes.reduce(first >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) })
        case 7: return body.number(8).map { .real(Double(bitPattern: UInt64(bitPattern: $0))) }
        case 8, 9: return .integer(type - 8)
        case 12...:
            guard let bytes = body.bytes(Int((type - 12) / 2)) else { return nil }
            return type.isMultiple(of: 2) ? .blob(Array(bytes)) : .text(Array(bytes))
        default: return nil
        }
    }
}

/// A value as it is stored.
enum SalvagedValue {
    case null
    case integer(Int64)
    case real(Double)
    /// In the encoding of the database.
    case text([UInt8])
    case blob([UInt8])
}

extension SalvagedValue {
    func bind(to statement: Statement, at index: Int32, encoding: SalvagedEncoding) throws(DatabaseError) {
        switch self {
        case .null: try statement.bindNull(at: index)
        case .integer(let value): try statement.bind(value, at: index)
        case .real(let value): try statement.bind(value, at: index)
        case .blob(let bytes): try statement.bind(bytes, at: index)
        case .text(let bytes):
            guard encoding == .utf8 else { return try statement.bind(encoding.units(bytes), at: index) }
            guard bytes.withUnsafeBytes({ statement.bindText($0, to: index) }) else { throw statement.bindingFailure }
        }
    }

    /// - Returns: `nil` for anything but a text that is valid.
    func text(_ encoding: SalvagedEncoding) -> String? {
        guard case .text(let bytes) = self else { return nil }
        if encoding == .utf8 { return String(validating: bytes, as: UTF8.self) }
        return String(validating: encoding.units(bytes), as: UTF16.self)
    }

    var integer: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    var isNull: Bool {
        if case .null = self { true } else { false }
    }
}

/// How a database stores its texts. <https://www.sqlite.org/fileformat.html#text_encoding>
enum SalvagedEncoding: Int64 {
    case utf8 = 1
    case utf16LittleEndian, utf16BigEndian

    var pragma: String {
        switch self {
        case .utf8: "UTF-8"
        case .utf16LittleEndian: "UTF-16le"
        case .utf16BigEndian: "UTF-16be"
        }
    }

    func units(_ bytes: [UInt8]) -> [UInt16] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { index in
            let (low, high) =
                self == .utf16BigEndian ? (bytes[index + 1], bytes[index]) : (bytes[index], bytes[index + 1])
            return UInt16(high) << 8 | UInt16(low)
        }
    }
}
