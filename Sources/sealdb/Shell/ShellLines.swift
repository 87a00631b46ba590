import CSealedDBEditline
import Foundation

/// Where the shell gets its lines from.
protocol ShellLines: AnyObject {
    /// The name of the file, for messages; `nil` for a person.
    var name: String? { get }
    func next(prompt: String) throws -> ShellLine
}

enum ShellLine {
    /// Without its newline.
    case text(String)
    /// Ctrl-C was pressed.
    case interrupted
    case end
}

/// Lines of a file or pipe, or of a terminal without an editor.
final class PlainLines: ShellLines {
    let name: String?
    private let file: InputFile
    private let showsPrompt: Bool
    private var buffer: [UInt8] = []
    private var position = 0
    private var isAtEnd = false

    /// - Parameter isTyped: whether a person types the lines.
    init(_ file: InputFile, isTyped: Bool = false) {
        self.file = file
        name = isTyped ? nil : file.name
        showsPrompt = isTyped
    }

    func next(prompt: String) throws -> ShellLine {
        if showsPrompt { StandardError.write(prompt) }
        var line: [UInt8] = []
        do {
            while true {
                if let newline = buffer[position...].firstIndex(of: UInt8(ascii: "\n")) {
                    line += buffer[position..<newline]
                    position = newline + 1
                    return .text(try text(line))
                }
                line += buffer[position...]
                position = 0
                if !isAtEnd {
                    buffer = [UInt8](repeating: 0, count: 64 * 1024)
                    let count = try file.read(into: &buffer)
                    buffer.removeLast(buffer.count - count)
                    isAtEnd = count == 0
                } else {
                    buffer = []
                }
                if isAtEnd {
                    guard try file.isUnchanged() else {
                        throw Failure(.inputOutput, "\(file.name) was changed while it was read.")
                    }
                    return line.isEmpty ? .end : .text(try text(line))
                }
            }
        } catch let error as Failure where error.status == .interrupted && showsPrompt {
            (buffer, position) = ([], 0)
            return .interrupted
        }
    }

    private func text(_ line: [UInt8]) throws(Failure) -> String {
        // https://man7.org/linux/man-pages/man3/termios.3.html
        guard !showsPrompt || line.count < 4095 else {
            throw Failure(.data, "The terminal cuts lines of more than 4095 bytes. Put it into a file, and use .read.")
        }
        guard let text = String(validating: line, as: UTF8.self) else {
            throw Failure(.data, "A line of \(file.name) is not UTF-8.")
        }
        guard !line.contains(0) else {
            throw Failure(.data, "A line of \(file.name) holds a NUL, at which SQLite ends.")
        }
        return text
    }
}

/// Lines that a person types and edits.
final class EditedLines: ShellLines {
    var name: String? { nil }
    private let interrupts: ShellInterrupts

    /// What completes words. libedit calls it on the thread that reads lines, and gives it nothing of its own.
    nonisolated(unsafe) private static var completer: ((_ before: String) -> Completion)?

    /// - Parameter completer: gets the line up to the cursor.
    /// - Returns: `nil` if there is no editor for this terminal.
    init?(_ interrupts: ShellInterrupts, historySize: Int, completer: @escaping (String) -> Completion) {
        self.interrupts = interrupts
        EditedLines.completer = completer
        // The editor knows characters only in a locale of UTF-8. Without one it takes ASCII.
        _ = setlocale(LC_CTYPE, "C.UTF-8")
        let hasStarted = sealeddb_editline_start("sealdb", Int32(historySize)) { line, _, cursor in
            let bytes = UnsafeRawBufferPointer(start: line, count: cursor)
            guard let completion = EditedLines.completer?(String(decoding: bytes, as: UTF8.self)) else { return false }
            sealeddb_editline_replace(completion.deletedCount, completion.inserted)
            guard !completion.choices.isEmpty else { return false }
            StandardError.write("\n" + completion.choices)
            return true
        }
        guard hasStarted else { return nil }
    }

    deinit { sealeddb_editline_end() }

    func next(prompt: String) -> ShellLine {
        var line: UnsafePointer<CChar>?
        var length = 0
        switch sealeddb_editline_read(prompt, interrupts.wake, &line, &length) {
        case SEALEDDB_EDITLINE_LINE:
            var text = String(decoding: UnsafeRawBufferPointer(start: line, count: length), as: UTF8.self)
            while text.utf8.last == UInt8(ascii: "\n") || text.utf8.last == UInt8(ascii: "\r") {
                text.unicodeScalars.removeLast()
            }
            return .text(text)
        case SEALEDDB_EDITLINE_INTERRUPTED: return .interrupted
        default: return .end
        }
    }

    func remember(_ line: String) { sealeddb_editline_remember(line) }
}
