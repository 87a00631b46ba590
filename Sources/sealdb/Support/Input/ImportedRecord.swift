import SealedDB

/// Why a file of rows cannot be read, and on which line. The first line is 1.
struct ImportError: Error, Equatable {
    let line: Int
    let reason: String
}

/// One row of a file: the bytes of its fields, and what is known of each. It is reused for the next row, to save
/// allocations.
///
/// Not for several threads at once.
final class ImportedRecord {
    /// What a file says of a field besides its bytes.
    enum Kind {
        /// Only how the bytes are written tells what it is.
        case plain
        /// The same, but in the quotes of CSV.
        case quoted
        case null
        case integer
        case real
        case text
        case blob
    }

    private struct Field {
        var start: Int
        var end: Int
        var kind: Kind
        /// Whether the row has no such field.
        var isMissing = false
    }

    /// The line on which the record begins.
    var line = 1
    /// The bytes of the fields, one after the other.
    let content = ByteBuffer(capacity: 4096)
    /// Not an array, because Swift would check each access to one in a class for exclusivity. That took 8 % of an import of CSV,
    /// which `scripts/measure-command` measures. ``field(_:)`` checks the index instead.
    private var fields: UnsafeMutablePointer<Field>
    private(set) var fieldCount = 0
    private var capacity = 16
    /// Where the field begins that is being read.
    private var openStart = 0

    init() { fields = .allocate(capacity: capacity) }

    deinit { fields.deallocate() }

    /// Number of bytes so far of the field that is being read.
    var openFieldCount: Int { content.count - openStart }

    /// The bytes so far of the field that is being read, until more are added.
    var openField: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: content.bytes[openStart...]) }

    var isBlankLine: Bool { fieldCount == 1 && content.count == 0 && fields[0].kind != .quoted }

    /// The bytes of a field. They are valid until the record is filled anew.
    func bytes(at index: Int) -> UnsafeRawBufferPointer {
        let field = field(index)
        return UnsafeRawBufferPointer(rebasing: content.bytes[field.start..<field.end])
    }

    @inline(__always)
    private func field(_ index: Int) -> Field {
        precondition(index >= 0 && index < fieldCount, "A record has no such field.")
        return fields[index]
    }

    func kind(at index: Int) -> Kind { field(index).kind }

    /// Whether the row, an object of JSON, has no such member.
    func isMissing(at index: Int) -> Bool { field(index).isMissing }

    /// Whether the field stands for NULL, such as `\N`, which PostgreSQL writes.
    func isNull(at index: Int) -> Bool { field(index).kind == .null }

    /// - Throws: ``ImportError`` if the bytes are not UTF-8, with the line on which the first of them is.
    func requireText(at index: Int) throws(ImportError) {
        let field = bytes(at: index)
        guard !field.isUTF8 else { return }
        let end = self.field(index).start + field.validPrefixCount
        let newlines = content.bytes[..<end].count { $0 == UInt8(ascii: "\n") }
        throw ImportError(line: line + newlines, reason: "field \(index + 1) is not valid UTF-8")
    }

    func text(at index: Int) throws(ImportError) -> String {
        try requireText(at: index)
        return String(decoding: bytes(at: index), as: UTF8.self)
    }

    /// Makes sure that all fields are valid UTF-8, without keeping their text.
    func validateText() throws(ImportError) {
        guard !content.bytes.isUTF8 else { return }
        for index in 0..<fieldCount { try requireText(at: index) }
    }

    // MARK: Filling

    func begin(line: Int) {
        self.line = line
        content.removeAll()
        fieldCount = 0
        openStart = 0
    }

    @inline(__always)
    func append(_ byte: UInt8) { content.add(byte) }

    @inline(__always)
    func append(_ bytes: UnsafeRawBufferPointer) { content.add(bytes) }

    func removeLast() { content.remove(after: content.count - 1) }

    @inline(__always)
    func endField(_ kind: Kind) {
        if kind == .null { content.remove(after: openStart) }
        add(Field(start: openStart, end: content.count, kind: kind))
        openStart = content.count
    }

    /// Adds a whole field, which nobody has begun to read.
    @inline(__always)
    func addField(_ bytes: UnsafeRawBufferPointer, _ kind: Kind) {
        content.add(bytes)
        endField(kind)
    }

    @inline(__always)
    private func add(_ field: Field) {
        if fieldCount == capacity { grow() }
        (fields + fieldCount).initialize(to: field)
        fieldCount &+= 1
    }

    @inline(never)
    private func grow() {
        let larger = UnsafeMutablePointer<Field>.allocate(capacity: capacity * 2)
        larger.moveInitialize(from: fields, count: fieldCount)
        fields.deallocate()
        (fields, capacity) = (larger, capacity * 2)
    }

    /// Adds fields that are NULL, up to so many, for a reader that fills them in any order.
    func fill(_ count: Int) {
        while fieldCount < count { add(Field(start: 0, end: 0, kind: .null, isMissing: true)) }
    }

    /// Ends the field that is being read as the one with a number.
    func endField(_ kind: Kind, at index: Int) {
        precondition(index >= 0 && index < fieldCount, "A record has no such field.")
        fields[index] = Field(start: openStart, end: content.count, kind: kind)
        openStart = content.count
    }
}

extension Collection<UInt8> {
    /// Number of bytes at the start that are complete, valid UTF-8 sequences.
    fileprivate var validPrefixCount: Int {
        var decoder = UTF8()
        var iterator = makeIterator()
        var count = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { count += UTF8.width(scalar) }
        return count
    }
}
