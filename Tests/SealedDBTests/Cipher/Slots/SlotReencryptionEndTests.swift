import Foundation
import Testing

@testable import SealedDB

/// What the slots list after a re-encryption whose end failed.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotReencryptionEndTests {
    /// The store has the new data key already. But a power failure may bring the old one back, so both stay listed.
    @Test func bothDataKeysStayAfterTheSwap() throws {
        let store = try SlotStore()
        let kept = store.directory.file("kept.db")
        let path = store.path
        let isReady = Guarded(false)
        // The last time it is asked, nothing but the swap is left to be done.
        let key = try KeySource.closure {
            if isReady.withLock({ $0 }), !FileSystem.exists(kept) { #expect(link(path, kept) == 0) }
            return try .testing(5)
        }.key()
        let slots = [KeySlots.NewSlot(.key(try .testing(2)), label: "safe")]
        let error = #expect(throws: DatabaseError.self) {
            try store.slots().reencrypt(replacingKeyBy: key, keeping: slots) { state in
                if state.phase == .verify { isReady.withLock { $0 = true } }
            }
        }
        #expect(error?.reason == .hardLinked, "\(error as Any)")
        #expect(error?.message.contains("The slots list the old and the new data key") == true, "\(error as Any)")
        let tables = SlotFiles(store: store.path).read().compactMap { $0.slots?.table }
        #expect(tables.map(\.dataKeys.count) == [2, 2])
        // The old file is the store again.
        #expect(rename(kept, path) == 0)
        #expect(try store.count(1) == 20)
    }
}
