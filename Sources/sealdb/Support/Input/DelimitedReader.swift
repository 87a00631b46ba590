import ArgumentParser

/// The formats that an import reads.
enum ImportFormat: String, ExpressibleByArgument, CaseIterable {
    /// RFC 4180.
    case csv
    /// Tab-separated, without quotes; backslash escapes for tab, line feed, carriage return and backslash, `\N` for
    /// NULL.
    case tsv
    /// Objects one after the other, or an array of them.
    case json
    /// The same.
    case jsonl

    /// The format for the file name's extension: TSV for `.tsv` and `.tab`, JSON for `.json`, `.jsonl` and `.ndjson`,
    /// otherwise CSV.
    init(path: String) {
        let name = path.lowercased()
        self =
            if name.hasSuffix(".tsv") || name.hasSuffix(".tab") {
                .tsv
            } else if name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson") || name.hasSuffix(".json") {
                .jsonl
            } else {
                .csv
            }
    }

    var isJSON: Bool { self == .json || self == .jsonl }
}

/// What may be different in a file.
struct DelimitedStyle {
    /// An ASCII character between the fields of CSV.
    var delimiter = UInt8(ascii: ",")
    /// What stands for NULL, where it is not quoted and has no escape; `nil` for an empty field in CSV, and `\N` in TSV.
    var null: [UInt8]?

    /// Why what stands for NULL would not be read as one field that is as it was written; `nil` if it would.
    func problemOfNull(in format: ImportFormat) -> String? {
        guard let null, !format.isJSON else { return nil }
        var forbidden = Set("\r\n\0".utf8)
        if format == .csv {
            forbidden.formUnion([delimiter, UInt8(ascii: "\"")])
        } else {
            forbidden.insert(UInt8(ascii: "\t"))
        }
        let hasEscape = zip(null, null.dropFirst()).contains { first, second in
            first == UInt8(ascii: "\\") && "tnr0\\".utf8.contains(second)
        }
        guard null.contains(where: forbidden.contains) || format == .tsv && hasEscape else { return nil }
        return """
            What stands for NULL (--null) cannot have the end of a line or a NUL in it, nor in CSV a delimiter or quote, nor in \
            TSV a tab or an escape such as \\t.
            """
    }
}

/// Reads a file row by row, in constant memory.
protocol RecordReader {
    /// The row that was read last.
    var record: ImportedRecord { get }
    /// The names of the columns that were found in the rows so far; `nil` if rows do not name their columns.
    var foundNames: [String]? { get }
    /// The row as it stands in the file; `nil` if its fields can be written as they were.
    var text: UnsafeRawBufferPointer? { get }
    /// Reads the next row into ``record``. False at the end of the input.
    /// - Throws: ``ImportError`` with the line, ``Failure``.
    mutating func next() throws -> Bool
}

/// Reads CSV or TSV. Its errors name the line.
struct DelimitedReader: RecordReader {
    let record = ImportedRecord()
    var foundNames: [String]? { nil }
    var text: UnsafeRawBufferPointer? { nil }
    private let format: ImportFormat
    private let style: DelimitedStyle
    private let fill: (inout [UInt8]) throws -> Int
    private var buffer: [UInt8]
    private var index = 0
    private var limit = 0
    private var line = 1
    private var isAtStart = true

