import Foundation
import Synchronization

/// A file that stands for standard input or output where a command needs one that can be read in any order. It lies in a
/// new directory that only this user may enter, and goes with it. Only encrypted stores go through it.
final class PipedFile: Sendable {
    let path: String
    private let directory: String
    private let isMade = Atomic(false)

    /// Whether an argument means standard input or output.
    static func isMeant(by argument: String) -> Bool { argument.isSame(as: "-") }

    /// Chooses a name. Nothing is made yet, so that a command that waits for a key leaves nothing when it is ended.
    init() {
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        directory = NSTemporaryDirectory() + "sealdb-" + String((0..<10).map { _ in letters.randomElement()! })
        path = directory + "/store"
    }

    /// Makes the directory.
    func prepare() throws(Failure) {
        guard mkdir(directory, 0o700) == 0 else {
            throw Failure(
                .cannotCreate,
                "Cannot make a directory in \(NSTemporaryDirectory()): \(String(cString: strerror(errno)))."
            )
        }
        isMade.store(true, ordering: .relaxed)
    }

    deinit { remove() }

    /// What cannot be removed stays in the directory for temporary files, encrypted.
    func remove() {
        guard isMade.exchange(false, ordering: .relaxed) else { return }
        try? FileManager.default.removeItem(atPath: directory)  // See above.
    }

    /// Fills the file with all of standard input.
    func readInput() throws(Failure) {
        try prepare()
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

    /// Writes the file to standard output. It is removed before, so that a signal may end the process: the reader may
    /// not read for as long as it likes.
    func writeOutput() throws(Failure) {
        let file = try InputFile(path: path)
        remove()
        SignalWatch.stop()
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
