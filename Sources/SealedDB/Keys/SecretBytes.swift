internal import CSealedDBSystem
import Foundation

/// Bytes that must not get out: in locked pages (where the limits allow), left out of core dumps, wiped when freed.
///
/// Sendable because the bytes never change after `init`.
final class SecretBytes: @unchecked Sendable {
    private let pages: UnsafeMutableRawPointer
    let count: Int

    /// Lets `fill` write up to `capacity` bytes and return how many count.
    init(capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Int) throws(DatabaseError) {
        guard let pages = sealeddb_secret_allocate(capacity) else {
            throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for a key. Nothing was changed.")
        }
        do throws(DatabaseError) {
            count = try fill(UnsafeMutableRawBufferPointer(start: pages, count: capacity))
        } catch {
            sealeddb_secret_free(pages, capacity)
            throw error
        }
        self.pages = pages
        self.capacity = capacity
    }

    private let capacity: Int

    deinit {
        sealeddb_secret_free(pages, capacity)
    }

    convenience init(copying bytes: UnsafeRawBufferPointer) throws(DatabaseError) {
        try self.init(capacity: bytes.count) { target throws(DatabaseError) in
            target.copyMemory(from: bytes)
            return bytes.count
        }
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: pages, count: count) }

    /// Takes the same time wherever the first difference is.
    func isEqual(to other: SecretBytes) -> Bool {
        guard count == other.count else { return false }
        return zip(bytes, other.bytes).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
