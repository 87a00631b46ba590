import Foundation
internal import SQLiteEngine

/// Replaces pages of a file when they are read.
protocol PageOverlay {
    /// The page size in bytes.
    var pageSize: Int { get }
    /// The number of pages that the file has, including replaced and added ones.
    var pageCount: Int64 { get }
    /// Returns bytes of a replaced page; `nil` if the page is to be read from the file.
    func bytes(ofPage number: Int64, from start: Int, count: Int) throws(DatabaseError) -> [UInt8]?
}

/// Shows a database file to SQLite through a VFS that writes nothing and declares the file immutable. So SQLite creates
/// no lock, index or journal. <https://www.sqlite.org/vfs.html>, <https://www.sqlite.org/c3ref/c_iocap_atomic.html>
final class FileView {
    private let path: String
    /// How many seconds to wait for SQLite's shared lock, which keeps writers from the file; `nil` to take no lock.
    private let lockTimeout: Double?
    /// Returns the pages to replace. It is called once the lock is taken; `hasWriter` tells whether somebody is about
    /// to write.
    private let findOverlay: (_ hasWriter: Bool) throws(DatabaseError) -> (any PageOverlay)?
    private var overlay: (any PageOverlay)?
    /// Why the file could not be opened. SQLite only returns a code.
    private var failure: DatabaseError?
    private let name: UnsafeMutablePointer<CChar>
    private let vfs: UnsafeMutablePointer<sqlite3_vfs>
    fileprivate let system: UnsafeMutablePointer<sqlite3_vfs>

    init(
        path: String,
        lockTimeout: Double?,
        overlay: @escaping (_ hasWriter: Bool) throws(DatabaseError) -> (any PageOverlay)?
    ) throws(DatabaseError) {
        Engine.start()
        guard let system = sqlite3_vfs_find(nil) else {
            throw DatabaseError(extendedCode: SQLITE_ERROR, message: "SQLite has no VFS.")
        }
        let address = GuardedVFS.prefix + "view-" + (try FileSystem.randomName())
        guard let name = strdup(address) else { throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory.") }
        self.path = path
        self.lockTimeout = lockTimeout
        self.findOverlay = overlay
        self.system = system
        self.name = name
        vfs = .allocate(capacity: 1)
        vfs.initialize(to: system.pointee)
        vfs.pointee.zName = UnsafePointer(name)
        vfs.pointee.pNext = nil
        vfs.pointee.szOsFile = Int32(ViewedFile.headSize) + system.pointee.szOsFile
        vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
        vfs.pointee.xOpen = ViewedFile.open
        vfs.pointee.xDelete = { _, _, _ in SQLITE_READONLY }
    }

    deinit {
        vfs.deallocate()
        free(name)
    }

    /// Opens the file without a key. The connection must retain this view.
    func open(_ gate: ThreadGate?) throws(DatabaseError) -> Connection {
        let code = sqlite3_vfs_register(vfs, 0)
        guard code == SQLITE_OK else { throw DatabaseError(extendedCode: code, message: "Cannot look at \(path).") }
        // SQLite finds the VFS by name now, and uses its address afterwards. If it stays registered, that does no harm.
        defer { _ = sqlite3_vfs_unregister(vfs) }
        do throws(DatabaseError) {
            return try Connection(
                path: path,
                flags: SQLITE_OPEN_READONLY,
                vfs: String(cString: name),
                gate: gate
            )
        } catch {
            throw failure ?? error
        }
    }

    // MARK: The file

    /// Prepares the view. Called when SQLite has opened the file.
    /// - Returns: a result code of SQLite.
    fileprivate func begin(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
        do throws(DatabaseError) {
            var hasWriter: Int32 = 0
            if let lockTimeout {
                try lock(file, lockTimeout)
                let code = file.pointee.pMethods.pointee.xCheckReservedLock(file, &hasWriter)
                guard code == SQLITE_OK else {
                    throw DatabaseError(extendedCode: code, message: "Cannot examine the locks of \(path).")
                }
            }
            overlay = try findOverlay(hasWriter != 0)
            return SQLITE_OK
        } catch {
            failure = error
            return error.extendedCode == SQLITE_OK ? SQLITE_CANTOPEN : error.extendedCode
        }
    }

    /// Takes SQLite's shared lock, which ends when the file is closed.
    private func lock(_ file: UnsafeMutablePointer<sqlite3_file>, _ timeout: Double) throws(DatabaseError) {
        var patience = Patience(seconds: timeout)
        while true {
            let code = file.pointee.pMethods.pointee.xLock(file, SQLITE_LOCK_SHARED)
            if code == SQLITE_OK { return }
            guard code & 0xff == SQLITE_BUSY else {
                throw DatabaseError(extendedCode: code, message: "Cannot lock \(path).")
            }
            guard patience.wait() else {
                let holders = LockHolders.of(path)
                let names = holders.isEmpty ? "another process" : holders.joined(separator: ", ")
                throw DatabaseError(
                    extendedCode: SQLITE_BUSY,
                    reason: .busy,
                    message: "\(path) is locked by \(names), which writes to it. Try again."
                )
            }
        }
    }

    fileprivate func size(_ file: UnsafeMutablePointer<sqlite3_file>) -> (code: Int32, size: Int64) {
        if let overlay { return (SQLITE_OK, overlay.pageCount * Int64(overlay.pageSize)) }
        var size: sqlite3_int64 = 0
        let code = file.pointee.pMethods.pointee.xFileSize(file, &size)
        return (code, size)
    }

    fileprivate func read(
        _ file: UnsafeMutablePointer<sqlite3_file>,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) -> Int32 {
        guard let overlay else { return readFile(file, buffer, offset) }
        let size = overlay.pageCount * Int64(overlay.pageSize)
        var done = 0
        while done < buffer.count, offset + Int64(done) < size {
            let place = offset + Int64(done)
            let start = Int(place % Int64(overlay.pageSize))
            let count = min(overlay.pageSize - start, buffer.count - done)
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count])
            do throws(DatabaseError) {
                if let bytes = try overlay.bytes(
                    ofPage: place / Int64(overlay.pageSize) + 1,
                    from: start,
                    count: count
                ) {
                    part.copyBytes(from: bytes)
                } else {
                    let code = readFile(file, part, place)
                    guard code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ else { return code }
                }
            } catch {
                return SQLITE_IOERR
            }
            done += count
        }
        guard done < buffer.count else { return SQLITE_OK }
        UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).initializeMemory(as: UInt8.self, repeating: 0)
        return SQLITE_IOERR_SHORT_READ
    }

    private func readFile(
        _ file: UnsafeMutablePointer<sqlite3_file>,
        _ buffer: UnsafeMutableRawBufferPointer,
        _ offset: Int64
    ) -> Int32 {
        file.pointee.pMethods.pointee.xRead(file, buffer.baseAddress, Int32(buffer.count), offset)
    }
}

