import CSealedDBSystem
import Foundation
import SealedDB
import Synchronization

/// A file that stands for standard input or output where a command needs one that can be read in any order. It lies in a
/// new directory that only this user may enter, and goes with it. Only encrypted stores go through it.
///
/// The directory is locked while its process lives. What a process leaves that is killed, the next one removes.
final class PipedFile: Sendable {
    let path: String
    private let directory: String
    private let isMade = Atomic(false)
    /// Holds the lock of the directory; -1 without one.
    private let lock = Atomic<Int32>(-1)

    private static let prefix = "sealdb-pipe-"
    private static let nameLength = 10

    /// Whether an argument means standard input or output.
    static func isMeant(by argument: String) -> Bool { argument.isSame(as: "-") }

    /// Chooses a name. Nothing is made yet, so that a command that waits for a key leaves nothing when it is ended.
    init() {
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        let name = String((0..<PipedFile.nameLength).map { _ in letters.randomElement()! })
        directory = NSTemporaryDirectory() + PipedFile.prefix + name
        path = directory + "/store"
    }

    /// Makes the directory.
    func prepare() throws(Failure) {
        PipedFile.removeLeftovers()
        guard mkdir(directory, 0o700) == 0 else {
            throw Failure(
                .cannotCreate,
                "Cannot make a directory in \(NSTemporaryDirectory()): \(String(cString: strerror(errno)))."
            )
        }
        isMade.store(true, ordering: .relaxed)
        // Without a lock, which few file systems lack, another process may take it for a leftover. Then this one fails.
        lock.store(PipedFile.lock(directory) ?? -1, ordering: .relaxed)
    }

    /// Locks a directory, which no other process has locked.
    private static func lock(_ directory: String) -> Int32? {
        let descriptor = sealeddb_open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // The result does not matter: nothing was written through this descriptor.
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Removes the directories of this user whose processes were killed. One that cannot be removed stays, encrypted.
    private static func removeLeftovers() {
        let parent = NSTemporaryDirectory()
        // A directory that cannot be listed has no leftovers of ours that could be found.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
        for name in names where name.begins(with: prefix) && name.utf8.count == prefix.utf8.count + nameLength {
            var status = stat()
            // One that is new may not be locked yet.
            guard lstat(parent + name, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
                time(nil) - status.st_mtim.tv_sec > 60, let descriptor = lock(parent + name)
            else { continue }
            if holdsOnlyStore(parent + name) {
                try? FileManager.default.removeItem(atPath: parent + name)  // See above.
            }
            // The result does not matter: nothing was written through this descriptor.
            close(descriptor)
        }
    }

    /// Whether nothing is in the directory but what lies beside a store of that name. Otherwise it is not one of ours.
    private static func holdsOnlyStore(_ directory: String) -> Bool {
        // A directory that cannot be listed may hold anything.
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else { return false }
        return names.allSatisfy { name in
            name.isSame(as: "store") || name.begins(with: "store-") || name.begins(with: ".store.sealdb-")
        }
    }

    /// Calls `body`, and names standard input in its error instead of this file.
    func naming<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError where error.message.contains(path) {
            throw DatabaseError(
                extendedCode: error.extendedCode,
                reason: error.reason,
                message: error.message.replacing(path, with: "standard input")
            )
        } catch let failure as Failure where failure.message.contains(path) {
            throw Failure(failure.status, failure.message.replacing(path, with: "standard input"))
        }
    }

    private func write(_ buffer: [UInt8], _ count: Int, to output: ResultOutput) throws(Failure) {
        let result = buffer.withUnsafeBytes { bytes in
            Result { () throws(Failure) in try output.write(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
        }
        try result.get()
    }

    deinit { remove() }

    /// What cannot be removed stays in the directory for temporary files, encrypted.
    func remove() {
        guard isMade.exchange(false, ordering: .relaxed) else { return }
        try? FileManager.default.removeItem(atPath: directory)  // See above.
        let descriptor = lock.exchange(-1, ordering: .relaxed)
        // The result does not matter: nothing was written through this descriptor.
        if descriptor >= 0 { close(descriptor) }
    }

    /// Fills the file with all of standard input. Nothing of a database in the clear is written.
    func readInput() throws(Failure) {
        let input = try InputFile(path: "-")
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        var start: [UInt8] = []
        while start.count < StoreHeader.byteCount {
            let count = try input.read(into: &buffer)
            if count == 0 { break }
            start += buffer[..<count]
        }
        guard !StoreHeader.isPlaintext(start) else {
            throw Failure(
                .data,
                "Standard input is a database in the clear, and no encrypted backup. Nothing was restored; `sealdb encrypt` "
                    + "makes an encrypted store of a file."
            )
        }
        try prepare()
        let file = try ResultOutput(newFile: path)
        try write(start, start.count, to: file)
        while true {
            let count = try input.read(into: &buffer)
            if count == 0 { break }
            try write(buffer, count, to: file)
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
            try write(buffer, count, to: output)
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
