import ArgumentParser
import CSealedDBSystem
import Foundation
import SealedDB

struct LockOptions: ParsableArguments {
    @Option(
        name: .customLong("lock-wait"),
        help: ArgumentHelp(
            "Wait so long for a store that another process has locked. Default: 2.",
            valueName: "seconds"
        )
    )
    var givenLockWait: Double?

    static let range = 0.0...86_400.0

    var lockWait: Double { givenLockWait ?? ConfigurationInUse.defaults.lockWait ?? 2 }

    func validate() throws {
        guard LockOptions.range.contains(givenLockWait ?? 0) else {
            throw ValidationError("--lock-wait takes seconds, from 0 to 86400.")
        }
    }
}

struct ForceOptions: ParsableArguments {
    @Flag(help: "Go on although this user may not see whether somebody else has the store open.")
    var force = false
}

enum Store {
    /// The path in a form that SQLite takes for a file. For SQLite, "" and names that begin with a colon have other
    /// meanings. Fails if the command would print into the file.
    static func literalPath(_ path: String) throws(Failure) -> String {
        if path.isEmpty { throw Failure(.usage, "The name of the store is empty.") }
        do throws(DatabaseError) {
            try Key.requireName(path, of: "store")
        } catch {
            throw Failure(.usage, error.message)
        }
        let literal = path.begins(with: ":") ? "./" + path : path
        try StandardStreams.requireNoPart(ofStore: literal)
        return literal
    }

    /// Opens an existing store. Fails if the key is wrong.
    static func open(
        _ path: String,
        key: Key,
        settings: CipherSettings = .init(),
        lockWait: Double,
        isReadOnly: Bool = false,
        looks: Bool = false,
        isNew: Bool = false
    ) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        configuration.createsFile = isNew
        configuration.isReadOnly = isReadOnly
        configuration.looksIfUnreadable = looks
        configuration.busyTimeout = .seconds(lockWait)
        // Scripts and dumps that the shells of SQLite and SQLCipher execute are executed here, too.
        configuration.enforcesForeignKeys = false
        configuration.acceptsDoubleQuotedStrings = true
        configuration.isDefensive = false
        configuration.warn = { StandardError.message($0, .warning) }
        let database = Database(path: try literalPath(path), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// Opens a store only for reading.
    /// - Parameter looks: whether it is read without locks where this user may not write in its directory, and SQLite would
    ///   have to. The caller then asks `requireStill()` of the database when all is read.
    static func openReadOnly(
        _ path: String,
        key: Key,
        settings: CipherSettings = .init(),
        lockWait: Double,
        looks: Bool = false
    ) throws -> Database {
        do {
            return try open(path, key: key, settings: settings, lockWait: lockWait, isReadOnly: true, looks: looks)
        } catch let error as DatabaseError where error.code == SQLITE_READONLY {
            guard access(path.directoryOfPath, W_OK) == 0 else { throw error }
            // A process was killed within a transaction. Only a connection that may write can roll that back.
            try open(path, key: key, settings: settings, lockWait: lockWait).close()
            return try open(path, key: key, settings: settings, lockWait: lockWait, isReadOnly: true)
        }
    }

    /// Opens a store to read all of it. Refuses one whose log has committed transactions behind damaged bytes, which SQLite
    /// leaves out without a word.
    static func openWhole(
        _ path: String,
        key: Key,
        settings: CipherSettings,
        lockWait: Double,
        looks: Bool = false
    ) throws -> Database {
        try Database.requireWholeLog(ofStore: path)
        return try openReadOnly(path, key: key, settings: settings, lockWait: lockWait, looks: looks)
    }

    /// Throws if a file that is no store would get a name that belongs to one. Call it before the file is made.
    static func requireNoPart(_ path: String) throws(Failure) {
        do throws(DatabaseError) { try StoreName.requireNoPart(path) } catch {
            throw Failure(.cannotCreate, error.message)
        }
    }

    /// Fails early, before a key is asked for. `create` makes sure of it again.
    static func requireAbsent(_ path: String) throws(Failure) {
        func status(_ path: String) throws(Failure) -> stat? {
            do throws(DatabaseError) {
                return try FileSystem.statusIfPresent(path)
            } catch {
                throw Failure(.inputOutput, "\(error.message) Nothing was done.")
            }
        }
        if try status(path) != nil {
            throw Failure(.cannotCreate, "\(path) exists already. Nothing was done.")
        }
        for log in [path + "-wal", path + "-journal"] {
            guard let found = try status(log), found.st_size > 0 else { continue }
            throw Failure(
                .cannotCreate,
                "\(log) belongs to a database that is gone, and would be taken for one of the new file. Nothing was done."
            )
        }
        do throws(DatabaseError) { try JournalName.requireNothingElse(beside: path) } catch {
            throw Failure(.cannotCreate, error.message)
        }
    }

    /// Creates an encrypted file with one page under a temporary name, opens it again to check the key, and then gives
    /// it its name.
    static func create(_ store: String, key: Key, settings: CipherSettings = .init()) throws {
        let directory = store.directoryOfPath
        try KeySlots.requireNone(beside: store)
        // Remove what a killed process left.
        TemporaryFile.removeLeftovers(of: store)
        let path = try TemporaryFile.path(beside: store)
        let descriptor = sealeddb_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("Cannot create \(store)") }
        // The result does not matter: nothing has been written yet.
        close(descriptor)
        do {
            // The key is confirmed below, when everything else is done.
            let known = key.detached
            let database = try open(path, key: known, settings: settings, lockWait: 0, isNew: true)
            // Any write makes SQLite write the first page.
            try database.executeUpdate("PRAGMA user_version = 0", values: nil)
            database.close()
            try open(path, key: known, settings: settings, lockWait: 0, isReadOnly: true).close()
            guard try StoreInfo.inspect(path: path, key: nil).kind != .plaintext else {
                throw Failure(.software, "The new file is not encrypted. It was removed.")
            }
            try key.confirm()
            SignalWatch.start()
            // Somebody may have put some there meanwhile.
            try KeySlots.requireNone(beside: store)
            // An exclusive rename cannot replace a file that somebody else has created meanwhile.
            guard sealeddb_rename_exclusively(path, store) == 0 else { throw failure("Cannot create \(store)") }
        } catch {
            // Another process that makes this store takes the file for a leftover.
            let isRemoved = access(path, F_OK) != 0 && errno == ENOENT
            // A file that cannot be removed is a leftover. The next process that creates this store removes it.
            for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
            guard isRemoved else { throw error }
            throw Failure(
                .busy,
                """
                No store was made: somebody else has removed the unfinished file, as does a process that makes \(store), too. \
                Look whether that is there before you try again.
                """
            )
        }
        let parent = sealeddb_open(directory, O_RDONLY | O_DIRECTORY, 0)
        // The result does not matter: nothing was written through this descriptor.
        defer { if parent >= 0 { close(parent) } }
        guard parent >= 0, fsync(parent) == 0 else {
            throw failure(
                "\(store) is complete, but may be missing after a power failure: \(directory) cannot be synced",
                .inputOutput
            )
        }
    }

    private static func failure(_ message: String, _ status: ExitStatus = .cannotCreate) -> Failure {
        Failure(status, "\(message): \(String(cString: strerror(errno))).")
    }
}
