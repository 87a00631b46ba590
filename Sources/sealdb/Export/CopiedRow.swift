import SealedDB

/// Rows in the binary form of PostgreSQL's COPY, in which a value has one form alone.
/// https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.4
enum CopiedRow {
    static let header: [UInt8] = Array("PGCOPY\n".utf8) + [0xff, 0x0d, 0x0a, 0] + Array(repeating: 0, count: 8)
    static let trailer: [UInt8] = [0xff, 0xff]

    static func begin(_ count: Int, in buffer: ByteBuffer) { buffer.add(bigEndian: Int16(count)) }

    /// - Returns: whether the type holds the value.
    static func add(_ value: ExportedValue, as type: TargetType, to buffer: ByteBuffer) -> Bool {
        switch (type, value) {
        case (_, .null): buffer.add(bigEndian: Int32(-1))
        case (.bigint, .integer(let number)): add(bigEndian: number, to: buffer)
        case (.double, .integer(let number)): add(bigEndian: Double(number).bitPattern, to: buffer)
        case (.double, .real(let number)): add(bigEndian: number.bitPattern, to: buffer)
        case (.boolean, .integer(let number)): add(bigEndian: Int8(truncatingIfNeeded: number), to: buffer)
        case (.numeric(let limits), .integer(let number)): DecimalForm(number).add(to: buffer, limits: limits)
        case (.numeric(let limits), .real(let number)) where number.isFinite:
            DecimalForm(number).add(to: buffer, limits: limits)
        case (.date, .text(let bytes)):
            guard let date = DateForm(bytes) else { return false }
            add(bigEndian: Int32(date.days), to: buffer)
        case (.timestamp, .text(let bytes)), (.timestampWithZone, .text(let bytes)):
            guard let date = DateForm(bytes) else { return false }
            add(bigEndian: date.microseconds, to: buffer)
        case (.text, .text(let bytes)), (.bytea, .text(let bytes)), (.bytea, .brokenText(let bytes)),
            (.bytea, .blob(let bytes)):
            buffer.add(bigEndian: Int32(bytes.count))
            buffer.add(bytes)
        case (.text, .integer(let number)), (.bytea, .integer(let number)): add(String(number), to: buffer)
        case (.text, .real(let number)), (.bytea, .real(let number)): add(text(of: number), to: buffer)
        default: return false
        }
        return true
    }

    /// The shortest text from which both SQLite and PostgreSQL read the same number.
    private static func text(of number: Double) -> String {
        number.isFinite ? number.description : number < 0 ? "-Infinity" : "Infinity"
    }

    private static func add(bigEndian value: some FixedWidthInteger, to buffer: ByteBuffer) {
        buffer.add(bigEndian: Int32(value.bitWidth / 8))
        buffer.add(bigEndian: value)
    }

    private static func add(_ text: String, to buffer: ByteBuffer) {
        buffer.add(bigEndian: Int32(text.utf8.count))
        buffer.add(text)
    }
}

/// Finds the rows in what PostgreSQL sends for COPY TO STDOUT in binary form, in whatever parts it comes.
struct CopiedRows {
    private var rest: [UInt8] = []
    private var hasHeader = false
    private(set) var isComplete = false

    /// Calls `body` with the bytes of each row that is complete.
    mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard !rest.isEmpty else {
            let used = try take(bytes, body)
            rest = Array(bytes[used...])
            return
        }
        var all = rest
        all += bytes
        let used = try all.withUnsafeBytes { try take($0, body) }
        rest = Array(all[used...])
    }

    /// - Returns: how many bytes were whole rows.
    private mutating func take(
        _ bytes: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        var position = 0
        if !hasHeader {
            guard bytes.count >= CopiedRow.header.count else { return 0 }
            guard bytes.starts(with: CopiedRow.header) else { throw CopiedRows.malformed }
            (position, hasHeader) = (CopiedRow.header.count, true)
        }
        while let end = try end(ofRowAt: position, in: bytes) {
            try body(UnsafeRawBufferPointer(rebasing: bytes[position..<end]))
            position = end
        }
        return position
    }

    /// - Returns: `nil` if the row is not whole, or if there are no more.
    private mutating func end(ofRowAt start: Int, in bytes: UnsafeRawBufferPointer) throws -> Int? {
        guard bytes.count - start >= 2 else { return nil }
        let count = Int16(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int16.self))
        guard count >= 0 else {
            // Nothing follows the end.
            guard count == -1, !isComplete, bytes.count - start == 2 else { throw CopiedRows.malformed }
            isComplete = true
            return nil
        }
        var position = start + 2
        for _ in 0..<count {
            guard bytes.count - position >= 4 else { return nil }
            let length = Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: Int32.self))
            guard length >= -1 else { throw CopiedRows.malformed }
            position += 4 + max(0, Int(length))
            guard position <= bytes.count else { return nil }
        }
        return position
    }

    private static var malformed: Failure {
        Failure(.software, "PostgreSQL sent rows in a form that sealdb does not know.")
    }
}
