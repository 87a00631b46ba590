import ArgumentParser
import CSealedDBSystem
import Foundation
import SealedDB

struct LockOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Wait so long for a store that another process has locked.", valueName: "seconds"))
    var lockWait = 2.0

    func validate() throws {
        guard lockWait >= 0, lockWait <= 86_400 else {
            throw ValidationError("--lock-wait takes seconds, from 0 to 86400.")
        }
    }
}

struct ForceOptions: ParsableArguments {
    @Flag(help: "Go on although this user may not see whether somebody else has the store open.")
    var force = false
}

enum Store {
    /// SQLite gives "" and names that begin with a colon another meaning than a file's name.
    static func literalPath(_ path: String) throws(Failure) -> String {
        if path.isEmpty { throw Failure(.usage, "The name of the store is empty.") }
        return path.hasPrefix(":") ? "./" + path : path
    }

    /// Opens a store that exists; a wrong key fails here.
    static func open(
        _ path: String,
        key: Key,
        settings: CipherSettings = .init(),
        lockWait: Double,
        isReadOnly: Bool = false,
        isNew: Bool = false
    ) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.cipherSettings = settings
        configuration.createsFile = isNew
        configuration.isReadOnly = isReadOnly
        configuration.busyTimeout = lockWait
        let database = Database(path: try literalPath(path), configuration: configuration)
        try database.openVerified()
        return database
    }

    /// Opens a store for reading alone.
    static func openReadOnly(
        _ path: String,
        key: Key,
        settings: CipherSettings = .init(),
        lockWait: Double
    ) throws -> Database {
        do {
            return try open(path, key: key, settings: settings, lockWait: lockWait, isReadOnly: true)
        } catch let error as DatabaseError where error.code == SQLITE_READONLY {
            // A process was killed within a transaction. Only a connection that may write can undo that.
            try open(path, key: key, settings: settings, lockWait: lockWait).close()
            return try open(path, key: key, settings: settings, lockWait: lockWait, isReadOnly: true)
        }
    }

    /// Fails early, before a key is asked for. `create` makes sure again.
    static func requireAbsent(_ path: String) throws(Failure) {
        var status = stat()
        if lstat(path, &status) == 0 {
            throw Failure(.cannotCreate, "\(path) exists already. Nothing was done.")
        }
        for log in [path + "-wal", path + "-journal"] where lstat(log, &status) == 0 && status.st_size > 0 {
            throw Failure(
                .cannotCreate,
                "\(log) belongs to a database that is gone, and would be taken for one of the new file. Nothing was done."
            )
        }
    }

    /// Makes an encrypted file of one page, and opens it again to see that the key works, before it gets its name.
    static func create(_ store: String, key: Key, settings: CipherSettings = .init()) throws {
        let directory = store.lastIndex(of: "/").map { String(store[...$0]) } ?? "./"
        // Of one that was killed.
        TemporaryFile.removeLeftovers(of: store)
        let path = try TemporaryFile.path(beside: store)
        let descriptor = sealeddb_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("Cannot create \(store)") }
        // Nothing is written yet.
        close(descriptor)
        do {
            // Looked for where it was read when all else is done.
            let known = key.detached
            let database = try open(path, key: known, settings: settings, lockWait: 0, isNew: true)
            // Any write makes SQLite lay down the first page.
            try database.executeUpdate("PRAGMA user_version = 0", values: nil)
            database.close()
            try open(path, key: known, settings: settings, lockWait: 0, isReadOnly: true).close()
            guard try StoreInfo.inspect(path: path, key: nil).kind != .plaintext else {
                throw Failure(.software, "The new file is not encrypted. It was removed.")
            }
            try key.confirm()
            SignalWatch.start()
            // So that a file made meanwhile by somebody else is never taken for ours.
            guard sealeddb_rename_exclusively(path, store) == 0 else { throw failure("Cannot create \(store)") }
        } catch {
            // What cannot be removed is a leftover, which the next one to create the store removes.
            for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
            throw error
        }
        let parent = sealeddb_open(directory, O_RDONLY | O_DIRECTORY, 0)
        // Nothing is written by it.
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
