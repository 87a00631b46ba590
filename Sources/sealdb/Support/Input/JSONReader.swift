import SealedDB

/// Reads rows of JSON: objects one after the other, as in JSON lines, or an array of them. Its errors name the line.
///
/// A member is a column. Numbers, texts, true and false (1 and 0) and null are what they say; an array or object is the text
/// that it is in JSON. What JSON has no form for is an object with one member, as a result has it: `$blob` with bytes in
/// Base64, `$text` with those of a text that is not UTF-8. <https://www.rfc-editor.org/rfc/rfc8259>
struct JSONReader: RecordReader {
    let record = ImportedRecord()
    /// The names of the columns, in the order in which they were found.
    private(set) var names: [String]
    var foundNames: [String]? { names }
    /// The object that was read last, as it stands in the file; `nil` unless asked for.
    var text: UnsafeRawBufferPointer? { source.copy?.bytes }
    /// Whether members are passed over that are no column.
    private let ignoresOthers: Bool
    /// Whether a member that no object had before is a new column.
    private let findsNames: Bool
    /// Whether this is so for all objects, not only for the first one.
    private let isSurvey: Bool
    private var source: ByteSource
    private var places: [[UInt8]: Int]
    private var nameBytes: [[UInt8]]
    /// The number of the object in which the column was found last.
    private var lastObjects: [Int]
    private var objectCount = 0
    private var isAtStart = true
    private var isInArray = false
    private let name = ByteBuffer(capacity: 256)
    private let ignored = ByteBuffer(capacity: 256)

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")
    private let sizeLimit: Int
    /// SQLite's own limit for a row, in bytes.
    private static let maximumRecordSize = 1_000_000_000
    /// SQLite's default. <https://www.sqlite.org/limits.html#max_column>
    private static let maximumColumnCount = 2000
    private static let maximumDepth = 500

    /// - Parameters:
    ///   - names: the names of the columns; `nil` if they are to be found.
    ///   - isSurvey: whether any object may have a new column, if they are to be found. Otherwise the first one has them all.
    ///   - keepsText: whether ``text`` is wanted.
    ///   - sizeLimit: how large an object, a name or the text of an object may be, in bytes.
    ///   - fill: writes the next bytes to the front of a buffer, and returns their number; 0 at the end.
    init(
        names: [String]?,
        ignoresOthers: Bool,
        isSurvey: Bool = false,
        keepsText: Bool = false,
        bufferSize: Int = 256 * 1024,
        sizeLimit: Int = JSONReader.maximumRecordSize,
        fill: @escaping (inout [UInt8]) throws -> Int
    ) {
        self.sizeLimit = sizeLimit
        self.names = names ?? []
        self.ignoresOthers = ignoresOthers
        findsNames = names == nil
        self.isSurvey = isSurvey
        source = ByteSource(bufferSize: bufferSize, fill: fill)
        if keepsText { source.copy = ByteBuffer(capacity: 4096) }
        nameBytes = self.names.map { Array($0.utf8) }
        places = Dictionary(zip(nameBytes, nameBytes.indices)) { first, _ in first }
        lastObjects = nameBytes.map { _ in 0 }
    }

    mutating func next() throws -> Bool {
        if isAtStart { try begin() }
        try skipBlanks()
        if try isInArray && (objectCount > 0 || source.peek() == UInt8(ascii: "]")) {
            guard let byte = try source.peek() else { throw failure("the array is not closed") }
            source.take()
            if byte == UInt8(ascii: "]") { return try end() }
            guard byte == UInt8(ascii: ",") else { throw failure("a comma is missing between two objects") }
            try skipBlanks()
        }
        guard let byte = try source.peek() else {
            if isInArray { throw failure("the array is not closed") }
            return false
        }
        guard byte == UInt8(ascii: "{") else { throw failure("there is no object, which begins with {") }
        objectCount += 1
        source.copy?.removeAll()
        record.begin(line: source.line)
        record.fill(names.count)
        try readObject()
        return true
    }

    private mutating func begin() throws {
        isAtStart = false
        if try source.peek() == 0xef {
            for byte in [0xef, 0xbb, 0xbf] as [UInt8] {
                guard try source.peek() == byte else { throw failure("this is not JSON in UTF-8") }
                source.take()
            }
        }
        try skipBlanks()
        guard try source.peek() == UInt8(ascii: "[") else { return }
        source.take()
        isInArray = true
    }

