internal import CSealedDBSystem
import Foundation

/// The two files beside a store that hold its slots. Each is whole by itself; the second is for the case that the first is
/// damaged.
struct SlotFiles: Sendable {
    /// The path of the store, with symbolic links followed.
    let store: String

    static let ending = ".slots"
    static let secondEnding = ".slots.2"

    /// The one that is written first, and counts from then on.
    var first: String { store + SlotFiles.ending }
    var second: String { store + SlotFiles.secondEnding }

    /// Whether the store has slots. True if that cannot be found out.
    var mayExist: Bool { FileSystem.mayExist(first) || FileSystem.mayExist(second) }

    /// One of the two files, as it was found.
    struct Copy: Sendable {
        let path: String
        let content: Content

        enum Content: Sendable {
            case missing
            case unusable(DatabaseError)
            case slots(SealedSlots)
        }

        var slots: SealedSlots? { if case .slots(let slots) = content { slots } else { nil } }
    }

    func read() -> [Copy] {
        [first, second].map { path in
            do throws(DatabaseError) {
                guard let bytes = try SlotFiles.bytes(path) else { return Copy(path: path, content: .missing) }
                return Copy(path: path, content: .slots(try SealedSlots(parsing: bytes)))
            } catch {
                return Copy(path: path, content: .unusable(error.adding(context: path)))
            }
        }
    }

    /// The bytes of the file; `nil` if there is none.
    private static func bytes(_ path: String) throws(DatabaseError) -> [UInt8]? {
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .system("It cannot be read", reason: errno == ELOOP ? .notRegularFile : .ioError)
        }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("It cannot be examined", reason: .ioError) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .malformedSlots("it is not a regular file.") }
        var bytes = [UInt8](repeating: 0, count: SlotsParser.sizeLimit + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress! + count, $0.count - count) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw .system("It cannot be read", reason: .ioError) }
            if got == 0 { break }
            count += got
        }
        return Array(bytes.prefix(count))
    }

    // MARK: Writing

    /// Writes both files, each by a new one that takes its place. Only one process at a time may do this: the caller has
    /// the write lock of the store, or the store does not exist yet.
    ///
    /// The first is durable before the second is touched, so that at each moment one of them is whole.
    func write(_ slots: SealedSlots, attributesFrom model: String?) throws(DatabaseError) {
        do throws(DatabaseError) {
            try SlotFiles.replace(first, slots, model)
        } catch {
            throw error.adding(context: "\(first) was not changed for good, and \(second) is as it was")
        }
        do throws(DatabaseError) {
            try SlotFiles.replace(second, slots, model)
        } catch {
            throw error.adding(
                context: """
                    \(first) has the change (generation \(slots.table.generation)), but \(second) may be as it was. The next \
                    change repairs it
                    """
            )
        }
    }

    /// Writes those files that are not as these slots.
    func repair(_ slots: SealedSlots, attributesFrom model: String?) throws(DatabaseError) {
        for copy in read() where copy.slots?.bytes != slots.bytes { try SlotFiles.replace(copy.path, slots, model) }
    }

    private static func replace(_ path: String, _ slots: SealedSlots, _ model: String?) throws(DatabaseError) {
        // What a killed process left.
        TemporaryFile.removeLeftovers(of: path)
        let new = try TemporaryFile.path(beside: path)
        let descriptor = try FileSystem.openExclusively(new)
        // The contents are synced by then, or a failure is already known.
        defer { close(descriptor) }
        do throws(DatabaseError) {
            if let model { try FileSystem.copyAttributes(from: model, to: new) }
            try slots.bytes.withUnsafeBytes { bytes in
                Result { () throws(DatabaseError) in
                    try SecretFile.write(bytes, toDescriptor: descriptor, new, what: "slots")
                }
            }.get()
            guard fsync(descriptor) == 0 else { throw .system("Cannot sync \(new)", reason: .ioError) }
            // Written through the descriptor and read by the name: both must be the same file.
            guard try SecretFile.isCurrent(descriptor, path: new), try bytes(new) == slots.bytes else {
                throw DatabaseError(
                    extendedCode: SQLITE_IOERR,
                    reason: .unverified,
                    message: "\(new) does not hold what was written to it."
                )
            }
            guard rename(new, path) == 0 else {
                throw .system("The new file could not take the place of \(path)", reason: .ioError)
            }
        } catch {
            // A file that cannot be removed is removed by the next change.
            unlink(new)
            throw error
        }
        guard try SecretFile.isCurrent(descriptor, path: path) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unverified,
                message: "Somebody else put a file in the place of the new \(path)."
            )
        }
        try FileSystem.synchronizeDirectory(of: path)
    }
}
