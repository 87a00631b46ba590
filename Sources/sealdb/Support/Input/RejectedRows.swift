import CSealedDBSystem
import Foundation

/// The file of the rows that an import could not store, in the form in which it read them.
final class RejectedRows {
    let path: String
    private(set) var count = 0
    private let descriptor: Int32
    private let format: DelimitedFormat
    private let style: DelimitedStyle
    private var buffer: [UInt8] = []
    private var isKept = false
    private static let capacity = 64 * 1024

    /// - Throws: ``Failure`` if the file exists, or cannot be made.
    init(path: String, format: DelimitedFormat, style: DelimitedStyle) throws(Failure) {
        (self.path, self.format, self.style) = (path, format, style)
        descriptor = sealeddb_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                .cannotCreate,
                "Cannot create \(path): \(String(cString: strerror(errno))). Nothing was done."
            )
        }
    }

    deinit {
        // The result does not matter: what is kept was synced, and the rest is removed.
        close(descriptor)
        if !isKept { unlink(path) }
    }

    func add(_ record: DelimitedRecord) throws(Failure) {
        count += 1
        try write(record)
    }

    func write(_ record: DelimitedRecord) throws(Failure) {
        for index in 0..<record.fieldCount {
            if index > 0 { buffer.append(format == .csv ? style.delimiter : UInt8(ascii: "\t")) }
            if record.isNull(at: index) {
                buffer += style.null ?? Array("\\N".utf8)
            } else {
                append(record.bytes(at: index))
            }
        }
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= RejectedRows.capacity { try flush() }
    }

    private func append(_ field: ArraySlice<UInt8>) {
        switch format {
        case .csv:
            let special = [UInt8(ascii: "\""), style.delimiter, 0x0a, 0x0d]
            guard field.contains(where: { special.contains($0) }) || style.null.map(field.elementsEqual) == true else {
                buffer += field
                return
            }
            buffer.append(UInt8(ascii: "\""))
            for byte in field { buffer += byte == UInt8(ascii: "\"") ? [byte, byte] : [byte] }
            buffer.append(UInt8(ascii: "\""))
        case .tsv: buffer += DelimitedWriter.escaped(field)
        }
    }

    /// Sees to it that the rows outlast a power failure; without any there is no file.
    func finish() throws(Failure) {
        guard count > 0 else { return }
        try flush()
        let directory = sealeddb_open(path.directoryOfPath, O_RDONLY | O_DIRECTORY, 0)
        // The result does not matter: nothing was written through this descriptor.
        defer { if directory >= 0 { close(directory) } }
        guard fsync(descriptor) == 0, directory >= 0, fsync(directory) == 0 else { throw failure() }
        isKept = true
    }

    /// Removes the file, because nothing was imported after all.
    func discard() { isKept = false }

    private func flush() throws(Failure) {
        defer { buffer.removeAll(keepingCapacity: true) }
        var rest = buffer[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw failure() }
            rest = rest.dropFirst(written)
        }
    }

    private func failure() -> Failure {
        Failure(.inputOutput, "Cannot write \(path): \(String(cString: strerror(errno))). Nothing was imported.")
    }
}