    static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]
    /// What stands for NULL in TSV, where nothing else is given.
    static let nullOfTSV = Array("\\N".utf8)
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")
    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    /// SQLite's own limit for a row, in bytes. Without it, a quote that is never closed would use up all memory.
    private static let maximumRecordSize = 1_000_000_000

    /// - Parameter fill: writes the next bytes to the front of a buffer, and returns their number; 0 at the end.
    init(
        format: ImportFormat,
        style: DelimitedStyle = DelimitedStyle(),
        bufferSize: Int = 256 * 1024,
        fill: @escaping (inout [UInt8]) throws -> Int
    ) {
        self.format = format
        self.style = style
        self.fill = fill
        buffer = [UInt8](repeating: 0, count: max(bufferSize, DelimitedReader.byteOrderMark.count))
    }

    init(format: ImportFormat, style: DelimitedStyle, file: InputFile) {
        self.init(format: format, style: style) { try file.read(into: &$0) }
    }

    /// Reads the next record into ``record``. False at the end of the input.
    mutating func next() throws -> Bool {
        if isAtStart { try skipByteOrderMark() }
        record.begin(line: line)
        return try format == .csv ? nextQuoted() : nextEscaped()
    }

    // MARK: CSV

    private enum QuotedState { case fieldStart, bare, quoted, closed, carriageReturn }

    /// Takes fields without quotes, as long as they stand in the buffer as a whole.
    /// - Returns: whether that was all of the record. If not, what comes next begins a field.
    private mutating func takePlainFields() -> Bool {
        let (first, last, delimiter) = (index, limit, style.delimiter)
        let hasOwnNull = style.null != nil
        let (next, isWhole) = buffer.withUnsafeBytes { bytes in
            var start = first
            var end = first
            while end < last {
                let byte = bytes[end]
                guard byte <= UInt8(ascii: "\"") || byte == delimiter else {
                    end &+= 1
                    continue
                }
                let isEnd = byte == DelimitedReader.lineFeed
                if isEnd || byte == delimiter {
                    let field = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                    let isNull = hasOwnNull ? style.null?.elementsEqual(field) == true : field.isEmpty
                    record.addField(field, isNull ? .null : .plain)
                    end &+= 1
                    start = end
                    if isEnd { return (start, true) }
                } else if byte == DelimitedReader.quote || byte == DelimitedReader.carriageReturn || byte == 0 {
                    return (start, false)
                } else {
                    end &+= 1
                }
            }
            return (start, false)
        }
        index = next
        if isWhole { line += 1 }
        return isWhole
    }

    private mutating func nextQuoted() throws -> Bool {
        if takePlainFields() { return true }
        var state = QuotedState.fieldStart
        var quoteLine = line
        var isQuoted = false
        while true {
            if state == .quoted {
                // Within quotes it does not matter whether there was any.
                _ = appendRun { $0 == DelimitedReader.quote || $0 == DelimitedReader.lineFeed }
            } else if state == .fieldStart || state == .bare {
                let delimiter = style.delimiter
                let isEmpty = appendRun {
                    $0 == delimiter || $0 == DelimitedReader.lineFeed || $0 == DelimitedReader.quote
                        || $0 == DelimitedReader.carriageReturn || $0 == 0
                }
                if !isEmpty {
                    state = .bare
                    try checkSize()
                }
            }
            guard let byte = try nextByte() else { break }
            switch (state, byte) {
            case (.quoted, DelimitedReader.quote):
                state = .closed
            case (.quoted, _):
                if byte == DelimitedReader.lineFeed { line += 1 }
                record.append(byte)
                if record.content.count > DelimitedReader.maximumRecordSize {
                    throw ImportError(line: quoteLine, reason: "the field that is quoted here exceeds 1 GB")
                }
            case (.closed, DelimitedReader.quote):
                record.append(byte)
                state = .quoted
            case (.fieldStart, DelimitedReader.quote):
                state = .quoted
                isQuoted = true
                quoteLine = line
            case (.carriageReturn, let byte) where byte != DelimitedReader.lineFeed:
                throw failure("a carriage return without a line feed")
            case (_, DelimitedReader.lineFeed):
                endQuotableField(isQuoted)
                line += 1
                return true
            case (_, style.delimiter):
                endQuotableField(isQuoted)
                state = .fieldStart
                isQuoted = false
            case (_, DelimitedReader.carriageReturn):
                state = .carriageReturn
            case (.closed, _):
                throw failure("text after the closing quote of field \(record.fieldCount + 1)")
            case (.bare, DelimitedReader.quote):
                throw failure("a quote inside field \(record.fieldCount + 1), which does not begin with one")
            case (_, 0):
                throw failure("a NUL byte that is not in quotes; is this text in UTF-8?")
            default:
                state = .bare
                record.append(byte)
                try checkSize()
            }
        }
        switch state {
        case .quoted:
            throw ImportError(line: quoteLine, reason: "the quote opened here is never closed")
        case .carriageReturn:
            throw failure("a carriage return without a line feed")
        case .fieldStart where record.fieldCount == 0:
            return false
        default:
            endQuotableField(isQuoted)
            return true
        }
    }

    private mutating func endQuotableField(_ isQuoted: Bool) {
        guard !isQuoted else { return record.endField(.quoted) }
        let isNull = style.null.map { record.openField.elementsEqual($0) } ?? (record.openFieldCount == 0)
        record.endField(isNull ? .null : .plain)
    }

    // MARK: TSV

    private mutating func nextEscaped() throws -> Bool {
        var isEscape = false
        var endsInCarriageReturn = false
        var hasEscape = false
        var isEmpty = true
        while true {
            if !isEscape, !endsInCarriageReturn {
                let isRunEmpty = appendRun {
                    $0 == UInt8(ascii: "\t") || $0 == DelimitedReader.lineFeed || $0 == DelimitedReader.backslash
                        || $0 == DelimitedReader.carriageReturn || $0 == 0
                }
                if !isRunEmpty {
                    isEmpty = false
                    try checkSize()
                }
            }
            guard let byte = try nextByte() else { break }
            isEmpty = false
            if byte == 0 { throw failure("a NUL byte; is this text in UTF-8?") }
            if isEscape {
                isEscape = false
                let decoded: UInt8? =
                    switch byte {
                    case UInt8(ascii: "t"): UInt8(ascii: "\t")
                    case UInt8(ascii: "n"): DelimitedReader.lineFeed
                    case UInt8(ascii: "r"): DelimitedReader.carriageReturn
                    case UInt8(ascii: "0"): 0
                    case DelimitedReader.backslash: DelimitedReader.backslash
                    default: nil
                    }
                if let decoded {
                    record.append(decoded)
                    hasEscape = true
                    endsInCarriageReturn = false
                    continue
                }
                // An unknown escape is kept as it is, because many programs write backslashes and know no escapes.
                record.append(DelimitedReader.backslash)
            }
            switch byte {
            case DelimitedReader.lineFeed:
                if endsInCarriageReturn { record.removeLast() }
                endEscapedField(hasEscape)
                line += 1
                return true
            case UInt8(ascii: "\t"):
                endEscapedField(hasEscape)
                hasEscape = false
            case DelimitedReader.backslash:
                isEscape = true
            default:
                record.append(byte)
                try checkSize()
            }
            endsInCarriageReturn = byte == DelimitedReader.carriageReturn
        }
        if isEmpty { return false }
        if isEscape { record.append(DelimitedReader.backslash) }
        endEscapedField(hasEscape)
        return true
    }

    /// What was written with escapes is a text, also if it reads as what stands for NULL.
    private mutating func endEscapedField(_ hasEscape: Bool) {
        let isNull = !hasEscape && record.openField.elementsEqual(style.null ?? DelimitedReader.nullOfTSV)
        record.endField(isNull ? .null : .plain)
    }

    // MARK: Bytes

    private mutating func nextByte() throws -> UInt8? {
        if index == limit {
            limit = try fill(&buffer)
            index = 0
            if limit == 0 { return nil }
        }
        let byte = buffer[index]
        index += 1
        return byte
    }

    /// Takes bytes into the record up to one that ends them, or to the end of the buffer.
    /// - Returns: whether there was none.
    @inline(__always)
    private mutating func appendRun(_ endsRun: (UInt8) -> Bool) -> Bool {
        let (first, last) = (index, limit)
        let end = buffer.withUnsafeBytes { bytes in
            var end = first
            while end < last, !endsRun(bytes[end]) { end &+= 1 }
            record.append(UnsafeRawBufferPointer(rebasing: bytes[first..<end]))
            return end
        }
        index = end
        return end == first
    }

    private mutating func skipByteOrderMark() throws {
        isAtStart = false
        var start: [UInt8] = []
        while start.count < DelimitedReader.byteOrderMark.count {
            let count = try fill(&buffer)
            if count == 0 { break }
            start.append(contentsOf: buffer[..<count])
        }
        if start.starts(with: DelimitedReader.byteOrderMark) { start.removeFirst(DelimitedReader.byteOrderMark.count) }
        if start.count > buffer.count { buffer = start } else { buffer.replaceSubrange(..<start.count, with: start) }
        limit = start.count
    }

    private func failure(_ reason: String) -> ImportError {
        ImportError(line: line, reason: reason)
    }

    private func checkSize() throws(ImportError) {
        if record.content.count > DelimitedReader.maximumRecordSize {
            throw ImportError(line: record.line, reason: "the record exceeds 1 GB")
        }
    }
}
