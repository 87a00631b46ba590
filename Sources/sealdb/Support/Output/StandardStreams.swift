import CSealedDBSystem
import Foundation
import SealedDB
import Synchronization

/// The files into which whoever started the program has directed what it prints.
enum StandardStreams {
    private static let outputs = [STDOUT_FILENO, STDERR_FILENO]
    /// Who goes on all the same does not get through: the streams no longer show it.
    private static let failure = Mutex<Failure?>(nil)

    /// Fails if what is printed would get into a file that holds a store, a log, a journal, a key or a part of a repository: also messages about the
    /// arguments would destroy it, and SQL may name a store too. Call it before anything is printed.
    static func requireNoStoreOrKey() throws(Failure) {
        let affected = outputs.filter { output in
            var stream = stat()
            guard fstat(output, &stream) == 0, stream.st_mode & S_IFMT == S_IFREG, stream.st_size > 0 else {
                return false
            }
            // By its number, as the name may be another file's. Nobody has a lock yet that closing would end.
            let file = sealeddb_open("/proc/self/fd/\(output)", O_RDONLY, 0)
            // One that may not be read is not looked at here. Those that a command names are found by their names.
            guard file >= 0 else { return false }
            // The result does not matter: nothing was written through this descriptor.
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = pread(file, &bytes, bytes.count, 0)
            return count > 0 && isStoreOrKey(Array(bytes[..<count]), stream)
        }
        if !affected.isEmpty { throw withdraw(affected, "A store, a key or a part of a repository") }
    }

    private static func isStoreOrKey(_ start: [UInt8], _ status: stat) -> Bool {
        let beginnings: [[UInt8]] = [
            Array("SQLite format 3".utf8), Array("sealdb-keyring ".utf8),
            // https://www.sqlite.org/fileformat2.html#walformat and #the_rollback_journal
            [0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83], [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7],
        ]
        if beginnings.contains(where: start.starts) || StoreHeader.looksRandom(start) || isOfRepository(start) {
            return true
        }
        // Results may be digests, but they seldom are for one user alone.
        guard status.st_mode & 0o077 == 0 else { return false }
        let digits = start.prefix { Character(Unicode.Scalar($0)).isHexDigit }
        let isHex =
            [64, 96].contains(digits.count) && start.dropFirst(digits.count).allSatisfy { $0 == 0x0a || $0 == 0x0d }
        return isHex || status.st_size == 32 && start.contains { $0 < 0x09 || $0 > 0x7e }
    }

    /// Whether a file begins like those of a repository, or like that of a follower: with a title and a version.
    private static func isOfRepository(_ start: [UInt8]) -> Bool {
        let title = start.prefix(64).prefix { $0 != 0x0a }.split(separator: 0x20, omittingEmptySubsequences: false)
        return title.count == 3 && title[0].elementsEqual("SealedDB".utf8)
            && !title[1].isEmpty && title[1].allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
            && !title[2].isEmpty && title[2].allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// Fails if what is printed would get into a store, or a file that belongs to it: `>>` and `<>` of a shell open a file
    /// that is there. What such a stream takes goes to /dev/null from then on, the message too.
    static func requireNoPart(ofStore path: String) throws(Failure) {
        let endings = [""] + StoreName.siblingEndings + StoreName.slotEndings
        try require("The store \(path), or a file that belongs to it,") { stream in
            endings.contains { ending in
                // The files are not opened: closing one would end the locks that this process has on it. One that cannot be
                // found is not the one that is open.
                var status = stat()
                return stat(path + ending, &status) == 0 && status.st_dev == stream.st_dev
                    && status.st_ino == stream.st_ino
            }
        }
    }

    /// Fails if what is printed would get into a file that the command needs, and has opened.
    static func requireOther(than file: String, _ status: stat) throws(Failure) {
        try require(file) { $0.st_dev == status.st_dev && $0.st_ino == status.st_ino }
    }

    private static func require(_ what: String, isNeeded: (stat) -> Bool) throws(Failure) {
        if let failure = failure.withLock({ $0 }) { throw failure }
        let affected = outputs.filter { output in
            var stream = stat()
            // Nothing can be written to a stream that cannot be examined.
            guard fstat(output, &stream) == 0, stream.st_mode & S_IFMT == S_IFREG else { return false }
            return isNeeded(stream)
        }
        if !affected.isEmpty { throw withdraw(affected, what) }
    }

    /// Directs the streams to /dev/null.
    /// - Returns: what to say.
    private static func withdraw(_ affected: [Int32], _ what: String) -> Failure {
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
        return error
    }
}
