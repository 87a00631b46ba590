import CSealedDBSystem
import Foundation
import Synchronization

/// Buffered output, to standard output or a new file, that reports failures: a full disk must not look like a complete
/// result.
final class ResultOutput {
    /// Whether standard output is one.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    private var descriptor = STDOUT_FILENO
    /// What is not written yet. Whoever adds to it ends each row with ``endRow()``.
    let buffer = ByteBuffer(capacity: ResultOutput.limit + 4096)
    /// From so many bytes on they are written.
    private static let limit = 64 * 1024
    /// Whether everything stays in memory until ``flush()``.
    var isHeld = false

    private var hasWritten = false

    /// Whether nothing was added to it before.
    var isEmpty: Bool { !hasWritten && buffer.count == 0 }

    /// Forgets what is held.
    func drop() { buffer.removeAll() }

    /// How many bytes are held.
    var heldCount: Int { buffer.count }

    /// Forgets what is held behind so many bytes.
    func drop(after count: Int) { buffer.remove(after: count) }

    private let endsWithReader: Bool
    /// Whether people see it: then nothing in it may control the terminal.
    private let isShown: Bool

    /// - Parameter endsWithReader: whether the process ends by SIGPIPE, like other tools in a pipe, when the reader has
    ///   gone. If false, that is a failure.
    init(endsWithReader: Bool = true) {
        self.endsWithReader = endsWithReader
        isShown = ResultOutput.isTerminal
    }

    /// Writes to a file that does not exist yet, which only its owner may read.
    init(newFile path: String) throws(Failure) {
        endsWithReader = false
        isShown = false
        descriptor = sealeddb_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                .cannotCreate,
                "Cannot make \(path): \(String(cString: strerror(errno))). Nothing was written."
            )
        }
    }

    /// Writes what is left to the file, and closes it.
    func close() throws(Failure) {
        guard descriptor > STDOUT_FILENO else { return try flush() }
        let file = descriptor
        defer { descriptor = -1 }
        do throws(Failure) {
            try flush()
        } catch {
            // The first failure is the one to tell.
            _ = Foundation.close(file)
            throw error
        }
        // A file system may tell only now that it could not write.
        guard Foundation.close(file) == 0 else { throw ResultOutput.failure(errno) }
    }

    func write(_ text: String) throws(Failure) {
        buffer.add(text)
        try endRow()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        buffer.add(bytes)
        try endRow()
    }

    /// Writes what was added to the buffer, if it is much. Call it only where no character is cut in two.
    @inline(__always)
    func endRow() throws(Failure) {
        if buffer.count >= ResultOutput.limit, !isHeld { try flush() }
    }

    private static func failure(_ number: Int32) -> Failure {
        let reason = String(cString: strerror(number))
        return Failure(
            .inputOutput,
            "Cannot write the result: \(reason). What the command has stored stays stored."
        )
    }

    func flush() throws(Failure) {
        defer { buffer.removeAll() }
        hasWritten = hasWritten || buffer.count > 0
        guard isShown else { return try flush(buffer.bytes) }
        // On a terminal, bytes that are no text cannot be seen in any case.
        var text = TerminalText.shown(String(decoding: buffer.bytes, as: UTF8.self))
        let result = text.withUTF8 { bytes in
            Result { () throws(Failure) in try flush(UnsafeRawBufferPointer(bytes)) }
        }
        try result.get()
    }

    private func flush(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            let written = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if written >= 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest[written...])
            } else if errno == EPIPE, endsWithReader {
                // If the process was started with SIGPIPE blocked, this does not end it.
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
                throw Self.failure(EPIPE)
            } else if errno != EINTR {
                throw Self.failure(errno)
            }
        }
    }

    /// Writes one value as one line of JSON.
    func writeJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The encoder does not escape all characters that control a terminal. They occur only within strings.
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        try write(TerminalText.escapedInJSON(text) + "\n")
    }
}

/// Unbuffered standard error, for people. If it cannot be written to, the failure is ignored.
enum StandardError {
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    private static let writesJSON = Atomic(false)

    /// From now on each message is an object on a line of its own.
    static func startJSON() { writesJSON.store(true, ordering: .relaxed) }

    private struct Message: Encodable {
        let kind = "message"
        let message: String
    }

    /// How urgent a message is, as in syslog(3).
    enum Priority: Int32 {
        case error = 3
        case warning = 4
        case notice = 5
        case information = 6
    }

    /// Whether standard error is the journal of systemd, which takes the priority of a line from its beginning. See
    /// sd-daemon(3) and, for the variable, systemd.exec(5).
    private static let isJournal: Bool = {
        guard let stream = ProcessInfo.processInfo.environment["JOURNAL_STREAM"] else { return false }
        var status = stat()
        return fstat(STDERR_FILENO, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
    }()

    /// - Parameter priority: for the journal.
    static func message(_ message: String, _ priority: Priority = .error) {
        let text = GivenKeys.hidden(in: message)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // A text can always be encoded.
        if writesJSON.load(ordering: .relaxed), let line = try? encoder.encode(Message(message: text)) {
            return write(TerminalText.escapedInJSON(String(decoding: line, as: UTF8.self)) + "\n")
        }
        let escaped = TerminalText.escaped(text, keepingNewlines: true)
        // A file's name with line breaks must not look like a message of its own.
        let lines = "sealdb: " + escaped.parts(between: "\n").joined(separator: "\n  ")
        guard isJournal else { return write(lines + "\n") }
        // The journal takes each line for a message of its own.
        write(lines.parts(between: "\n").map { "<\(priority.rawValue)>\($0)\n" }.joined())
    }

    static func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if written < 0 && errno == EINTR { continue }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}

/// Makes text from data or file names safe to show, so that it cannot control the terminal.
enum TerminalText {
    static func escaped(_ text: String, keepingNewlines: Bool = false) -> String {
        guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n" where keepingNewlines: result += "\n"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case _ where isUnsafe(scalar): result += "\\u{" + String(scalar.value, radix: 16) + "}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// A result as it is shown: in its form, but without what would control the terminal.
    static func shown(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { isUnsafe($0) && $0 != "\n" && $0 != "\t" }) else { return text }
        let lines = text.parts(between: "\n").map { line in
            line.parts(between: "\t").map { escaped(String($0)) }.joined(separator: "\t")
        }
        return lines.joined(separator: "\n")
    }

    /// The number of columns that a text takes on a terminal: two for most characters of East Asia and for emoji.
    static func width(of text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        // Whether there is such a locale does not matter here.
        _ = hasLocale
        return text.reduce(0) { width, character in
            // What is joined to one character takes no columns of its own.
            width + max(1, character.unicodeScalars.map { Int(sealeddb_scalar_columns($0.value)) }.max() ?? 1)
        }
    }

    /// The system knows characters only in a locale of UTF-8. If there is none, each counts as one column.
    private static let hasLocale = setlocale(LC_CTYPE, "C.UTF-8") != nil

    /// The same for JSON text on a single line.
    static func escapedInJSON(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            guard isUnsafe(scalar) else { return result.unicodeScalars.append(scalar) }
            let digits = String(scalar.value, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Whether this is a C0 or C1 control character, a line or paragraph separator, or a mark that changes the
    /// direction of text.
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0, 0x202a...0x202e, 0x2028...0x2029, 0x2066...0x2069: true
        default: false
        }
    }
}
