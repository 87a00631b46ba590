import CSealedDBSystem
import Foundation
import SealedDB

/// The file in a directory of backups that tells whose backups have a name there, and by which no two runs make or remove
/// them at the same time: `.app.db.sealdb-backups` for those of `app.db`. It stays.
///
/// Each of its lines is a JSON object: the store, the machine, and then one for each backup that was made. It is written in
/// place, because its lock must stay with it. If that is cut short, a line is lost or spoiled: then it describes no file,
/// and the backup is left alone.
final class BackupClaim {
    private struct Owner: Codable {
        var version = BackupClaim.version
        /// Absolute path of the store.
        let store: String
    }

    private struct Machine: Codable {
        /// `nil` if the machine has no number.
        var machine: String?
    }

    /// A backup that a run with this claim has made, as it was when it was complete.
    struct Entry: Codable, Equatable {
        let name: String
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
        /// The first 16 bytes of the backup; `nil` with a plaintext header.
        let salt: String?
        /// The ``StoreMark`` of the store that was backed up.
        let store: String
        let pageCount: Int64
        /// Whether the user said that it may be far smaller than those before it.
        var mayBeSmaller = false

        /// - Throws: if the backup cannot be examined.
        init(path: String, store: StoreMark, pageCount: Int64, mayBeSmaller: Bool = false) throws {
            var status = stat()
            guard lstat(path, &status) == 0 else {
                throw Failure(.inputOutput, "Cannot examine \(path): \(String(cString: strerror(errno))).")
            }
            name = path.nameOfPath
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
            salt = try StoreInfo.outside(path: path).salt
            self.store = store.text
            self.pageCount = pageCount
            self.mayBeSmaller = mayBeSmaller
        }

        /// Whether it is the file that was made, and nobody has written to it.
        func describes(_ status: stat, salt: String?) -> Bool {
            inode == UInt64(status.st_ino) && size == Int64(status.st_size) && seconds == status.st_mtim.tv_sec
                && nanoseconds == status.st_mtim.tv_nsec && self.salt == salt
        }
    }

    private static let version = 2
    private static let sizeLimit = 1 << 26
    private let descriptor: Int32
    private let path: String
    private let start: [UInt8]
    private(set) var entries: [Entry] = []

    private init(_ descriptor: Int32, _ path: String, _ store: StoreItem) {
        (self.descriptor, self.path) = (descriptor, path)
        start =
            BackupClaim.line(Owner(store: store.identity)) + BackupClaim.line(Machine(machine: BackupClaim.machine))
    }

    deinit { sealeddb_unlock_and_close(descriptor) }

    /// - Returns: `nil` if nothing may be written and there is no such file.
    /// - Throws: ``Failure`` if another run has it, or if it is of another store.
    static func take(_ directory: String, _ store: StoreItem, isLooking: Bool) throws(Failure) -> BackupClaim? {
        let path = "\(directory)/.\(store.path.nameOfPath).sealdb-backups"
        let access = isLooking ? O_RDONLY : O_RDWR | O_CREAT
        let descriptor = sealeddb_open(path, access | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            if isLooking, number == ENOENT { return nil }
            throw Failure(
                .cannotCreate,
                "Cannot open \(path): \(String(cString: strerror(number))). No backup was made."
            )
        }
        let claim = BackupClaim(descriptor, path, store)
        try claim.requireTrusted()
        if !isLooking { try claim.lock(store, directory) }
        try claim.read(store, isLooking: isLooking)
        return claim
    }

