internal import CSealedDBSystem
import Foundation

/// Secret bytes in memory. Their pages are locked (as far as the limits allow), left out of core dumps, and wiped when
/// freed. While they are not in use, they are masked by a random pad in other pages, so that no part of memory holds
/// them as they are.
///
/// Sendable because the bytes never change after `init`.
final class SecretBytes: @unchecked Sendable {
    let count: Int
    private let capacity: Int
    private let masked: UnsafeMutableRawPointer
    private let pad: UnsafeMutableRawPointer

    /// Lets `fill` write up to `capacity` bytes and return how many of them are part of the secret.
    init(capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Int) throws(DatabaseError) {
        let pages = try SecretBytes.allocate(capacity)
        do throws(DatabaseError) {
            count = try fill(UnsafeMutableRawBufferPointer(start: pages, count: capacity))
            pad = try SecretBytes.allocate(capacity)
        } catch {
            sealeddb_secret_free(pages, capacity)
            throw error
        }
        guard sealeddb_random(pad, capacity) == 0 else {
            let number = errno
            sealeddb_secret_free(pages, capacity)
            sealeddb_secret_free(pad, capacity)
            throw .system("No random bytes to mask a key with", reason: .ioError, number: number)
        }
        masked = pages
        self.capacity = capacity
        combine(into: pages, capacity)
    }

    deinit {
        sealeddb_secret_free(masked, capacity)
        sealeddb_secret_free(pad, capacity)
    }

    convenience init(copying bytes: UnsafeRawBufferPointer) throws(DatabaseError) {
        try self.init(capacity: bytes.count) { target throws(DatabaseError) in
            target.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Copies bytes that are no secret by themselves, as what a program is to unwrap.
    convenience init(copying bytes: [UInt8]) throws(DatabaseError) {
        try self.init(capacity: bytes.count) { target in
            target.copyBytes(from: bytes)
            return bytes.count
        }
    }

    static func allocate(_ capacity: Int) throws(DatabaseError) -> UnsafeMutableRawPointer {
        guard let pages = sealeddb_secret_allocate(capacity) else {
            throw DatabaseError(extendedCode: SQLITE_NOMEM, message: "No memory for a key. Nothing was changed.")
        }
        return pages
    }

    private func combine(into target: UnsafeMutableRawPointer, _ count: Int) {
        for position in 0..<count {
            let byte =
                masked.load(fromByteOffset: position, as: UInt8.self)
                ^ pad.load(fromByteOffset: position, as: UInt8.self)
            target.storeBytes(of: byte, toByteOffset: position, as: UInt8.self)
        }
    }

    /// Calls `body` with the unmasked bytes, in pages of the same kind that are wiped afterwards.
    func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        try SecretBytes.withScratch(count: count) { scratch throws(DatabaseError) in
            if let start = scratch.baseAddress { combine(into: start, count) }
            return try body(UnsafeRawBufferPointer(scratch))
        }
    }

    /// Calls `body` with pages for secrets. They are wiped afterwards.
    static func withScratch<T>(
        count: Int,
        _ body: (UnsafeMutableRawBufferPointer) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> T {
        let pages = try allocate(count)
        defer { sealeddb_secret_free(pages, count) }
        return try body(UnsafeMutableRawBufferPointer(start: pages, count: count))
    }

    /// Compares in constant time: the duration does not depend on where the bytes differ.
    func isEqual(to other: SecretBytes) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for position in 0..<count {
            difference |=
                masked.load(fromByteOffset: position, as: UInt8.self)
                ^ pad.load(fromByteOffset: position, as: UInt8.self)
                ^ other.masked.load(fromByteOffset: position, as: UInt8.self)
                ^ other.pad.load(fromByteOffset: position, as: UInt8.self)
        }
        return difference == 0
    }
}

/// Memory for secrets that come and go in a loop, like that of ``SecretBytes/withScratch(count:_:)``. It is wiped when
/// the object is released, so do not keep it longer than needed.
final class SecretScratch {
    /// Valid as long as this object is. Only one thread at a time may have it.
    let start: UnsafeMutableRawPointer
    private let count: Int

    var bytes: UnsafeMutableRawBufferPointer { .init(start: start, count: count) }

    init(count: Int) throws(DatabaseError) {
        start = try SecretBytes.allocate(count)
        self.count = count
    }

    deinit {
        sealeddb_secret_free(start, count)
    }
}
