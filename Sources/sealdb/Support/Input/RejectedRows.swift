import CSealedDBSystem
import Foundation

/// The file of the rows that an import could not store, in the form in which it read them.
final class RejectedRows {
    let path: String
    private(set) var count = 0
    private let descriptor: Int32
    private let format: ImportFormat
    private let style: DelimitedStyle
    private let buffer = ByteBuffer(capacity: RejectedRows.capacity + 4096)
    private var isKept = false
    private var isEmpty = true
    private static let capacity = 64 * 1024

    /// Fails early, before a key is asked for. The file is only made when a signal no longer ends the process at once.
    static func requireAbsent(_ path: String) throws(Failure) {
        try Store.requireNoPart(path)
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        throw Failure(.cannotCreate, "Cannot create \(path): \(String(cString: strerror(EEXIST))). Nothing was done.")
    }

    /// - Throws: ``Failure`` if the file exists, or cannot be made.
    convenience init(path: String, format: ImportFormat, style: DelimitedStyle) throws(Failure) {
        try Store.requireNoPart(path)
        // Before there is an object, whose end would remove the file: one that exists is somebody else's.
        let descriptor = sealeddb_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                .cannotCreate,
                "Cannot create \(path): \(String(cString: strerror(errno))). Nothing was done."
            )
        }
        self.init(made: descriptor, path, format, style)
    }

    private init(made descriptor: Int32, _ path: String, _ format: ImportFormat, _ style: DelimitedStyle) {
        (self.descriptor, self.path, self.format, self.style) = (descriptor, path, format, style)
    }

    deinit {
        // A file that cannot be removed holds rows that are all in the input.
        if !isKept, isNamed { unlink(path) }
        // The result does not matter: what is kept was synced.
        close(descriptor)
    }

    /// Whether the name is still that of the file that was made here.
    private var isNamed: Bool {
        var (own, named) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, lstat(path, &named) == 0 else { return false }
        return own.st_dev == named.st_dev && own.st_ino == named.st_ino
    }

    /// - Parameter text: the row as it stands in the file, if that is JSON.
    func add(_ record: ImportedRecord, _ text: UnsafeRawBufferPointer?) throws(Failure) {
        count += 1
        guard let text else { return try write(record) }
        // An object may stand on several lines. Between its tokens, a blank is as good as a line break, and there is none
        // within them.
        for byte in text {
            let isBreak = byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
            buffer.add(isBreak ? UInt8(ascii: " ") : byte)
        }
        try endLine()
    }

    /// Writes a row of CSV or TSV.
    func write(_ record: ImportedRecord) throws(Failure) {
        let start = buffer.count
        for index in 0..<record.fieldCount {
            if index == 1 { keepMark(from: start) }
            if index > 0 { buffer.add(format == .csv ? style.delimiter : UInt8(ascii: "\t")) }
            if record.isNull(at: index) {
                let mark = style.null ?? (format == .csv ? [] : DelimitedReader.nullOfTSV)
                mark.withUnsafeBytes { buffer.add($0) }
            } else if format != .csv {
                DelimitedWriter.addEscaped(record.bytes(at: index), to: buffer)
            } else if record.kind(at: index) == .quoted {
                DelimitedWriter.addInQuotes(record.bytes(at: index), to: buffer)
            } else {
                DelimitedWriter.addQuoted(
                    record.bytes(at: index),
                    delimiter: style.delimiter,
                    null: style.null ?? [],
                    to: buffer
                )
            }
        }
        if record.fieldCount == 1 { keepMark(from: start) }
        try endLine()
    }

    /// Doubles a byte order mark at the beginning of the file, of which readers take the first for none of the text.
    private func keepMark(from start: Int) {
        let mark = DelimitedReader.byteOrderMark
        guard isEmpty, buffer.bytes[start...].starts(with: mark) else { return }
        let field = Array(buffer.bytes[start...])
        buffer.remove(after: start)
        for part in [mark, field] { part.withUnsafeBytes { buffer.add($0) } }
    }

    private func endLine() throws(Failure) {
        isEmpty = false
        buffer.add(UInt8(ascii: "\n"))
        if buffer.count >= RejectedRows.capacity { try flush() }
    }

    /// Sees to it that the rows outlast a power failure; without any there is no file.
    ///
    /// The file then stays, also if the commit that follows fails: such a failure may leave open whether the others are
    /// stored.
    func finish() throws(Failure) {
        guard count > 0 else { return }
        try flush()
        guard fsync(descriptor) == 0 else { throw failure() }
        try synchronizeDirectory(of: path, orSay: "Nothing was imported.")
        isKept = true
    }

    private func flush() throws(Failure) {
        defer { buffer.removeAll() }
        var rest = buffer.bytes
        while !rest.isEmpty {
            let written = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw failure() }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }

    private func failure() -> Failure {
        Failure(.inputOutput, "Cannot write \(path): \(String(cString: strerror(errno))). Nothing was imported.")
    }
}
