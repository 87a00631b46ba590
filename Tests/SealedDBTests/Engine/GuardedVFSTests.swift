import Foundation
import SQLiteEngine
import Testing

@testable import SealedDB

/// The VFS that stands before SQLite's own, or before another one.
@Suite(.hangLimit)
struct GuardedVFSTests {
    @Test func theLibrarysOwnAreNotGuardedAgain() throws {
        let name = try GuardedVFS.name(guarding: nil)
        #expect(name.hasPrefix(GuardedVFS.prefix))
        #expect(try GuardedVFS.name(guarding: name) == name)
        #expect(sqlite3_vfs_find(GuardedVFS.prefix + name) == nil)
    }

    /// The methods of SQLite's own files.
    private static let methods = Guarded<UnsafePointer<sqlite3_io_methods>?>(nil)

    /// Whatever it is due to: a new store whose first page is plaintext gets no data.
    @Test(.enabled(if: isEncrypting, "needs a codec")) func aFirstPageInPlaintextIsRefused() throws {
        let system = try #require(sqlite3_vfs_find(nil))
        // Both stay for the life of the process, as the one that guards it does.
        let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        own.initialize(to: system.pointee)
        own.pointee.zName = UnsafePointer(strdup("revealer"))
        own.pointee.pNext = nil
        own.pointee.xOpen = { vfs, name, file, flags, outFlags in
            let code = sqlite3_vfs_find(nil).pointee.xOpen(vfs, name, file, flags, outFlags)
            guard code == 0, flags & SQLITE_OPEN_MAIN_DB != 0, let file else { return code }
            let revealing = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            revealing.initialize(to: file.pointee.pMethods.pointee)
            GuardedVFSTests.methods.withLock { $0 = file.pointee.pMethods }
            revealing.pointee.xWrite = { file, bytes, count, offset in
                var page = Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
                if offset == 0, page.count >= 100 {
                    page.replaceSubrange(0..<16, with: StoreHeader.plaintextMagic)
                    page.replaceSubrange(72..<92, with: [UInt8](repeating: 0, count: 20))
                }
                let methods = GuardedVFSTests.methods.withLock { $0 }
                return methods!.pointee.xWrite(file, page, count, offset)
            }
            file.pointee.pMethods = UnsafePointer(revealing)
            return code
        }
        #expect(sqlite3_vfs_register(own, 0) == 0)
        let directory = try TemporaryDirectory()
        let database = Database(path: directory.file("db"), configuration: Configuration(key: try .testing(1)))
        let flags = SealedDB.SQLITE_OPEN_READWRITE | SealedDB.SQLITE_OPEN_CREATE
        #expect(!database.open(withFlags: flags, vfs: "revealer"))
        let error = database.lastError() as? DatabaseError
        #expect(error?.reason == .wrongEngine, "\(error as Any)")
        #expect(error?.message.contains("was created in plaintext") == true, "\(error as Any)")
        #expect(!database.isOpen)
    }

    /// What another VFS's calls were given: its own address, behind which it may keep more than SQLite knows of.
    private static let given = Guarded<[String: Int]>([:])

    @Test func whatIsGuardedIsCalledWithItself() throws {
        let system = try #require(sqlite3_vfs_find(nil))
        let name = "sleeper"
        // Both stay for the life of the process, as the one that guards it does.
        let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        own.initialize(to: system.pointee)
        own.pointee.zName = UnsafePointer(strdup(name))
        own.pointee.pNext = nil
        own.pointee.xSleep = { vfs, microseconds in
            GuardedVFSTests.given.withLock { $0["xSleep"] = Int(bitPattern: vfs) }
            return microseconds
        }
        own.pointee.xRandomness = { vfs, count, _ in
            GuardedVFSTests.given.withLock { $0["xRandomness"] = Int(bitPattern: vfs) }
            return count
        }
        own.pointee.xCurrentTime = { vfs, _ in
            GuardedVFSTests.given.withLock { $0["xCurrentTime"] = Int(bitPattern: vfs) }
            return 0
        }
        own.pointee.xCurrentTimeInt64 = { vfs, _ in
            GuardedVFSTests.given.withLock { $0["xCurrentTimeInt64"] = Int(bitPattern: vfs) }
            return 0
        }
        own.pointee.xGetLastError = { vfs, _, _ in
            GuardedVFSTests.given.withLock { $0["xGetLastError"] = Int(bitPattern: vfs) }
            return 0
        }
        #expect(sqlite3_vfs_register(own, 0) == 0)
        let guarding = try #require(sqlite3_vfs_find(GuardedVFS.name(guarding: name)))
        #expect(guarding != own)
        var (time, bytes) = (0.0, CChar(0))
        var milliseconds: sqlite3_int64 = 0
        #expect(guarding.pointee.xSleep(guarding, 7) == 7)
        #expect(guarding.pointee.xRandomness(guarding, 1, &bytes) == 1)
        #expect(guarding.pointee.xCurrentTime(guarding, &time) == 0)
        #expect(guarding.pointee.xCurrentTimeInt64(guarding, &milliseconds) == 0)
        #expect(guarding.pointee.xGetLastError(guarding, 0, nil) == 0)
        let names = ["xSleep", "xRandomness", "xCurrentTime", "xCurrentTimeInt64", "xGetLastError"]
        for name in names { #expect(GuardedVFSTests.given.withLock { $0[name] } == Int(bitPattern: own), "\(name)") }
    }
}
