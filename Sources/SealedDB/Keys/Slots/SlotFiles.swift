internal import CSealedDBSystem
import Foundation

/// The two files beside a store that hold its slots. Each is whole by itself; the second is for the case that the first is
/// damaged.
struct SlotFiles: Sendable {
    /// The path of the store, with symbolic links followed.
    let store: String

    static let ending = StoreName.slotEndings[0]
    static let secondEnding = StoreName.slotEndings[1]

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

        var isMissing: Bool { if case .missing = content { true } else { false } }
        var slots: SealedSlots? { if case .slots(let slots) = content { slots } else { nil } }
    }

    func read() -> [Copy] {
        let copy = read(first)
        return [copy, read(second, parsed: copy.slots)]
    }

    /// - Parameter other: what the other file holds, which need not be parsed a second time.
    func read(_ path: String, parsed other: SealedSlots? = nil) -> Copy {
        do throws(DatabaseError) {
            guard let bytes = try bytes(path) else { return Copy(path: path, content: .missing) }
            if let other, other.bytes == bytes { return Copy(path: path, content: .slots(other)) }
            return Copy(path: path, content: .slots(try SealedSlots(parsing: bytes)))
        } catch {
            return Copy(path: path, content: .unusable(error.adding(context: path)))
        }
    }

    /// The bytes of the file; `nil` if there is none.
    private func bytes(_ path: String) throws(DatabaseError) -> [UInt8]? {
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
        // A derivation costs time and memory, and a program may count its calls: not for anybody who may put a file here.
        var owners = [0, geteuid()]
        // A store that does not exist has no owner.
        if let store = try? FileSystem.status(store) { owners.append(store.st_uid) }
        guard owners.contains(status.st_uid) else {
            throw .malformedSlots("it belongs neither to the owner of the store, nor to this user, nor to root.")
        }
        return try SlotFiles.bytes(of: descriptor, size: Int(clamping: status.st_size))
    }

    /// What the file holds, up to one byte more than a file of slots may have.
    static func bytes(of descriptor: Int32, size: Int) throws(DatabaseError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: min(max(size, 0), SlotsParser.sizeLimit) + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + count, $0.count - count, off_t(count))
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw .system("It cannot be read", reason: .ioError) }
            if got == 0 { break }
            count += got
        }
        return Array(bytes.prefix(count))
    }
}

extension DatabaseError {
    /// Whether a file of slots is certainly not as it was written. Whatever else is wrong with it says nothing of what it
    /// holds, so no opening replaces it.
    var provesBadSlots: Bool { reason == .malformedSlots || reason == .notRegularFile }
}
