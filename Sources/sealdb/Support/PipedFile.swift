import Foundation

/// A file that stands for standard input or output where a command needs one that can be read in any order. It lies in a
/// new directory that only this user may enter, and goes with it. Only encrypted stores go through it.
final class PipedFile {
    let path: String
    private let directory: String

    /// Whether an argument means standard input or output.
    static func isMeant(by argument: String) -> Bool { argument.isSame(as: "-") }

    init() throws(Failure) {
        var template = Array((NSTemporaryDirectory() + "sealdb-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(
                .cannotCreate,
                "Cannot make a directory in \(NSTemporaryDirectory()): \(String(cString: strerror(errno)))."
            )
        }
        directory = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        path = directory + "/store"
    }

    deinit { remove() }

    /// What cannot be removed stays in the directory for temporary files, encrypted.
    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    /// Fills the file with all of standard input.
    func readInput() throws(Failure) {
        let input = try InputFile(path: "-")
        let file = try ResultOutput(newFile: path)
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = try input.read(into: &buffer)
            if count == 0 { break }
            try file.write(buffer[..<count])
        }
        try file.close()
    }

    /// Writes the file to standard output.
    func writeOutput() throws(Failure) {
        let file = try InputFile(path: path)
        let output = ResultOutput(endsWithReader: false)
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = try file.read(into: &buffer)
            if count == 0 { break }
            try output.write(buffer[..<count])
        }
        try output.flush()
    }

    /// Fails where bytes would go to a terminal.
    static func requireNoTerminal() throws(Failure) {
        guard !ResultOutput.isTerminal else {
            throw Failure(.usage, "Standard output is a terminal, and a database is no text. Nothing was done.")
        }
    }
}