    /// What it says decides what is removed: so nobody else may have written it.
    private func requireTrusted() throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw Failure(
                .inputOutput,
                "Cannot examine \(path): \(String(cString: strerror(errno))). No backup was made."
            )
        }
        let problem: String? =
            if status.st_mode & S_IFMT != S_IFREG {
                "is not a regular file"
            } else if ![0, geteuid()].contains(status.st_uid) {
                "belongs to another user"
            } else if status.st_mode & 0o022 != 0 {
                "may be changed by other users"
            } else if status.st_nlink > 1 {
                "has another name too"
            } else {
                nil
            }
        guard let problem else { return }
        throw Failure(.configuration, "\(path) \(problem). It was not used, and no backup was made.")
    }

    private func lock(_ store: StoreItem, _ directory: String) throws(Failure) {
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0 else {
            let number = errno
            guard number != EAGAIN, number != EACCES else {
                throw Failure(
                    .busy,
                    "Another run makes backups of \(store.path.nameOfPath) in \(directory). No backup was made; try later."
                )
            }
            throw Failure(
                .inputOutput,
                "Cannot lock \(path): \(String(cString: strerror(number))). No backup was made."
            )
        }
    }

    // MARK: Reading

    private func read(_ store: StoreItem, isLooking: Bool) throws(Failure) {
        let file = try InputFile(descriptor: descriptor, name: path)
        let bytes = file.size > BackupClaim.sizeLimit ? [] : try file.contents(upTo: BackupClaim.sizeLimit)
        let decoder = JSONDecoder()
        // A kill or a power failure may have cut off the first lines when they were written. No backup was made after that.
        if file.size <= BackupClaim.sizeLimit, bytes.count < start.count, start.starts(with: bytes) {
            if !isLooking { try write(orSay: "No backup was made.") }
            return
        }
        let lines = bytes.split(separator: 0x0a)
        // If these are not our words, that is told.
        guard let first = lines.first, let owner = try? decoder.decode(Owner.self, from: Data(first)),
            (1...BackupClaim.version).contains(owner.version)
        else { throw foreign }
        guard owner.store.isSame(as: store.identity) else {
            throw Failure(
                .cannotCreate,
                "\(path) tells that the backups of that name here are those of \(owner.store), and not of "
                    + "\(store.identity). \(BackupClaim.remedy)"
            )
        }
        // The first version had no list: what was made with it is left alone.
        let machine =
            owner.version < 2 || lines.count < 2 ? nil : try? decoder.decode(Machine.self, from: Data(lines[1]))
        guard let machine else {
            guard lines.count <= 2 else { throw foreign }
            if !isLooking { try write(orSay: "No backup was made.") }
            return
        }
        guard machine.machine == BackupClaim.machine else {
            throw Failure(
                .cannotCreate,
                "\(path) tells that the backups of that name here are those of \(owner.store) on another machine, or "
                    + "another container. \(BackupClaim.remedy)"
            )
        }
        // A line that says nothing describes no file.
        entries = lines.dropFirst(2).compactMap { try? decoder.decode(Entry.self, from: Data($0)) }
    }

    private var foreign: Failure {
        Failure(.data, "\(path) is not a file of this sealdb. It was not changed, and no backup was made.")
    }

    private static let remedy =
        "No backup was made. Give each store a directory of its own; or, if the store has moved, remove that file: the "
        + "backups that are there then stay until you remove them."

    /// A number that the machine has and that does not tell its identifier, which is not for everybody.
    /// https://man7.org/linux/man-pages/man5/machine-id.5.html
    private static let machine: String? = {
        // If the file cannot be read for a moment, the machine counts as another one, and no backup is made.
        guard let text = try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8) else { return nil }
        let digits = text.utf8.filter { $0 > UInt8(ascii: " ") }
        guard digits.count == 32 else { return nil }
        let words = Array("sealdb backups of ".utf8) + digits
        return String(words.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16)
    }()

    // MARK: Writing

    /// Notes a backup that is complete, on disk. Those that are gone are forgotten.
    func add(_ entry: Entry) throws(Failure) {
        let directory = path.directoryOfPath
        entries.removeAll { old in
            var status = stat()
            return old.name.isSame(as: entry.name) || lstat("\(directory)/\(old.name)", &status) != 0 && errno == ENOENT
        }
        entries.append(entry)
        try write(
            orSay:
                "The backup \(directory)/\(entry.name) is complete, but was not noted: it stays until you remove it. "
                + "No old one was removed."
        )
    }

    private func write(orSay state: String) throws(Failure) {
        let bytes = entries.reduce(start) { $0 + BackupClaim.line($1) }
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(done)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw unwritten(state) }
            done += count
        }
        guard ftruncate(descriptor, off_t(bytes.count)) == 0, fsync(descriptor) == 0 else { throw unwritten(state) }
        try synchronizeDirectory(of: path, orSay: state)
    }

    private func unwritten(_ state: String) -> Failure {
        Failure(.inputOutput, "Cannot write \(path): \(String(cString: strerror(errno))). \(state)")
    }

    private static func line(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers and texts can always be encoded.
        return [UInt8]((try? encoder.encode(value)) ?? Data()) + [0x0a]
    }
}
