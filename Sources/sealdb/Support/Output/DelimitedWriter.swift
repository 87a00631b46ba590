import SealedDB

/// Writes CSV or TSV with a header row, in the form that the import reads.
///
/// In CSV, a text that would read as NULL, a number or a blob stands in quotes, as does one with a quote, a delimiter, a line
/// break, or a byte order mark at its beginning. TSV has no quotes: if its first text begins with a mark, another one stands
/// before it, because readers take the first for none of the text. A value of it that would read as NULL is refused.
final class DelimitedWriter: ResultWriter {
    private let output: ResultOutput
    private let format: ImportFormat
    private let hasHeader: Bool
    private let null: [UInt8]
    private let delimiter: UInt8
    private var columnCount: Int32 = 0
    /// Whether a number or blob of CSV, or any value of TSV, could read as what stands for NULL.
    private let mayBeNull: Bool

    init(output: ResultOutput, format: ImportFormat, style: ResultStyle) {
        self.output = output
        self.format = format
        hasHeader = style.hasHeader
        null = style.null.map { Array($0.utf8) } ?? (format == .tsv ? DelimitedReader.nullOfTSV : [])
        delimiter = UInt8(ascii: format == .tsv ? "\t" : ",")
        // Who has nothing written for NULL in TSV does not tell it from an empty text.
        mayBeNull = format == .tsv ? !null.isEmpty : null.withUnsafeBytes { ImportedField.mayBeValue($0) }
    }

    func begin(columns: [String]) throws {
        columnCount = Int32(columns.count)
        let style = DelimitedStyle(delimiter: delimiter, null: null)
        if let problem = style.problemOfNull(in: format) { throw Failure(.usage, "\(problem) Nothing was written.") }
        guard hasHeader else { return }
        for (index, column) in columns.enumerated() {
            if index > 0 { output.buffer.add(delimiter) }
            var column = column
            column.withUTF8 { bytes in
                let bytes = UnsafeRawBufferPointer(bytes)
                switch format {
                case .tsv: addEscaped(bytes)
                default: DelimitedWriter.addQuoted(bytes, delimiter: delimiter, null: null, to: output.buffer)
                }
            }
        }
        output.buffer.add(UInt8(ascii: "\n"))
        try output.endRow()
    }

    func write(row: ResultSet) throws {
        let buffer = output.buffer
        for column in 0..<columnCount {
            if column > 0 { buffer.add(delimiter) }
            let isFirst = column == 0 && output.isEmpty
            var start = buffer.count
            let value = row.heldValue(forColumnIndex: column)
            switch value {
            case .null: null.withUnsafeBytes { addAtStart($0) { buffer.add($0) } }
            case .integer(let value): buffer.add(integer: value)
            case .real(let value) where value.isFinite: buffer.add(real: value)
            case .real(let value): buffer.add(value < 0 ? "-Inf" : "Inf")
            case .blob(let bytes):
                buffer.add("X'")
                buffer.add(hex: bytes, isUpperCase: true)
                buffer.add(UInt8(ascii: "'"))
            case .text(let bytes) where format == .tsv: addEscaped(bytes)
            case .text(let bytes):
                let isAmbiguous = ImportedField.mayBeValue(bytes) && ImportedField(bytes).isValue
                if isAmbiguous {
                    DelimitedWriter.addInQuotes(bytes, to: buffer)
                } else {
                    DelimitedWriter.addQuoted(bytes, delimiter: delimiter, null: null, to: buffer)
                }
            }
            // Readers do not see the mark that was put before it.
            if isFirst, buffer.bytes[start...].starts(with: DelimitedReader.byteOrderMark) {
                start += DelimitedReader.byteOrderMark.count
            }
            if mayBeNull { try requireOther(than: null, value, from: start) }
        }
        buffer.add(UInt8(ascii: "\n"))
        try output.endRow()
    }

    func end() {}

    /// Puts a number of CSV in quotes that was written as what stands for NULL, and fails for what has no other form.
    private func requireOther(than null: [UInt8], _ value: HeldValue, from start: Int) throws(Failure) {
        guard output.buffer.count - start == null.count, output.buffer.bytes[start...].elementsEqual(null) else {
            return
        }
        switch value {
        case .null: return
        case .text where format == .csv: return
        case .integer where format == .csv, .real where format == .csv:
            output.buffer.remove(after: start)
            null.withUnsafeBytes { DelimitedWriter.addInQuotes($0, to: output.buffer) }
        case .integer, .real, .text, .blob:
            throw Failure(
                .data,
                """
                A value is written as what stands for NULL (--null), and would be read as NULL. What was written is not all of \
                the result. Let something else stand for NULL.
                """
            )
        }
    }

    private func addEscaped(_ bytes: UnsafeRawBufferPointer) {
        addAtStart(bytes) { DelimitedWriter.addEscaped($0, to: output.buffer) }
    }

    /// Adds what has no quotes. Where the output begins with it, a mark at its beginning is doubled.
    private func addAtStart(_ bytes: UnsafeRawBufferPointer, _ add: (UnsafeRawBufferPointer) -> Void) {
        if output.isEmpty, bytes.starts(with: DelimitedReader.byteOrderMark) {
            DelimitedReader.byteOrderMark.withUnsafeBytes { output.buffer.add($0) }
        }
        add(bytes)
    }

    private static let quote = UInt8(ascii: "\"")

    /// A field of CSV: in quotes where it needs them, or where it reads as what stands for NULL.
    static func addQuoted(_ bytes: UnsafeRawBufferPointer, delimiter: UInt8, null: [UInt8]?, to buffer: ByteBuffer) {
        let needsQuotes = bytes.contains {
            $0 == quote || $0 == delimiter || $0 == 0x0a || $0 == 0x0d || $0 == 0
        }
        if needsQuotes || bytes.starts(with: DelimitedReader.byteOrderMark)
            || null.map({ $0.count == bytes.count && bytes.elementsEqual($0) }) == true
        {
            addInQuotes(bytes, to: buffer)
        } else {
            buffer.add(bytes)
        }
    }

    static func addInQuotes(_ bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        buffer.add(quote)
        for byte in bytes {
            if byte == quote { buffer.add(quote) }
            buffer.add(byte)
        }
        buffer.add(quote)
    }

    /// A field of TSV.
    static func addEscaped(_ bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
        var start = 0
        for index in 0..<bytes.count {
            let escape: StaticString
            switch bytes[index] {
            case 0x09: escape = "\\t"
            case 0x0a: escape = "\\n"
            case 0x0d: escape = "\\r"
            case 0x00: escape = "\\0"
            case UInt8(ascii: "\\"): escape = "\\\\"
            default: continue
            }
            buffer.add(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            buffer.add(escape)
            start = index + 1
        }
        buffer.add(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    }
}
