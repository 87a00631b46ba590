import Foundation

/// What is wrong with a file, and what to do about it, found out without writing a byte to the file.
///
/// SQLCipher reports "file is not a database" for a wrong key, other settings, damage, and files of another kind. A
/// diagnosis tells these apart, because it computes the authentication codes of pages itself.
public struct StoreDiagnosis: Sendable, Codable, Hashable {
    /// What a file is, or what is wrong with it.
    public enum Finding: String, Sendable, Codable, CaseIterable {
        /// The key and the settings are right (or the file is a sound plaintext database, and no key was given).
        case opens
        /// The file has no bytes.
        case emptyFile
        /// The path is that of a directory.
        case directory
        /// A device, a socket or a pipe.
        case notRegularFile
        /// This user may not read the file.
        case notPermitted
        /// The file is a plaintext SQLite database, but a key was given.
        case plaintext
        /// The key is right, and the file has the settings of SQLCipher 1, 2 or 3.
        case olderFormat
        /// The key is right, but the file has other settings than those given.
        case otherSettings
        /// The key is right, and the file was written by a pre-release of SQLCipher 2. Only the stock shell opens it.
        case prereleaseFormat
        /// The file ends before its last page.
        case truncated
        /// The key is right, but the first page was changed by something other than SQLCipher.
        case damagedFirstPage
        /// The key is right, but other pages are damaged.
        case damaged
        /// No page that was looked at was written with this key. It is also possible that all of these pages are
        /// damaged, or that a newer SQLCipher wrote the file.
        case wrongKey
        /// No key was given, and the file seems to be encrypted.
        case encrypted
        /// The file is neither a plaintext database nor random enough to be encrypted.
        case notADatabase
    }

    /// What was found.
    public let finding: Finding
    /// Absolute path, with symbolic links followed.
    public let path: String
    /// Size of the main file in bytes.
    public let fileSize: Int64
    /// Those of `-wal`, `-shm` and `-journal` that exist beside the file and are not empty.
    public let siblings: [String]
    /// The settings that open the file; `nil` without the right key.
    public let cipherSettings: CipherSettings?
    /// Whether pages have authentication codes; false without the right key. If they have none, nobody can tell whether
    /// the file was changed, or whether somebody without the key turned it into this format.
    public let isAuthenticated: Bool
    /// The page sizes that divide the size of the file. Without the right key nothing more is known about the page
    /// size.
    public let possiblePageSizes: [Int]
    /// The damaged pages that were found; empty without the right key. Pages that are free by the store's own list are none
    /// of them. `sealdb verify` finds all, and whether that list is right.
    public let damagedPages: [Int64]
    /// The finding, and what to do, in sentences for people.
    public let explanation: String

    /// Examines a file. Writes nothing, not even beside the file.
    ///
    /// With a raw key this takes milliseconds. With a passphrase that does not open the file as it is, it tries 4,000,
    /// 64,000 and 256,000 iterations with each hash: at most ten derivations, which take about a second.
    /// - Parameters:
    ///   - path: path of the file.
    ///   - key: the key that it may have; `nil` to look only at what needs none.
    ///   - cipherSettings: the settings that it should have. Default: those of SQLCipher 4.
    ///   - allowsUnauthenticated: whether to try formats without page authentication too, such as that of SQLCipher 1.
    ///     Default false, because somebody without the key can turn any store into such a format. If `cipherSettings` have
    ///     no page authentication, such formats are tried in any case.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/noSuchFile`` if there is no file,
    ///   ``DatabaseError/Reason/busy`` if the file is written to again and again during the examination and does not
    ///   seem sound, and I/O errors. What is wrong with the file is returned, not thrown.
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
        var key = key
        if let given = key, status.st_mode & S_IFMT == S_IFREG, access(resolved, R_OK) == 0 {
            key = try keyOfStore(StoreOpening(path: resolved, key: given, settings: cipherSettings), given)
        }
        var examination = StoreExamination(path: resolved, key: key, settings: cipherSettings, effort: .thorough)
        examination.triesUnauthenticated = allowsUnauthenticated
        guard status.st_mode & S_IFMT == S_IFREG else {
            return examination.result(status.st_mode & S_IFMT == S_IFDIR ? .directory : .notRegularFile)
        }
        examination.fileSize = Int64(status.st_size)
        // Ask the system, instead of looking at the mode alone: root may read everything.
        guard access(resolved, R_OK) == 0 else { return examination.result(.notPermitted) }
        let connection = try Connection(path: resolved, flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        for _ in 0..<5 {
            let before = try Moment(of: resolved, connection)
            var examination = examination
            let diagnosis = try examination.examine(connection)
            // If the file changed meanwhile, it may have been read at different moments. If it opens all the same, it
            // is sound.
            if diagnosis.opens { return diagnosis }
            guard try before != Moment(of: resolved, connection) else { return diagnosis }
        }
        throw StoreOpening.isBusy(path)
    }

    /// Finds the data key of a store with slots, by which the key is then worth something.
    /// - Returns: the key; one that knows no data key if no slot opens with it, so that the examination finds that no page
    ///   was written with this key.
    private static func keyOfStore(_ opening: StoreOpening, _ key: Key) throws(DatabaseError) -> Key {
        let connection = try Connection(path: opening.path ?? "", flags: SQLITE_OPEN_READONLY)
        defer { connection.close() }
        do throws(DatabaseError) {
            guard try opening.openedSlots(key, connection) == nil else { return key }
            return opening.keyWithoutSlots(key, header: try connection.mainFileHeader())
        } catch {
            guard error.reason == .wrongKey, key.form != .program else { throw error }
            return key.unused
        }
    }

    private var opens: Bool { [.opens, .olderFormat, .otherSettings].contains(finding) }

    /// The parts of a store that change when it is written to. The time stamps of files alone are too coarse, so this
    /// includes the first page: SQLCipher encrypts a page with new random bytes each time it writes it.
    private struct Moment: Equatable {
        private let marks: [StoreView.Mark]
        private let firstPage: [UInt8]

        init(of path: String, _ connection: Connection) throws(DatabaseError) {
            marks = StoreView.marks(of: path)
            firstPage = try connection.fileBytes(count: 65536)
        }
    }

    /// The cipher settings of a store without damage.
    /// - Throws: the diagnosis as an error, if the settings were not found or pages are damaged.
    package func settingsOfSoundStore() throws(DatabaseError) -> CipherSettings {
        guard let cipherSettings, damagedPages.isEmpty else { throw error }
        return cipherSettings
    }

    /// The diagnosis as an error, with the reason that belongs to the finding.
    public var error: DatabaseError {
        error(code: finding == .truncated || finding == .damaged ? SQLITE_CORRUPT : SQLITE_NOTADB)
    }

    /// The diagnosis as the error of an opening that failed with this code.
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
        case .olderFormat, .prereleaseFormat: .olderFormat
        case .otherSettings: .otherSettings
        case .emptyFile, .truncated: .truncated
        case .damagedFirstPage, .damaged: .damaged
        case .wrongKey: .wrongKey
        case .encrypted: .keyRequired
        case .notADatabase: .notADatabase
        }
    }
}
