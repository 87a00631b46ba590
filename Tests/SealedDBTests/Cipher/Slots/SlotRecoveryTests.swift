import Foundation
import Testing

@testable import SealedDB

/// Recovery of stores with key slots by keys that know their data key, or are given another salt.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct SlotRecoveryTests {
    private let store: SlotStore

    init() throws { store = try SlotStore() }

    private func recovery(_ path: String, _ key: Key, salt: [UInt8]? = nil) throws -> StoreRecovery {
        StoreRecovery(path: path, key: key, salt: salt, to: store.directory.file("new.db"), newKey: try .testing(9))
    }

    /// Without slots beside it, what the key knows from the original counts for nothing, as when such a copy is opened.
    @Test func aCopyWithoutSlots() throws {
        let key = try Key.testing(1)
        #expect(try store.count(key) == 20)
        let copy = store.directory.file("copy.db")
        try FileManager.default.copyItem(atPath: store.path, toPath: copy)
        let error = #expect(throws: DatabaseError.self) { try recovery(copy, key).run() }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        #expect(!store.directory.names.contains("new.db"))
        #expect(try recovery(store.path, key).run().tables.first { $0.name == "t" }?.rowCount == 20)
    }

    /// The salt that was given holds, whatever salts the slots have.
    @Test func anotherSalt() throws {
        let error = #expect(throws: DatabaseError.self) {
            try recovery(store.path, .testing(1), salt: Array(1...16)).run()
        }
        #expect(error?.reason == .wrongKey, "\(String(describing: error))")
        #expect(error?.message.hasPrefix("No page of") == true, "\(String(describing: error))")
        let salt = try Array(store.directory.bytes("app.db").prefix(16))
        #expect(try recovery(store.path, .testing(1), salt: salt).run().tables.first { $0.name == "t" }?.rowCount == 20)
    }
}
