/// Lines of names and values, in which the objects of a repository say what they are. The last line has the digest of those
/// before it.
///
/// What is not known is passed over, so that later versions may add lines; another version in the title is refused.
struct ObjectText {
    private let title: String
    private var lines: [(name: String, value: String)] = []
    /// What messages call the object that was read.
    private let object: String
    /// How many bytes were read.
    private(set) var byteCount = 0

    private static let digestName = "sha256"
    /// Longer ones are not believed: a snapshot of 10^9 pages has 280 MB of lines.
    private static let mostBytes = 1 << 29

    init(title: String) {
        self.title = title
        object = title
    }

    mutating func add(_ name: String, _ value: some CustomStringConvertible) { lines.append((name, value.description)) }

    /// The bytes of the lines, with their digest.
    func sealed() throws(DatabaseError) -> [UInt8] {
        var bytes = Array("\(title)\n".utf8)
        for line in lines { bytes += Array("\(line.name): \(line.value)\n".utf8) }
        let digest = try ObjectDigest.of(bytes)
        return bytes + Array("\(ObjectText.digestName): \(digest)\n".utf8)
    }

    /// Reads the lines up to that of the digest, and checks it. Bytes may follow.
    /// - Parameter object: what messages call it.
    init(parsing bytes: [UInt8], title: String, of object: String) throws(DatabaseError) {
        self.title = title
        self.object = object
        let newline = UInt8(ascii: "\n")
        var start = 0
        var isTitle = true
        while start < bytes.count, start < ObjectText.mostBytes {
            guard let end = bytes[start...].firstIndex(of: newline) else { break }
            let line = String(decoding: bytes[start..<end], as: UTF8.self)
            if isTitle {
                guard ExactText(line) == ExactText(title) else {
                    throw .damagedObject(object, "it should begin with “\(title)”")
                }
                isTitle = false
            } else {
                guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")),
                    line.utf8[colon...].prefix(2).elementsEqual(": ".utf8)
                else { break }
                let name = String(decoding: line.utf8[..<colon], as: UTF8.self)
                let value = String(decoding: line.utf8[colon...].dropFirst(2), as: UTF8.self)
                if name.utf8.elementsEqual(ObjectText.digestName.utf8) {
                    guard try value.utf8.elementsEqual(ObjectDigest.of(bytes[..<start]).utf8) else {
                        throw .damagedObject(object, "its lines are not those that were written")
                    }
                    byteCount = end + 1
                    return
                }
                lines.append((name, value))
            }
            start = end + 1
        }
        throw .damagedObject(object, "it is cut off")
    }

    // MARK: Values

    func values(_ name: String) -> [String] {
        lines.filter { $0.name.utf8.elementsEqual(name.utf8) }.map(\.value)
    }

    func value(_ name: String) throws(DatabaseError) -> String {
        guard let value = lines.first(where: { $0.name.utf8.elementsEqual(name.utf8) })?.value else {
            throw missing(name)
        }
        return value
    }

    /// The value; `nil` if it is the sign for none.
    func optional(_ name: String) throws(DatabaseError) -> String? {
        let value = try value(name)
        return value.utf8.elementsEqual("-".utf8) ? nil : value
    }

    func number(_ name: String, in range: ClosedRange<Int64> = 0...Int64.max) throws(DatabaseError) -> Int64 {
        guard let number = Int64(try value(name)), range.contains(number) else { throw missing(name) }
        return number
    }

    func time(_ name: String) throws(DatabaseError) -> RepositoryTime {
        guard let time = RepositoryTime(try value(name)) else { throw missing(name) }
        return time
    }

    func bytes(_ name: String, count: Int) throws(DatabaseError) -> [UInt8] {
        guard let bytes = ObjectText.bytes(hex: try value(name)), bytes.count == count else { throw missing(name) }
        return bytes
    }

    func digest(_ name: String) throws(DatabaseError) -> String {
        let value = try value(name)
        guard ObjectDigest.isOne(value) else { throw missing(name) }
        return value
    }

    func missing(_ name: String) -> DatabaseError {
        .damagedObject(object, "its “\(name)” is missing or no such value")
    }

    /// A text as it can stand in a line: what controls a terminal or ends a line is written as `%0A`.
    static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte < 0x20 || byte == 0x7f || byte == UInt8(ascii: "%") {
                bytes += Array("%\(Hexadecimal.string([byte]))".utf8)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func unescaped(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.value),
                let low = rest.popFirst().flatMap(Hexadecimal.value)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    static func bytes(hex text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Hexadecimal.value(of: digits[index]), let low = Hexadecimal.value(of: digits[index + 1])
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

/// SHA-256 of an object, in hex digits.
enum ObjectDigest {
    static func of(_ bytes: some Collection<UInt8>) throws(DatabaseError) -> String {
        let hash = try SHA256Hash()
        let updated = bytes.withContiguousStorageIfAvailable { bytes in
            Result { () throws(DatabaseError) in try hash.update(UnsafeRawBufferPointer(bytes)) }
        }
        if let updated { try updated.get() } else { return try of(Array(bytes)) }
        return Hexadecimal.string(try hash.value())
    }

    static func isOne(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}
