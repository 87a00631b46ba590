import Foundation
import SealedDB

/// Values and names as SQL, exact to the byte, in a form that the stock shells read from a file too.
enum SQLLiteral {
    static func name(_ name: String) -> String { name.quoted(by: "\"") }

    /// The beginning of a statement, up to the first value.
    static func insertion(into table: String, columns: [String], _ verb: String = "INSERT INTO") -> String {
        "\(verb) \(name(table))(\(columns.map { name($0) }.joined(separator: ","))) VALUES("
    }

    static func text(of cell: Cell) -> String {
        switch cell {
        case .null: "NULL"
        case .integer(let value):
            // As a literal, this number would be a REAL without its sign.
            value == .min ? "(-9223372036854775807-1)" : String(value)
        case .real(let value): value.isFinite ? number(value) : value < 0 ? "-1e999" : "1e999"
        case .text(let text): quoted(text)
        case .brokenText(let bytes): "CAST(\(blob(bytes)) AS TEXT)"
        case .blob(let bytes): blob(bytes)
        }
    }

    /// Adds a value to output that is SQL, without a copy of it where that is possible.
    static func add(_ value: HeldValue, to buffer: ByteBuffer) {
        switch value {
        case .null: buffer.add("NULL")
        case .integer(let value):
            if value == .min { buffer.add("(-9223372036854775807-1)") } else { buffer.add(integer: value) }
        case .real(let value) where value.isFinite: buffer.addAllDigits(value)
        case .real(let value): buffer.add(value < 0 ? "-1e999" : "1e999")
        case .text(let bytes): add(text: bytes, to: buffer)
        case .blob(let bytes): add(blob: bytes, to: buffer)
        }
    }

    private static func add(blob bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        buffer.add("X'")
        buffer.add(hex: bytes, isUpperCase: false)
        buffer.add(UInt8(ascii: "'"))
    }

    private static func add(text bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        let quote = UInt8(ascii: "'")
        var isPlain = true
        var needsFunction = false
        for byte in bytes {
            if byte == quote { isPlain = false }
            if byte == 0 || byte == 0x0d { needsFunction = true }
        }
        guard bytes.isUTF8 else {
            buffer.add("CAST(")
            add(blob: bytes, to: buffer)
            return buffer.add(" AS TEXT)")
        }
        if needsFunction { return buffer.add(quoted(String(decoding: bytes, as: UTF8.self))) }
        buffer.add(quote)
        if isPlain {
            buffer.add(bytes)
        } else {
            for byte in bytes {
                if byte == quote { buffer.add(quote) }
                buffer.add(byte)
            }
        }
        buffer.add(quote)
    }

    /// With 17 digits, which SQLite from 3.46 on reads as the same number. It may read the shortest form as the next one.
    private static func number(_ value: Double) -> String {
        let text = String(format: "%.17g", value)
        return text.has(".") || text.has("e") ? text : text + ".0"
    }

    private static func blob(_ bytes: Data) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity(bytes.count * 2 + 3)
        digits += "X'".utf8
        for byte in bytes {
            digits.append(hexDigits[Int(byte >> 4)])
            digits.append(hexDigits[Int(byte & 15)])
        }
        digits += "'".utf8
        return String(decoding: digits, as: UTF8.self)
    }

    private static let hexDigits = Array("0123456789abcdef".utf8)

    /// SQLite reads SQL up to a NUL, and the shells change line ends. So both are put in by a function.
    private static func quoted(_ text: String) -> String {
        var result = text.quoted(by: "'")
        for code in [UInt8(0), 13] where text.utf8.contains(code) {
            let mark = mark(notIn: result)
            let scalars = result.unicodeScalars.map { $0.value == UInt32(code) ? mark : $0 }
            result = String(String.UnicodeScalarView(scalars))
            result = "replace(\(result),'\(mark)',char(\(code)))"
        }
        return result
    }

    /// A character that the text does not have.
    private static func mark(notIn text: String) -> Unicode.Scalar {
        if let mark = "~^|@#%$".unicodeScalars.first(where: { !text.utf8.contains(UInt8(ascii: $0)) }) { return mark }
        let used = Set(text.unicodeScalars)
        // No text has all of them: it would be longer than SQLite allows.
        let others = [0xe000...0xf8ff, 0x10000...0x10ffff] as [ClosedRange<UInt32>]
        return others.lazy.joined().lazy.compactMap(Unicode.Scalar.init).first { !used.contains($0) }!
    }
}
