import SealedDB

/// Writes objects, one per line, as the rows come: as the elements of an array, or each on its own.
///
/// What JSON has no form for is an object with one member, which the import reads: `$blob` with the bytes in Base64, `$text`
/// with those of a text that is not UTF-8.
final class JSONWriter: ResultWriter {
    private let output: ResultOutput
    private let isLines: Bool
    /// The names of the members, as encoded JSON with their colons.
    private var names: [String] = []
    private var isFirst = true

    init(output: ResultOutput, isLines: Bool) {
        self.output = output
        self.isLines = isLines
    }

    func begin(columns: [String]) throws {
        names = JSONWriter.unique(columns).map { JSONWriter.string($0) + ":" }
        for index in names.indices.dropFirst() { names[index] = "," + names[index] }
        if !isLines { try output.write("[") }
    }

    func write(row: ResultSet) throws {
        if !isLines { output.buffer.add(isFirst ? "\n" : ",\n") }
        isFirst = false
        addObject(row)
        if isLines { output.buffer.add(UInt8(ascii: "\n")) }
        try output.endRow()
    }

    /// Adds the object alone.
    func addObject(_ row: ResultSet) {
        let buffer = output.buffer
        buffer.add(UInt8(ascii: "{"))
        for column in names.indices {
            buffer.add(names[column])
            switch row.heldValue(forColumnIndex: Int32(column)) {
            case .null: buffer.add("null")
            case .integer(let value): buffer.add(integer: value)
            case .real(let value) where value.isFinite: buffer.add(real: value)
            // A number too large for any computer, which SQLite reads as infinite.
            case .real(let value): buffer.add(value < 0 ? "-1e999" : "1e999")
            case .text(let bytes): JSONWriter.add(text: bytes, to: buffer)
            case .blob(let bytes): JSONWriter.add(bytes, as: "{\"$blob\":\"", to: buffer)
            }
        }
        buffer.add(UInt8(ascii: "}"))
    }

    func end() throws {
        guard !isLines else { return }
        try output.write(isFirst ? "]\n" : "\n]\n")
    }

    /// Makes column names unique, because an object should not have a name twice. Like in SQLite's shell, the second
    /// `id` becomes `id:1`.
    static func unique(_ columns: [String]) -> [String] {
        var used = Set<ExactText>()
        return columns.map { column in
            var name = column
            var number = 0
            while used.contains(ExactText(name)) {
                number += 1
                name = "\(column):\(number)"
            }
            used.insert(ExactText(name))
            return name
        }
    }

    private static func add(_ bytes: UnsafeRawBufferPointer, as start: StaticString, to buffer: ByteBuffer) {
        buffer.add(start)
        buffer.add(base64: bytes)
        buffer.add("\"}")
    }

    private static func add(text bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        guard bytes.isUTF8 else { return add(bytes, as: "{\"$text\":\"", to: buffer) }
        add(string: bytes, to: buffer)
    }

    /// Adds a text in quotes. JSON allows the control characters beyond ASCII without an escape, but a terminal would obey
    /// them.
    private static func add(string bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        buffer.add(UInt8(ascii: "\""))
        var start = 0
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard
                byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7f || byte == 0xc2
            else {
                index &+= 1
                continue
            }
            // In UTF-8, these characters have this byte before their own.
            let isLong = byte == 0xc2
            if isLong, index + 1 < bytes.count, bytes[index + 1] >= 0xa0 {
                index &+= 2
                continue
            }
            buffer.add(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            addEscape(isLong && index + 1 < bytes.count ? bytes[index + 1] : byte, to: buffer)
            index &+= isLong ? 2 : 1
            start = min(index, bytes.count)
        }
        buffer.add(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        buffer.add(UInt8(ascii: "\""))
    }

    private static func addEscape(_ byte: UInt8, to buffer: ByteBuffer) {
        switch byte {
        case UInt8(ascii: "\""): buffer.add("\\\"")
        case UInt8(ascii: "\\"): buffer.add("\\\\")
        case UInt8(ascii: "\n"): buffer.add("\\n")
        case UInt8(ascii: "\r"): buffer.add("\\r")
        case UInt8(ascii: "\t"): buffer.add("\\t")
        default:
            buffer.add("\\u00")
            withUnsafeBytes(of: byte) { buffer.add(hex: $0, isUpperCase: false) }
        }
    }

    static func string(_ text: String) -> String {
        let buffer = ByteBuffer(capacity: text.utf8.count + 16)
        var text = text
        text.withUTF8 { add(string: UnsafeRawBufferPointer($0), to: buffer) }
        return String(decoding: buffer.bytes, as: UTF8.self)
    }
}
