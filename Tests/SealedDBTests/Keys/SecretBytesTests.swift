import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct SecretBytesTests {
    /// Looks where each kind of page with a secret was: whatever is there by now, it is not the secret.
    @Test func noSecretStaysInMemory() throws {
        let secret = (0..<48).map { UInt8(truncatingIfNeeded: 0x5B &+ $0 &* 37) }
        var places: [Int] = []
        func note(_ bytes: UnsafeRawBufferPointer) {
            #expect(bytes.elementsEqual(secret))
            places.append(Int(bitPattern: bytes.baseAddress))
        }
        do {
            let kept = try secret.withUnsafeBytes { bytes throws(DatabaseError) in try SecretBytes(copying: bytes) }
            try kept.withBytes { bytes throws(DatabaseError) in note(bytes) }
            try SecretBytes.withScratch(count: secret.count) { pages throws(DatabaseError) in
                pages.copyBytes(from: secret)
                note(UnsafeRawBufferPointer(pages))
            }
            let scratch = try SecretScratch(count: secret.count)
            scratch.bytes.copyBytes(from: secret)
            note(UnsafeRawBufferPointer(scratch.bytes))
        }
        #expect(places.count == 3)
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        for (index, place) in places.enumerated() {
            var found = [UInt8](repeating: 0, count: secret.count)
            // Nothing can be read where nothing is.
            _ = pread(memory, &found, found.count, place)
            #expect(found != secret, "\(index)")
        }
    }

    /// A page that served another secret is as empty as a new one.
    @Test func pagesThatAreKeptAreEmpty() throws {
        let size = 4096
        for count in [1, 64, size] {
            for _ in 0..<50 {
                let page = try #require(sealeddb_secret_allocate(count))
                #expect(UnsafeRawBufferPointer(start: page, count: size).allSatisfy { $0 == 0 })
                memset(page, 0xff, size)
                sealeddb_secret_free(page, count)
            }
        }
    }

    /// A failure while they are filled leaves no more than success does.
    @Test func whatFailsLeavesNothing() throws {
        let secret = (0..<48).map { UInt8(truncatingIfNeeded: 0x91 &+ $0 &* 29) }
        var places: [Int] = []
        let failure = DatabaseError(extendedCode: SQLITE_ERROR, message: "of the test")
        #expect(throws: failure) {
            _ = try SecretBytes(capacity: secret.count) { pages throws(DatabaseError) in
                pages.copyBytes(from: secret)
                places.append(Int(bitPattern: pages.baseAddress))
                throw failure
            }
        }
        #expect(throws: failure) {
            try SecretBytes.withScratch(count: secret.count) { pages throws(DatabaseError) in
                pages.copyBytes(from: secret)
                places.append(Int(bitPattern: pages.baseAddress))
                throw failure
            }
        }
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0 && places.count == 2)
        defer { close(memory) }
        for place in places {
            var found = [UInt8](repeating: 0, count: secret.count)
            // As above.
            _ = pread(memory, &found, found.count, place)
            #expect(found != secret)
        }
    }
}
