import CSealedDBSystem
import Foundation
import SealedDB

/// When the command last gave a store its key, verified it, and backed it up: one small file for each, in a directory that
/// the configuration names. They are for `sealdb status`; nothing else believes them.
struct StoreRecords: Sendable {
    enum Event: String, Sendable, CaseIterable {
        case key, verification, backup
    }

    struct Record: Codable, Sendable {
        var version = 1
        var path = ""
        var time = Date()
        /// Those of the ``StoreMark`` of the store: another file in its place, such as a copy or one of a service that
        /// rotates its key, is not what this is about.
        var salt: String?
        var inode: UInt64?
        /// Of a verification.
        var isSound: Bool?
        var isDeep: Bool?
        /// Of a backup.
        var backupPath: String?
        /// The salt of the backup.
        var backupSalt: String?

        init() {}

        init(_ mark: StoreMark?, isSound: Bool, isDeep: Bool) {
            (self.isSound, self.isDeep) = (isSound, isDeep)
            self.mark = mark
        }

        /// - Parameter mark: that of the store before the backup.
        init(_ mark: StoreMark?, backupPath: String) {
            self.backupPath = StoreItem.identity(of: backupPath)
            // Without it the record says less.
            backupSalt = try? StoreInfo.outside(path: backupPath).salt
            self.mark = mark
        }

        /// `nil` if it is not known: then the record is not believed.
        var mark: StoreMark? {
            get { inode.map { StoreMark(salt: salt, inode: $0) } }
            set { (salt, inode) = (newValue?.salt, newValue?.inode) }
        }

        /// Whether it is about the store that has this mark.
        func isAbout(_ store: StoreMark, _ event: Event) -> Bool {
            guard let mark else { return false }
            // A copy of the store has the same key, which is as old.
            if event == .key, let salt = mark.salt { return salt == store.salt }
            return mark == store
        }

        /// Why a backup is there no more; `nil` if it is.
        var missingBackup: String? {
            guard let backupPath else { return "its path is not known" }
            var status = stat()
            guard lstat(backupPath, &status) == 0 else {
                return "\(backupPath) cannot be examined: \(String(cString: strerror(errno)))"
            }
            guard status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return "\(backupPath) is no backup" }
            guard let backupSalt else { return nil }
            // A file that cannot be read is not known to be the backup.
            let found = try? StoreInfo.outside(path: backupPath).salt
            return found == backupSalt ? nil : "\(backupPath) is another file"
        }
    }

    let directory: String

    private static let sizeLimit = 64 * 1024

    /// Notes that something was done now, if the configuration asks for that. What was done stays done if it cannot be
    /// noted: then `status` takes it for something that is due.
    static func note(_ event: Event, of path: String, _ record: Record = Record()) {
        guard let directory = ConfigurationInUse.defaults.stateDirectory else { return }
        var record = record
        record.path = StoreItem.identity(of: path)
        // Without it the record is not believed.
        if event == .key { record.mark = try? StoreMark(path: path) }
        do throws(Failure) {
            try StoreRecords(directory: directory).write(event, record)
        } catch {
            StandardError.message(
                "\(path): this is done, but was not noted for sealdb status. \(error.message)",
                .warning
            )
        }
    }

    /// Forgets what was done with a store that is another one now.
    static func forget(_ path: String) {
        guard let directory = ConfigurationInUse.defaults.stateDirectory else { return }
        let records = StoreRecords(directory: directory)
        for event in Event.allCases {
            let file = records.file(event, of: StoreItem.identity(of: path))
            guard unlink(file) != 0, errno != ENOENT else { continue }
            StandardError.message(
                "\(path): this is done, but \(file) cannot be removed: \(String(cString: strerror(errno))). It is about the "
                    + "store that was there before.",
                .warning
            )
        }
    }

    /// Keeps what was done with a store whose key was changed: each page was verified then, and its backups are still its.
    /// - Parameter mark: that of the store before; `nil` if it is not known.
    static func carryOver(_ path: String, from mark: StoreMark?) {
        guard let directory = ConfigurationInUse.defaults.stateDirectory, let mark else { return }
        let records = StoreRecords(directory: directory)
        // What cannot be kept is due, and what is due is told.
        guard let item = try? StoreItem(path), let new = try? StoreMark(path: path) else { return }
        for event in [Event.verification, .backup] {
            // As above: what cannot be read or kept is due.
            guard var record = try? records.record(event, of: item), record.isAbout(mark, event) else { continue }
            record.mark = new
            // As above.
            try? records.write(event, record)
        }
    }

    /// What is wrong with a directory for records; `nil` also for one that is still to be made.
    static func problem(with directory: String) -> String? {
        do throws(Failure) {
            switch try TrustedPath.target(of: directory) {
            case .nothing: return nil
            case .file: return "\(directory) is not a directory."
            case .directory:
                guard access(directory, W_OK | X_OK) != 0 else { return nil }
                return "\(directory) cannot be written to: \(String(cString: strerror(errno)))."
            }
        } catch {
            return error.message
        }
    }

    /// - Returns: `nil` if there is none.
    func record(_ event: Event, of store: StoreItem) throws(Failure) -> Record? {
        let path = file(event, of: store.identity)
        guard case .file(let place, _) = try TrustedPath.target(of: path) else { return nil }
        let file = try InputFile(path: place)
        try file.requireOwnersAlone()
        guard file.isRegular, file.size <= StoreRecords.sizeLimit else { throw malformed(path) }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let bytes = Data(try file.contents(upTo: StoreRecords.sizeLimit))
        // Why it cannot be read says nothing to people.
        guard let record = try? decoder.decode(Record.self, from: bytes), record.version == 1 else {
            throw malformed(path)
        }
        // Another store could have the same name here.
        return record.path.isSame(as: store.identity) ? record : nil
    }

    private func malformed(_ path: String) -> Failure {
        Failure(.data, "\(path) is not a record of sealdb. It was not believed. Remove it.")
    }

    private func write(_ event: Event, _ record: Record) throws(Failure) {
        if case .nothing = try TrustedPath.target(of: directory) {
            // One that another process has made meanwhile is as good; it is looked at next.
            guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw Failure(.cannotCreate, "Cannot make \(directory): \(String(cString: strerror(errno))).")
            }
        }
        guard case .directory = try TrustedPath.target(of: directory) else {
            throw Failure(.configuration, "\(directory) is not a directory.")
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        // Text, a date and flags can always be encoded.
        guard let data = try? encoder.encode(record) else { throw Failure(.software, "A record cannot be encoded.") }
        try ReplacedFile.write(data + [0x0a], to: file(event, of: record.path), mode: 0o600)
    }

    /// The end of the store's name for people, and a hash of its path.
    private func file(_ event: Event, of identity: String) -> String {
        let hash = identity.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        let plain = identity.nameOfPath.unicodeScalars.prefix(80).map { scalar in
            scalar.isASCII && scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) ? Character(scalar) : "_"
        }
        let digits = String(hash, radix: 16)
        let zeros = String(repeating: "0", count: 16 - digits.count)
        return "\(directory)/\(String(plain))-\(zeros)\(digits).\(event.rawValue)"
    }
}
