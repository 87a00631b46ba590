import Foundation

/// What is the matter with a file, found out without writing a byte to it, and what to do about it.
///
/// SQLCipher gives one answer, "file is not a database", to a wrong key, other settings, damage and files of another
/// kind. This tells them apart by computing authentication codes of pages itself.
public struct StoreDiagnosis: Sendable, Codable, Hashable {
    public enum Finding: String, Sendable, Codable, CaseIterable {
        /// The key and the settings are right (or the file is a sound plaintext database, and no key was given).
        case opens
        /// No byte yet.
        case emptyFile
        case directory
        /// A device, a socket or a pipe.
        case notRegularFile
        /// This user may not read it.
        case notPermitted
        /// A plaintext SQLite database, and a key was given.
        case plaintext
        /// The right key, and SQLCipher 1, 2 or 3.
        case olderFormat
        /// The right key, and other settings than those given.
        case otherSettings
        /// It ends before its last page.
        case truncated
        /// The right key, and a first page that was changed by something else than SQLCipher.
        case damagedFirstPage
        /// The right key, and damage on other pages.
        case damaged
        /// Nothing in the file was written with this key. The first page, and all others that were looked at, could
        /// also be damaged, or the format be that of a newer SQLCipher.
        case wrongKey
        /// No key was given, and as far as can be told without one the file is encrypted.
        case encrypted
        /// Neither a database in the clear nor random enough to be encrypted.
        case notADatabase
    }

    public let finding: Finding
    /// Symbolic links followed.
    public let path: String
    /// Bytes.
    public let fileSize: Int64
    /// Which of `-wal`, `-shm` and `-journal` stand beside the file and hold something.
    public let siblings: [String]
    /// With the right key: the settings that open the file.
    public let cipherSettings: CipherSettings?
    /// With the right key: whether pages have authentication codes. Without them nobody can tell whether the file is as it
    /// was written, nor whether it was turned into this format by somebody without the key.
    public let isAuthenticated: Bool
    /// Page sizes that the length of the file allows; without the right key nothing more is known.
    public let possiblePageSizes: [Int]
    /// With the right key: pages found damaged so far. `sealdb verify` finds all.
    public let damagedPages: [Int64]
    /// What it is, and what to do, in sentences for people.
    public let explanation: String

    /// Examines a file; nothing is written, not even beside it.
    ///
    /// With a raw key this takes milliseconds. With a passphrase that does not open the file as it is, it tries 4,000,
    /// 64,000 and 256,000 rounds with each hash: at most ten derivations, about a second.
    /// - Parameter allowsUnauthenticated: also tries formats without page authentication, such as that of SQLCipher 1.
    ///   Default false, unless the settings are such: somebody without the key can turn any store into one of them.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/noSuchFile`` if there is none,
    ///   ``DatabaseError/Reason/busy`` if it is written to again and again while it is looked at and does not seem sound,
    ///   and I/O errors. What is wrong with the file is returned, not thrown.
    public static func examine(
        path: String,
        key: Key?,
        cipherSettings: CipherSettings = .init(),
        allowsUnauthenticated: Bool = false
    ) throws(DatabaseError) -> StoreDiagnosis {
        if key != nil { try Engine.requireCodec() }
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open \(path)", reason: .noSuchFile)
        }
        let status = try FileSystem.status(resolved)
        var examination = StoreExamination(path: resolved, key: key, settings: cipherSettings, effort: .thorough)
        examination.triesUnauthenticated = allowsUnauthenticated
        guard status.st_mode & S_IFMT == S_IFREG else {
            return examination.result(status.st_mode & S_IFMT == S_IFDIR ? .directory : .notRegularFile)
        }
        examination.fileSize = Int64(status.st_size)
        // As this user, not by the mode alone: root may read everything.
        guard access(resolved, R_OK) == 0 else { return examination.result(.notPermitted) }
        let connection = try Connection(path: resolved, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        for _ in 0..<5 {
            let before = try Moment(of: resolved, connection)
            var examination = examination
            let diagnosis = try examination.examine(connection)
            // What was read of a file that changes was perhaps not of one moment. What opens all the same is sound.
            if diagnosis.opens { return diagnosis }
            guard try before != Moment(of: resolved, connection) else { return diagnosis }
        }
        throw StoreOpening.isBusy(path)
    }

    private var opens: Bool { [.opens, .olderFormat, .otherSettings].contains(finding) }

    /// What of a store changes when it is written to. The time stamps of files are too coarse by themselves; a page that is
    /// written anew is encrypted with other random bytes.
    private struct Moment: Equatable {
        private let marks: [StoreView.Mark]
        private let firstPage: [UInt8]

        init(of path: String, _ connection: Connection) throws(DatabaseError) {
            marks = StoreView.marks(of: path)
            firstPage = try connection.fileBytes(count: 65536)
        }
    }

    /// The same as an error, with the reason that fits the finding.
    public var error: DatabaseError {
        error(code: finding == .truncated || finding == .damaged ? SQLITE_CORRUPT : SQLITE_NOTADB)
    }

    /// What an opening that failed is reported as.
    func error(code: Int32) -> DatabaseError {
        DatabaseError(extendedCode: code, reason: finding.reason, message: explanation)
    }
}

extension StoreDiagnosis.Finding {
    var reason: DatabaseError.Reason {
        switch self {
        case .opens: .sqlite
        case .directory, .notRegularFile: .notRegularFile
        case .notPermitted: .notPermitted
        case .plaintext: .plaintext
        case .olderFormat: .olderFormat
        case .otherSettings: .otherSettings
        case .emptyFile, .truncated: .truncated
        case .damagedFirstPage, .damaged: .damaged
        case .wrongKey: .wrongKey
        case .encrypted: .keyRequired
        case .notADatabase: .notADatabase
        }
    }
}