    /// The array is closed.
    private mutating func end() throws -> Bool {
        try skipBlanks()
        guard try source.peek() == nil else { throw failure("something follows the array") }
        isInArray = false
        return false
    }

    private mutating func skipBlanks() throws {
        while let byte = try source.peek(), byte == 0x20 || (0x09...0x0d).contains(byte) && byte != 0x0b && byte != 0x0c
        {
            source.take()
            if let copy = source.copy { try requireRoom(in: copy) }
        }
    }

    private func failure(_ reason: String) -> ImportError { ImportError(line: source.line, reason: reason) }

    /// Input can go on without an end. What takes it is looked at wherever it grows.
    private func requireRoom(in target: ByteBuffer) throws {
        guard target.count <= sizeLimit else { throw failure("the object exceeds 1 GB") }
    }

    private mutating func expect(_ byte: UInt8, _ reason: String) throws {
        try skipBlanks()
        guard try source.peek() == byte else { throw failure(reason) }
        source.take()
    }

    // MARK: Objects

    private mutating func readObject() throws {
        source.take()
        try skipBlanks()
        if try source.peek() == UInt8(ascii: "}") { return source.take() }
        var expected = 0
        while true {
            try skipBlanks()
            guard try source.peek() == JSONReader.quote else { throw failure("a member has no name in quotes") }
            name.removeAll()
            try readString(into: name)
            try expect(UInt8(ascii: ":"), "a colon is missing behind the name of a member")
            try skipBlanks()
            if let place = try place(expected) {
                try readValue(place)
                expected = place + 1
            } else {
                ignored.removeAll()
                try copyValue(into: ignored, depth: 0)
            }
            guard record.content.count <= sizeLimit else {
                throw ImportError(line: record.line, reason: "the object exceeds 1 GB")
            }
            try skipBlanks()
            let byte = try source.peek()
            guard byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") else {
                throw failure("an object is not closed, or a comma is missing in it")
            }
            source.take()
            if byte == UInt8(ascii: "}") { return }
        }
    }

    /// The column for the member whose name was read; `nil` if it is passed over.
    /// - Parameter expected: the column that is likely.
    private mutating func place(_ expected: Int) throws -> Int? {
        let bytes = name.bytes
        var place =
            expected < nameBytes.count && nameBytes[expected].elementsEqual(bytes)
            ? expected : places[Array(bytes)]
        if place == nil {
            if ignoresOthers { return nil }
            let text = String(decoding: bytes, as: UTF8.self)
            guard findsNames, objectCount == 1 || isSurvey else {
                throw failure("no object before has the member \(TerminalText.escaped(text))")
            }
            place = try addColumn(text)
        }
        guard let place else { return nil }
        guard lastObjects[place] != objectCount else { throw failure("a member occurs twice in an object") }
        lastObjects[place] = objectCount
        return place
    }

    private mutating func addColumn(_ text: String) throws -> Int {
        guard !text.isEmpty else { throw failure("a member has an empty name") }
        guard names.count < JSONReader.maximumColumnCount else {
            throw failure("there are more than \(names.count) members, and SQLite takes so many columns")
        }
        // Like SQLite, this compares names without regard to the case of ASCII letters.
        if let other = names.first(where: { ExactText(name: $0) == ExactText(name: text) }) {
            throw failure(
                "the members \(TerminalText.escaped(other)) and \(TerminalText.escaped(text)) are one column to SQLite"
            )
        }
        names.append(text)
        nameBytes.append(Array(text.utf8))
        places[Array(text.utf8)] = names.count - 1
        lastObjects.append(0)
        record.fill(names.count)
        return names.count - 1
    }

    // MARK: Values

    private mutating func readValue(_ place: Int) throws {
        switch try source.peek() {
        case JSONReader.quote:
            try readString(into: record.content)
            record.endField(.text, at: place)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            try copyValue(into: record.content, depth: 0)
            record.endField(endsInBytes() ?? .text, at: place)
        case UInt8(ascii: "t"):
            try readWord("true")
            record.append(UInt8(ascii: "1"))
            record.endField(.integer, at: place)
        case UInt8(ascii: "f"):
            try readWord("false")
            record.append(UInt8(ascii: "0"))
            record.endField(.integer, at: place)
        case UInt8(ascii: "n"):
            try readWord("null")
            record.endField(.null, at: place)
        default:
            record.endField(try readNumber(into: record.content) ? .integer : .real, at: place)
        }
    }

    private mutating func readWord(_ word: StaticString) throws {
        for index in 0..<word.utf8CodeUnitCount {
            guard try source.peek() == word.utf8Start[index] else { throw failure("a value is none of JSON's") }
            source.take()
        }
    }

    /// - Returns: whether it has neither a point nor an exponent.
    private mutating func readNumber(into target: ByteBuffer) throws -> Bool {
        let start = target.count
        while let byte = try source.peek(),
            JSONReader.isDigit(byte) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains(byte)
        {
            target.add(byte)
            source.take()
            try requireRoom(in: target)
        }
        let bytes = UnsafeRawBufferPointer(rebasing: target.bytes[start...])
        guard let isInteger = JSONReader.form(bytes) else { throw failure("a value is none of JSON's") }
        return isInteger
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Whether a number of JSON is an integer; `nil` if it is no number. SQLite has no integer of minus zero.
    private static func form(_ bytes: UnsafeRawBufferPointer) -> Bool? {
        var rest = bytes[...]
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest = rest.dropFirst() }
        let whole = rest.prefix(while: isDigit)
        guard let first = whole.first, whole.count == 1 || first != UInt8(ascii: "0") else { return nil }
        rest = rest.dropFirst(whole.count)
        if rest.isEmpty { return !(isNegative && first == UInt8(ascii: "0")) }
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest.dropFirst(fraction.count + 1)
        }
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
            guard !rest.isEmpty, rest.allSatisfy(isDigit) else { return nil }
            rest = rest[rest.endIndex...]
        }
        return rest.isEmpty ? false : nil
    }

    /// Copies a value as it is, without the blanks between its parts.
    private mutating func copyValue(into target: ByteBuffer, depth: Int) throws {
        guard depth < JSONReader.maximumDepth else { throw failure("values lie within one another too deeply") }
        guard let byte = try source.peek() else { throw failure("an object is not closed") }
        let close: UInt8
        switch byte {
        case JSONReader.quote: return try copyString(into: target)
        case UInt8(ascii: "t"): return try copyWord("true", into: target)
        case UInt8(ascii: "f"): return try copyWord("false", into: target)
        case UInt8(ascii: "n"): return try copyWord("null", into: target)
        case UInt8(ascii: "{"): close = UInt8(ascii: "}")
        case UInt8(ascii: "["): close = UInt8(ascii: "]")
        default:
            _ = try readNumber(into: target)
            return
        }
        source.take()
        target.add(byte)
        try skipBlanks()
        if try source.peek() != close {
            while true {
                try skipBlanks()
                if close == UInt8(ascii: "}") {
                    guard try source.peek() == JSONReader.quote else {
                        throw failure("a member has no name in quotes")
                    }
                    try copyString(into: target)
                    try expect(UInt8(ascii: ":"), "a colon is missing behind the name of a member")
                    target.add(UInt8(ascii: ":"))
                    try skipBlanks()
                }
                try copyValue(into: target, depth: depth + 1)
                try skipBlanks()
                guard try source.peek() == UInt8(ascii: ",") else { break }
                source.take()
                target.add(UInt8(ascii: ","))
                try requireRoom(in: target)
            }
        }
        guard try source.peek() == close else { throw failure("an array or object is not closed") }
        source.take()
        target.add(close)
    }

    private mutating func copyWord(_ word: StaticString, into target: ByteBuffer) throws {
        try readWord(word)
        target.add(word)
    }

    /// Replaces an object of one member that stands for bytes by those.
    /// - Returns: `nil` if it is another value.
    private func endsInBytes() -> ImportedRecord.Kind? {
        let value = record.openField
        for (prefix, kind) in [("{\"$blob\":\"", ImportedRecord.Kind.blob), ("{\"$text\":\"", .text)] {
            guard value.starts(with: prefix.utf8), value.count >= prefix.utf8.count + 2,
                value[(value.count - 2)...].elementsEqual("\"}".utf8),
                let bytes = Base64.bytes(UnsafeRawBufferPointer(rebasing: value[prefix.utf8.count..<value.count - 2]))
            else { continue }
            let start = record.content.count - record.openFieldCount
            record.content.remove(after: start)
            bytes.withUnsafeBytes { record.append($0) }
            return kind
        }
        return nil
    }

    // MARK: Strings

    /// Reads a string, and adds what it says.
    private mutating func readString(into target: ByteBuffer) throws {
        let start = target.count
        source.take()
        while true {
            source.takeRun(into: target) { $0 == JSONReader.quote || $0 == JSONReader.backslash || $0 < 0x20 }
            try requireRoom(in: target)
            guard let byte = try source.peek() else { throw failure("a string is not closed") }
            switch byte {
            case JSONReader.quote:
                source.take()
                guard UnsafeRawBufferPointer(rebasing: target.bytes[start...]).isUTF8 else {
                    throw failure("a string is not valid UTF-8")
                }
                return
            case JSONReader.backslash:
                source.take()
                try readEscape(into: target)
            // The run ended with the buffer.
            case 0x20...: continue
            default: throw failure("a control character is in a string; JSON has escapes for them")
            }
        }
    }

    private mutating func readEscape(into target: ByteBuffer) throws {
        guard let byte = try source.peek() else { throw failure("a string is not closed") }
        source.take()
        switch byte {
        case JSONReader.quote, JSONReader.backslash, UInt8(ascii: "/"): target.add(byte)
        case UInt8(ascii: "b"): target.add(0x08)
        case UInt8(ascii: "f"): target.add(0x0c)
        case UInt8(ascii: "n"): target.add(0x0a)
        case UInt8(ascii: "r"): target.add(0x0d)
        case UInt8(ascii: "t"): target.add(0x09)
        case UInt8(ascii: "u"):
            var code = try readUnit()
            if (0xd800...0xdbff).contains(code) {
                for byte in [JSONReader.backslash, UInt8(ascii: "u")] {
                    guard try source.peek() == byte else { throw failure("half of a character is missing in a string") }
                    source.take()
                }
                let low = try readUnit()
                guard (0xdc00...0xdfff).contains(low) else {
                    throw failure("half of a character is missing in a string")
                }
                code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw failure("half of a character is missing in a string") }
            for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { target.add(byte) }
        default: throw failure("a string has an escape that JSON does not have")
        }
    }

    private mutating func readUnit() throws -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = try source.peek(), let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80
            else { throw failure("a string has an escape that JSON does not have") }
            source.take()
            code = code << 4 | UInt32(digit)
        }
        return code
    }

    /// Copies a string with its quotes and escapes.
    private mutating func copyString(into target: ByteBuffer) throws {
        let start = target.count
        source.take()
        target.add(JSONReader.quote)
        while true {
            source.takeRun(into: target) { $0 == JSONReader.quote || $0 == JSONReader.backslash || $0 < 0x20 }
            try requireRoom(in: target)
            guard let byte = try source.peek() else { throw failure("a string is not closed") }
            switch byte {
            case JSONReader.quote:
                source.take()
                target.add(byte)
                guard UnsafeRawBufferPointer(rebasing: target.bytes[start...]).isUTF8 else {
                    throw failure("a string is not valid UTF-8")
                }
                return
            case JSONReader.backslash:
                source.take()
                target.add(byte)
                guard let escaped = try source.peek(), "\"\\/bfnrtu".utf8.contains(escaped) else {
                    throw failure("a string has an escape that JSON does not have")
                }
                source.take()
                target.add(escaped)
                guard escaped == UInt8(ascii: "u") else { continue }
                for _ in 0..<4 {
                    guard let digit = try source.peek(),
                        (0x30...0x39).contains(digit) || (0x61...0x66).contains(digit | 0x20)
                    else {
                        throw failure("\\u in a string is not followed by four hexadecimal digits")
                    }
                    source.take()
                    target.add(digit)
                }
            case 0x20...: continue
            default: throw failure("a control character is in a string; JSON has escapes for them")
            }
        }
    }
}
