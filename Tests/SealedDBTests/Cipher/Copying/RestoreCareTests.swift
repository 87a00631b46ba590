import Foundation
import Testing

@testable import SealedDB

/// A restore over a store with slots that cannot come to its end: the store and its slots are as they were.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RestoreCareTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try Self.prepare(directory)
    }

    /// A store of 20 rows, and a backup of 10. Each has slots of the key 1.
    private static func prepare(_ directory: TemporaryDirectory) throws {
        for (name, rows) in [("old.db", 10), ("app.db", 20)] {
            let path = directory.file(name)
            _ = try KeySlots.create(path: path, [.init(.key(.testing(1)), label: "ops")])
            let database = Database(path: path, configuration: Configuration(key: try .testing(1)))
            try database.openVerified()
            try database.fill(rows: rows)
            database.close()
        }
        try StoreBackup(path: directory.file("old.db"), key: .testing(1), to: directory.file("copy.db")).run()
        for ending in ["", ".slots", ".slots.2"] { unlink(directory.file("old.db" + ending)) }
        unlink(directory.file("old.db-sealdb-lock"))
    }

    private static func restore(_ directory: TemporaryDirectory, _ key: Key? = nil) throws -> StoreRestore {
        StoreRestore(
            backupPath: directory.file("copy.db"),
            key: try key ?? .testing(1),
            to: directory.file("app.db")
        )
    }

    private func expectUnchanged(_ directory: TemporaryDirectory, _ comment: Comment = "") throws {
        let names = ["app.db", "app.db.slots", "app.db.slots.2", "copy.db", "copy.db.slots", "copy.db.slots.2"]
        #expect(directory.namesOfFiles == names, comment)
        let database = Database(path: directory.file("app.db"), configuration: Configuration(key: try .testing(1)))
        try database.openVerified()
        defer { database.close() }
        #expect(try database.integers("SELECT count(*) FROM t") == [20], comment)
    }

    /// Somebody who has the file open, without a lock of SQLite or of ours, until the end of the body.
    private func whileItIsOpen(_ body: (@escaping () throws -> Void) throws -> Void) throws {
        let (holder, input, output) = (Process(), Pipe(), Pipe())
        holder.executableURL = URL(fileURLWithPath: "/bin/sh")
        holder.arguments = ["-c", "exec 9<>'\(directory.file("app.db"))'; echo ready; read line"]
        holder.standardInput = input
        holder.standardOutput = output
        try body {
            try holder.run()
            #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
        }
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
    }

    /// It is found before the backup is copied, and again before the swap.
    @Test(arguments: [false, true]) func whoHasTheStoreOpen(comesLater: Bool) throws {
        var (isOpen, isCopied) = (false, false)
        try whileItIsOpen { open in
            if !comesLater { try open() }
            let error = #expect(throws: DatabaseError.self) {
                try Self.restore(directory).run { state in
                    if state.phase == .copy { isCopied = true }
                    guard comesLater, isCopied, !isOpen, state.phase != .copy else { return }
                    isOpen = true
                    try open()
                }
            }
            #expect(error?.reason == .busy && isCopied == comesLater, "\(error as Any)")
            #expect(error?.message.hasPrefix("Nothing was restored, and") == true, "\(error as Any)")
        }
        try expectUnchanged(directory)
    }

    /// What gives the old store and its slots their second names, and the new one its own.
    @Test func whateverNameCannotBeGiven() throws {
        let model = try TemporaryDirectory()
        try Self.prepare(model)
        let count = CallWatch(model.path)
        _ = try Self.restore(model).run()
        let calls = count.endWithAll().map { String($0.prefix { $0 != " " }) }
        var failures = 0
        for call in ["link", "rename", "renameat2"] {
            for number in 0..<calls.count(where: { $0 == call }) {
                let failed = try FailedCall(call, EPERM, number: number, prepare: Self.prepare) { directory in
                    _ = try Self.restore(directory).run()
                }
                guard let error = failed.error, error.message.hasPrefix("Nothing was restored") else { continue }
                failures += 1
                try expectUnchanged(failed.directory, "\(call) \(number): \(error)")
            }
        }
        #expect(failures > 2, "\(calls)")
    }

    /// The slots open by a key that can be read again, or nothing is restored.
    @Test(arguments: [false, true]) func aKeyThatIsGone(isReplaced: Bool) throws {
        let file = try directory.write("key", Data(String(repeating: "01", count: 32).utf8))
        let key = try KeySource.keyFile(file).key()
        if !isReplaced {
            for ending in ["", ".slots", ".slots.2"] { unlink(directory.file("app.db" + ending)) }
        }
        var isCopied = false
        let error = #expect(throws: DatabaseError.self) {
            if !isReplaced { unlink(file) }
            try Self.restore(directory, key).run { state in
                if state.phase == .copy { isCopied = true }
                if isReplaced, isCopied, state.phase != .copy { unlink(file) }
            }
        }
        #expect(error?.reason == .keySourceFailed || error?.reason == .noSuchFile, "\(error as Any)")
        #expect(isCopied == isReplaced)
        if isReplaced {
            try expectUnchanged(directory)
        } else {
            #expect(directory.namesOfFiles == ["copy.db", "copy.db.slots", "copy.db.slots.2"])
        }
    }
}
