import Foundation
import Testing

@testable import SealedDB

/// A link may lead to a directory whose name is not UTF-8. Repaired to a text, that name may be the one of another
/// directory, with another store.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct NamesThatAreNotTextTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let name = Array((directory.path + "/x").utf8) + [0xff]
        try name.withCString { bytes in
            guard mkdir(bytes, 0o700) == 0, symlink(bytes, directory.file("link")) == 0 else {
                throw CocoaError(.fileWriteUnknown)
            }
        }
        let twin = directory.file("x\u{fffd}")
        try FileManager.default.createDirectory(atPath: twin, withIntermediateDirectories: false)
        // SQLite makes this one itself, because our own connection refuses the path.
        try Database.testing(twin + "/db").fill(rows: 3)
        try FileManager.default.copyItem(atPath: twin + "/db", toPath: directory.file("link/db"))
        try directory.write("x\u{fffd}/key", Array(String(repeating: "01", count: 32).utf8))
        try FileManager.default.copyItem(atPath: twin + "/key", toPath: directory.file("link/key"))
        try directory.write("new", Array(String(repeating: "02", count: 32).utf8))
    }

    /// Whoever tells of it gives this reason, and not one that is left from another call.
    @Test func thePathHasNoText() {
        errno = 0
        #expect(FileSystem.resolve(directory.file("link/db")) == nil)
        #expect(errno == EILSEQ)
    }

    @Test func theTwinIsLeftAlone() throws {
        let (key, new) = (try Key.testing(1), try Key.testing(2))
        let path = directory.file("link/db")
        let before = try [directory.bytes("x\u{fffd}/db"), directory.bytes("link/db")]
        func expectRefusal(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) {
            let error = #expect(throws: DatabaseError.self, sourceLocation: sourceLocation) { try body() }
            #expect(error?.message.isEmpty == false, sourceLocation: sourceLocation)
        }
        expectRefusal { try Database(path: path, configuration: Configuration(key: key)).openVerified() }
        expectRefusal { _ = try Connection(path: path, flags: SQLITE_OPEN_READWRITE) }
        #expect(filesOpen(below: directory) == [])
        expectRefusal { _ = try KeyRotation(path: path, from: key, to: new).run() }
        expectRefusal { _ = try StoreBackup(path: path, key: key, to: directory.file("copy")).run() }
        expectRefusal { _ = try StoreRestore(backupPath: path, key: key, to: directory.file("copy")).run() }
        expectRefusal { _ = try IntegrityReport.verify(path: path, key: key) }
        expectRefusal {
            let ours = directory.file("ours")
            try Database.testing(ours).close()
            let database = Database(path: ours, configuration: Configuration(key: key))
            try database.openVerified()
            defer { database.close() }
            try database.attach(path, as: "other", key: key)
        }
        expectRefusal {
            _ = try KeyFileReplacement(
                .keyFile(directory.file("link/key")),
                by: .keyFile(directory.file("new")),
                ending: ".old"
            )
        }
        #expect(try [directory.bytes("x\u{fffd}/db"), directory.bytes("link/db")] == before)
        #expect(!directory.names.contains("copy"))
    }
}

extension [UInt8] {
    fileprivate func withCString<T>(_ body: (UnsafePointer<CChar>) throws -> T) rethrows -> T {
        try (self + [0]).withUnsafeBytes { try body($0.bindMemory(to: CChar.self).baseAddress!) }
    }
}
