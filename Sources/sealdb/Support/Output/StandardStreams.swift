import CSealedDBSystem
import Foundation
import SealedDB
import Synchronization

/// The files into which whoever started the program has directed what it prints.
enum StandardStreams {
    private static let outputs = [STDOUT_FILENO, STDERR_FILENO]
    /// Who goes on all the same does not get through: the streams no longer show it.
    private static let failure = Mutex<Failure?>(nil)

    /// Fails if what is printed would get into a store, or a file that belongs to it: `>>` and `<>` of a shell open a file
    /// that is there. What such a stream takes goes to /dev/null from then on, the message too.
    static func requireNoPart(ofStore path: String) throws(Failure) {
        let endings = [""] + StoreName.siblingEndings + StoreName.slotEndings
        try require(endings.map { path + $0 }, "The store \(path), or a file that belongs to it,")
    }

    /// Fails if what is printed would get into a file that the command needs.
    static func requireOther(than file: String) throws(Failure) {
        try require([file], file)
    }

    private static func require(_ files: [String], _ what: String) throws(Failure) {
        if let failure = failure.withLock({ $0 }) { throw failure }
        var affected: [Int32] = []
        for output in outputs {
            var stream = stat()
            // Nothing can be written to a stream that cannot be examined.
            guard fstat(output, &stream) == 0, stream.st_mode & S_IFMT == S_IFREG else { continue }
            let isNeeded = files.contains { file in
                // The files are not opened: closing one would end the locks that this process has on it. One that cannot be
                // found is not the one that is open.
                var status = stat()
                return stat(file, &status) == 0 && status.st_dev == stream.st_dev && status.st_ino == stream.st_ino
            }
            if isNeeded { affected.append(output) }
        }
        guard !affected.isEmpty else { return }
        let null = sealeddb_open("/dev/null", O_WRONLY, 0)
        for output in affected {
            // Without /dev/null, nothing is said.
            guard null >= 0, dup2(null, output) >= 0 else { _exit(ExitStatus.usage.rawValue) }
        }
        let names = affected.map { $0 == STDOUT_FILENO ? "standard output" : "standard error" }
        let error = Failure(
            .usage,
            "\(what) is \(names.joined(separator: " and ")), and would be destroyed. Nothing was done. Direct it to another file."
        )
        failure.withLock { $0 = error }
        throw error
    }
}