/// The layout of an opened file in SQLite's memory: the methods, the view, and the file of the system's VFS.
private enum ViewedFile {
    static let headSize = 16

    private static func base(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
        (UnsafeMutableRawPointer(file) + headSize).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func view(_ file: UnsafeMutablePointer<sqlite3_file>) -> FileView {
        let pointer = UnsafeMutableRawPointer(file).load(fromByteOffset: 8, as: UnsafeMutableRawPointer.self)
        return Unmanaged<FileView>.fromOpaque(pointer).takeUnretainedValue()
    }

    static let open:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, sqlite3_filename?, UnsafeMutablePointer<sqlite3_file>?, Int32,
            UnsafeMutablePointer<Int32>?
        ) -> Int32 = { vfs, name, file, flags, outFlags in
            let file = file!
            let context = vfs!.pointee.pAppData!
            let view = Unmanaged<FileView>.fromOpaque(context).takeUnretainedValue()
            file.pointee.pMethods = nil
            let system = view.system
            // Temporary files do not belong to the store.
            guard flags & SQLITE_OPEN_MAIN_DB != 0 else {
                return system.pointee.xOpen(system, name, file, flags, outFlags)
            }
            let own = base(file)
            let code = system.pointee.xOpen(system, name, own, flags, outFlags)
            guard code == SQLITE_OK else { return code }
            let begun = view.begin(own)
            guard begun == SQLITE_OK else {
                _ = own.pointee.pMethods.pointee.xClose(own)  // Only read from.
                return begun
            }
            // The file may outlive the owner of the connection, while something on it is in use. So the file retains
            // the view.
            UnsafeMutableRawPointer(file).storeBytes(
                of: Unmanaged.passRetained(view).toOpaque(),
                toByteOffset: 8,
                as: UnsafeMutableRawPointer.self
            )
            file.pointee.pMethods = UnsafePointer(methods)
            return SQLITE_OK
        }

    /// The method table. It never changes after it is made.
    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        var table = sqlite3_io_methods.ofImmutableFile
        table.xClose = { file in
            let own = base(file!)
            let code = own.pointee.pMethods.pointee.xClose(own)
            Unmanaged.passUnretained(view(file!)).release()
            return code
        }
        table.xRead = { file, buffer, count, offset in
            let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: Int(count))
            return PageWatch.note(read: view(file!).read(base(file!), into: buffer, at: offset))
        }
        table.xFileSize = { file, size in
            let (code, bytes) = view(file!).size(base(file!))
            size?.pointee = bytes
            return code
        }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: table)
        return pointer
    }()
}

extension sqlite3_io_methods {
    /// Those of a file that nobody writes to: no call changes it, and it needs no lock but the one that it may have already. The
    /// caller adds how it is closed, read and measured. <https://www.sqlite.org/c3ref/io_methods.html>
    static var ofImmutableFile: sqlite3_io_methods {
        var table = sqlite3_io_methods()
        table.iVersion = 1
        table.xWrite = { _, _, _, _ in SQLITE_READONLY }
        table.xTruncate = { _, _ in SQLITE_READONLY }
        table.xSync = { _, _ in SQLITE_OK }
        table.xLock = { _, _ in SQLITE_OK }
        table.xUnlock = { _, _ in SQLITE_OK }
        table.xCheckReservedLock = { _, isReserved in
            isReserved?.pointee = 0
            return SQLITE_OK
        }
        table.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        table.xSectorSize = { _ in 4096 }
        table.xDeviceCharacteristics = { _ in SQLITE_IOCAP_IMMUTABLE }
        return table
    }
}
