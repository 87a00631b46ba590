import Foundation
internal import SQLiteEngine

/// What a ``ServedFile`` shows.
protocol FileContents: AnyObject {
    /// The size in bytes.
    var size: Int64 { get }

    /// Fills the buffer with the bytes from `offset` on, all of which are within the size.
    /// - Returns: a result code of SQLite.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32
}

/// Shows bytes of this process to SQLite as a database file, through a VFS that writes nothing, opens no other file, and
/// declares the file immutable. <https://www.sqlite.org/vfs.html>
final class ServedFile {
    private let contents: any FileContents
    /// Asked now and then while SQLite reads. If it answers false, no more is read.
    var goesOn: (() -> Bool)?
    private var readCount = 0
    private let name: UnsafeMutablePointer<CChar>
    private let vfs: UnsafeMutablePointer<sqlite3_vfs>

    private static let readsBetweenQuestions = 32

    init(_ contents: any FileContents) throws(DatabaseError) {
        Engine.start()
        guard let system = sqlite3_vfs_find(nil) else {
            throw DatabaseError(extendedCode: SQLITE_ERROR, message: "SQLite has no VFS.")
        }
        let address = GuardedVFS.prefix + "served-" + (try FileSystem.randomName())
        guard let name = strdup(address) else { throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory.") }
        (self.contents, self.name) = (contents, name)
        vfs = .allocate(capacity: 1)
        vfs.initialize(to: system.pointee)
        vfs.pointee.iVersion = min(vfs.pointee.iVersion, 2)
        vfs.pointee.zName = UnsafePointer(name)
        vfs.pointee.pNext = nil
        vfs.pointee.szOsFile = Int32(OpenedFile.size)
        vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
        vfs.pointee.xOpen = OpenedFile.xOpen
        vfs.pointee.xDelete = { _, _, _ in SQLITE_READONLY }
        vfs.pointee.xAccess = { _, _, _, exists in
            exists?.pointee = 0
            return SQLITE_OK
        }
        vfs.pointee.xFullPathname = { _, name, size, path in
            guard let name, let path, strlen(name) < Int(size) else { return SQLITE_CANTOPEN }
            path.update(from: name, count: strlen(name) + 1)
            return SQLITE_OK
        }
    }

    deinit {
        vfs.deallocate()
        free(name)
    }

    /// Opens the file. The connection retains this object. It keeps nothing of the contents on the disk.
    func open() throws(DatabaseError) -> Connection {
        let code = sqlite3_vfs_register(vfs, 0)
        guard code == SQLITE_OK else { throw DatabaseError(extendedCode: code, message: "SQLite takes no VFS.") }
        // SQLite finds the VFS by name now, and uses its address afterwards. If it stays registered, that does no harm.
        defer { _ = sqlite3_vfs_unregister(vfs) }
        let connection = try Connection(
            path: "/" + String(cString: name),
            flags: SQLITE_OPEN_READONLY,
            vfs: String(cString: name)
        )
        connection.view = self
        do throws(DatabaseError) {
            // No other file is opened anyway: what SQLite sorts would otherwise fail.
            try connection.run("PRAGMA temp_store = MEMORY")
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    /// Attaches the file to a connection, which retains this object until it is detached or the connection closes.
    /// - Parameter hasKey: whether the connection has a key. The file gets none.
    func attach(to connection: Connection, as schema: String, hasKey: Bool) throws(DatabaseError) {
        let path = "/" + String(cString: name)
        GuardedVFS.show(self, as: path)
        defer { GuardedVFS.hide(path) }
        connection.plaintextSchemas.insert(ExactText(name: schema))
        try connection.unguarded { () throws(DatabaseError) in
            // An empty key means no key. Without KEY, the file would get the key of main.
            let statement = try connection.prepare(
                "ATTACH ? AS \(schema.quotedIdentifier)\(hasKey ? " KEY ''" : "")"
            )
            defer { statement.close() }
            try statement.bind(path, at: 1)
            _ = try statement.step()
        }
    }

    /// Opens the file for the VFS of another connection, to which it is attached.
    func open(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        OpenedFile.open(self, file, flags, outFlags)
    }

    /// The methods of every served file. What it shows is decrypted already, so that it never has a key.
    static var methods: UnsafePointer<sqlite3_io_methods> { UnsafePointer(OpenedFile.methods) }

    /// How much room of a file of SQLite this one takes.
    static var fileSize: Int { OpenedFile.size }

    fileprivate var size: Int64 { contents.size }

    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
        readCount += 1
        if readCount % ServedFile.readsBetweenQuestions == 0, let goesOn, !goesOn() { return SQLITE_INTERRUPT }
        let count = Int(max(0, min(Int64(buffer.count), contents.size - offset)))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        let code = count > 0 ? contents.read(into: part, at: offset) : SQLITE_OK
        guard code == SQLITE_OK, count < buffer.count else { return code }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).initializeMemory(as: UInt8.self, repeating: 0)
        return SQLITE_IOERR_SHORT_READ
    }
}

/// The layout of an opened file in SQLite's memory: the methods, and the served file.
private enum OpenedFile {
    static let size = 16

    private static func served(_ file: UnsafeMutablePointer<sqlite3_file>) -> ServedFile {
        let pointer = UnsafeMutableRawPointer(file).load(fromByteOffset: 8, as: UnsafeMutableRawPointer.self)
        return Unmanaged<ServedFile>.fromOpaque(pointer).takeUnretainedValue()
    }

    static let xOpen:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, sqlite3_filename?, UnsafeMutablePointer<sqlite3_file>?, Int32,
            UnsafeMutablePointer<Int32>?
        ) -> Int32 = { vfs, _, file, flags, outFlags in
            let served = Unmanaged<ServedFile>.fromOpaque(vfs!.pointee.pAppData!).takeUnretainedValue()
            return OpenedFile.open(served, file, flags, outFlags)
        }

    static func open(
        _ served: ServedFile,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        guard let file else { return SQLITE_CANTOPEN }
        file.pointee.pMethods = nil
        guard flags & SQLITE_OPEN_MAIN_DB != 0 else { return SQLITE_CANTOPEN }
        // The file may outlive the owner of the connection, while something on it is in use. So the file retains what it
        // shows.
        UnsafeMutableRawPointer(file).storeBytes(
            of: Unmanaged.passRetained(served).toOpaque(),
            toByteOffset: 8,
            as: UnsafeMutableRawPointer.self
        )
        file.pointee.pMethods = UnsafePointer(methods)
        outFlags?.pointee = SQLITE_OPEN_READONLY
        return SQLITE_OK
    }

    /// The method table. It never changes after it is made.
    nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        var table = sqlite3_io_methods.ofImmutableFile
        table.xClose = { file in
            Unmanaged.passUnretained(served(file!)).release()
            return SQLITE_OK
        }
        table.xRead = { file, buffer, count, offset in
            let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: Int(count))
            return PageWatch.note(read: served(file!).read(into: buffer, at: offset))
        }
        table.xFileSize = { file, size in
            size?.pointee = served(file!).size
            return SQLITE_OK
        }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: table)
        return pointer
    }()
}
