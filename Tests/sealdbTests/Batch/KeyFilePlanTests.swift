import Foundation
import SealedDB
import Testing

@testable import sealdb

/// A key file that several stores use is replaced when all of them have the key that takes its place, and not before.
@Suite(.hangLimit)
struct KeyFilePlanTests {
    private let sandbox: Sandbox
    private let stores: [StoreItem]
    private let plan: KeyFilePlan

    init() throws {
        let sandbox = try Sandbox()
        self.sandbox = sandbox
        stores = try (1...7).map { try StoreItem("/nowhere/s\($0)") }
        let files: KeyFilePlan.Origins = (
            old: .source(.keyFile(sandbox.path("key"))), new: .source(.keyFile(sandbox.path("new")))
        )
        plan = try KeyFilePlan(stores, ending: ".old") { _ in files }
    }

    private func key(_ byte: UInt8) throws -> Key {
        try [UInt8](repeating: byte, count: 32).withUnsafeBytes { try Key.raw($0) }
    }

    /// - Returns: whether the file is to be replaced now.
    private func complete(_ store: StoreItem, _ byte: UInt8 = 1) throws -> Bool {
        plan.hold(try key(byte), of: store)
        return try plan.completed(by: store) != nil
    }

    @Test func theLastStoreReplacesIt() throws {
        for store in stores.dropLast() { #expect(try !complete(store)) }
        try plan.hold(key(1), of: stores[6], replacing: key(9))
        let (files, new, old) = try #require(try plan.completed(by: stores[6]))
        #expect(files.newFile.hasSuffix("/new") && files.formerFile.hasSuffix("/key.old"))
        #expect(try new == key(1))
        #expect(try old == key(9))
        #expect(plan.remarks == [])
    }

    /// Otherwise the key of the others would be in no file any more.
    @Test func anotherKeyFromTheSameFile() throws {
        for store in stores.dropLast() { #expect(try !complete(store)) }
        let failure = #expect(throws: Failure.self) { _ = try complete(stores[6], 2) }
        #expect(failure?.status == .unavailable)
        #expect(failure?.message.contains("was changed while the stores got the key") == true)
        #expect(plan.remarks.count == 1)
        // As when the file has the former key again.
        #expect(try complete(stores[6]))
    }

    /// Each key is taken once: of a store that says so again, nothing is known.
    @Test func aStoreWhoseKeyIsNotKnown() throws {
        #expect(try !complete(stores[0]))
        for store in [stores[0], stores[1]] {
            let failure = #expect(throws: Failure.self) { _ = try plan.completed(by: store) }
            #expect(failure?.status == .software)
        }
    }

    /// The remark names five stores, and says whether there are more.
    @Test func storesThatMayHaveTheOldKey() throws {
        // None has the new key.
        #expect(plan.remarks == [])
        #expect(try !complete(stores[0]))
        let six = try #require(plan.remarks.first)
        let names = stores.map(\.name)
        #expect(six.contains(": \(names[1...5].joined(separator: ", ")), …. Keep it"), "\(six)")
        #expect(try !complete(stores[6]))
        let five = try #require(plan.remarks.first)
        #expect(five.contains(": \(names[1...5].joined(separator: ", ")). Keep it"), "\(five)")
    }
}
