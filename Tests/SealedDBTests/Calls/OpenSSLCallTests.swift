import Foundation
import Testing

@testable import SealedDB

/// Whatever call of OpenSSL fails while keys are made, derived, wrapped and changed, it is told, and every key that opened a
/// store opens it. What is done with whole stores is swept by the other suites, call of OpenSSL by call.
@Suite(.enabled(if: isEncrypting, "needs a codec"), .hangLimit)
struct OpenSSLCallTests {
    private static let rows = 20
    /// With it OpenSSL also tells that a key is another one.
    private static let answers: Set = ["EVP_DecryptFinal_ex"]

    private static func slots(_ directory: TemporaryDirectory, _ byte: UInt8 = 1) throws -> KeySlots {
        KeySlots(path: directory.file("db"), key: try .testing(byte))
    }

    private static func makeStore(_ directory: TemporaryDirectory) throws {
        _ = try KeySlots.create(
            path: directory.file("db"),
            [.init(.key(.testing(1)), label: "ops"), .init(.key(.testing(2)), label: "safe", isRecovery: true)]
        )
        let database = try open(directory, .testing(1))
        try database.fill(rows: rows)
        try #require(database.close())
    }

    private static func open(_ directory: TemporaryDirectory, _ key: Key) throws -> Database {
        var configuration = Configuration(key: key)
        configuration.createsFile = false
        let database = Database(path: directory.file("db"), configuration: configuration)
        try database.openVerified()
        return database
    }

    private static func requireRows(_ directory: TemporaryDirectory, _ keys: Key...) throws {
        for key in keys {
            let database = try open(directory, key)
            defer { database.close() }
            try #require(try database.integers("SELECT count(*) FROM t") == [rows])
        }
    }

    /// It may work the next time, so nobody gives up.
    @Test func aDerivationThatFails() throws {
        let secret = try SecretBytes(capacity: 1) { target throws(DatabaseError) in 1 }
        let watch = CallWatch(openSSLFailing: 0...0)
        let result = Result { try KeyDerivation(algorithm: .sha512, iterations: 2).key(from: secret, salt: [1]) }
        let call = watch.end(describing: 0)
        let error = #expect(throws: DatabaseError.self) { _ = try result.get() }
        #expect(
            call?.contains("PBKDF2") == true && error?.code == SQLITE_NOMEM && error?.reason != .unsupported,
            "\(call as Any)"
        )
    }

    @Test func storesWithAPassphrase() throws {
        let sweep = CallSweep(
            prepare: { _ in },
            run: { directory in
                let database = Database(
                    path: directory.file("db"),
                    configuration: Configuration(key: try .passphrase("open sesame"))
                )
                try database.openVerified()
                defer { database.close() }
                try database.execute(script: "DROP TABLE IF EXISTS t")
                try database.fill(rows: Self.rows)
            },
            check: { if $1 == .done { try Self.requireRows($0, .passphrase("open sesame")) } },
            state: { $0.message.hasPrefix("The transaction may be stored") ? .either : .undone },
            callsBetween: 0
        )
        try sweep(.openSSL)
    }

    @Test func creationOfSlots() throws {
        let sweep = CallSweep(
            prepare: { _ in },
            run: { directory in
                _ = try KeySlots.create(
                    path: directory.file("db"),
                    [.quick("open sesame", label: "words"), .init(.key(.testing(2)), label: "safe", isRecovery: true)]
                )
            },
            check: { directory, state in
                if state == .undone { return try #require(!directory.names.contains("db")) }
                guard state == .done else { return }
                let keys = [try Key.passphrase("open sesame"), try .testing(2)]
                for key in keys { try #require(Self.open(directory, key).close()) }
            },
            state: { $0.message.contains("was made, and is empty") ? .either : .undone },
            callsBetween: 0,
            answers: Self.answers
        )
        try sweep(.openSSL)
    }

    @Test func slotsThatAreAddedAndRemoved() throws {
        let sweep = CallSweep(
            prepare: { try Self.makeStore($0) },
            run: { directory in
                let slots = try Self.slots(directory)
                let labels = try slots.list().slots.map(\.label)
                if !labels.contains("third") { _ = try slots.add(.init(.key(.testing(3)), label: "third")) }
                if labels.contains("safe") { _ = try Self.slots(directory, 3).remove("safe") }
            },
            check: { directory, state in
                try Self.requireRows(directory, .testing(1))
                let labels = try Self.slots(directory).list().slots.map(\.label)
                if state == .done { try #require(labels == ["ops", "third"]) }
                if labels.contains("third") { try Self.requireRows(directory, .testing(3)) }
                if labels.contains("safe") { try Self.requireRows(directory, .testing(2)) }
            },
            answers: Self.answers
        )
        try sweep(.openSSL)
    }

    @Test func aSlotThatGetsAnotherKey() throws {
        let sweep = CallSweep(
            prepare: { try Self.makeStore($0) },
            run: { directory in
                do { _ = try Self.slots(directory).replace(with: .testing(3)) } catch let error as DatabaseError {
                    // An earlier run may have done it, and said so.
                    guard error.reason == .wrongKey, try Self.slots(directory, 3).test().label == "ops" else {
                        throw error
                    }
                }
            },
            check: { directory, state in
                try Self.requireRows(directory, .testing(2))
                let isOpenedByOld = (try? Self.requireRows(directory, .testing(1))) != nil
                if isOpenedByOld { try #require(state != .done) } else { try Self.requireRows(directory, .testing(3)) }
                if state == .undone { try #require(isOpenedByOld) }
            },
            state: { error in
                for words in ["has the change", "may be"] where error.message.contains(words) { return .either }
                return .undone
            },
            answers: Self.answers
        )
        try sweep(.openSSL)
    }

    @Test func newDataKeys() throws {
        let sweep = CallSweep(
            prepare: { try Self.makeStore($0) },
            run: { _ = try Self.slots($0).reencrypt() },
            check: { directory, state in
                try Self.requireRows(directory, .testing(1))
                // A key that was not given has no slot for the new data key.
                if state == .undone { try Self.requireRows(directory, .testing(2)) }
            },
            state: { $0.message.contains("The store has the new data key") ? .either : .undone },
            answers: Self.answers
        )
        try sweep(.openSSL)
    }

    @Test func newDataKeysForAnotherKey() throws {
        let sweep = CallSweep(
            prepare: { try Self.makeStore($0) },
            run: { directory in
                let safe = KeySlots.NewSlot(.key(try .testing(2)), label: "safe", isRecovery: true)
                _ = try Self.slots(directory).reencrypt(replacingKeyBy: .testing(3), keeping: [safe])
            },
            check: { directory, state in
                try Self.requireRows(directory, .testing(2))
                if state != .either { try Self.requireRows(directory, .testing(state == .done ? 3 : 1)) }
            },
            state: { $0.message.contains("The store has the new") ? .either : .undone },
            answers: Self.answers
        )
        try sweep(.openSSL)
    }

    @Test func slotsAsText() throws {
        let sweep = CallSweep(
            prepare: { try Self.makeStore($0) },
            run: { directory in
                let text = try Self.slots(directory).export()
                _ = try Self.slots(directory).importSlots(text)
                try #require(try Self.slots(directory).test().label == "ops")
            },
            check: { directory, _ in try Self.requireRows(directory, .testing(1), .testing(2)) },
            answers: Self.answers
        )
        try sweep(.openSSL)
    }
}
