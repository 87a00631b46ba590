import Foundation
import Testing

@testable import SealedDB

/// Settings compared with each other, without a store.
@Suite(.hangLimit)
struct SealingTests {
    private let salt = [UInt8](0..<16)

    /// What states a default has the effect of what leaves it out; and nothing else is the same.
    @Test func sameSettings() {
        #expect(CipherSettings().isSame(as: CipherSettings(pageSize: 4096, hmacAlgorithm: .sha512, usesHMAC: true)))
        #expect(CipherSettings(compatibility: .sqlCipher2, kdfIterations: 64_000).isSame(as: .sqlCipher3))
        for other in [
            CipherSettings(pageSize: 8192), CipherSettings(kdfIterations: 1000), CipherSettings(kdfAlgorithm: .sha256),
            CipherSettings(hmacAlgorithm: .sha256), CipherSettings(usesHMAC: false),
            CipherSettings(plaintextHeaderSize: 32, salt: salt),
        ] {
            #expect(!other.isSame(as: CipherSettings()) && other.isSame(as: other), "\(other)")
        }
        let one = CipherSettings(plaintextHeaderSize: 32, salt: salt)
        #expect(!one.isSame(as: CipherSettings(plaintextHeaderSize: 32, salt: salt.reversed())))
        #expect(!one.isSame(as: CipherSettings(plaintextHeaderSize: 32)))
    }

    /// Pages are taken over as they are only where they have the same size and the same room for codes.
    @Test func layouts() throws {
        let key = try Key.testing(1)
        let own = Sealing(key: key)
        let other = Sealing(key: try .testing(2), settings: CipherSettings(kdfIterations: 7, kdfAlgorithm: .sha1))
        #expect(own.hasLayout(of: own) && own.hasLayout(of: other) && Sealing().hasLayout(of: Sealing()))
        for settings in [
            CipherSettings(pageSize: 8192), CipherSettings(usesHMAC: false), CipherSettings(hmacAlgorithm: .sha256),
        ] {
            #expect(!own.hasLayout(of: Sealing(key: key, settings: settings)), "\(settings)")
        }
        #expect(!own.hasLayout(of: Sealing()) && !Sealing().hasLayout(of: own))
    }

    @Test func whatIsJustAllowed() {
        let allowed =
            [
                CipherSettings(pageSize: 1024), CipherSettings(pageSize: 65536), CipherSettings(kdfIterations: 1),
                CipherSettings(kdfIterations: Int(Int32.max)),
            ] + [16, 32, 48, 64].map { CipherSettings(plaintextHeaderSize: $0, salt: salt) }
        for settings in allowed { #expect(throws: Never.self, "\(settings)") { try settings.validate() } }
        let error = #expect(throws: DatabaseError.self) {
            try CipherSettings(kdfIterations: Int(Int32.max) + 1).validate()
        }
        #expect(error?.reason == .unusableSettings)
    }

    /// What was found out of a store is told so that it opens with that.
    @Test func settingsOfParameters() {
        for settings in [
            CipherSettings(), .sqlCipher1, .sqlCipher2, .sqlCipher3, CipherSettings(pageSize: 8192),
            CipherSettings(plaintextHeaderSize: 32, salt: salt),
            CipherSettings(pageSize: 8192, plaintextHeaderSize: 48, salt: salt),
            CipherSettings(compatibility: .sqlCipher3, plaintextHeaderSize: 16, salt: salt),
        ] {
            #expect(settings.parameters.settings(salt: settings.salt).isSame(as: settings), "\(settings)")
        }
        let older = CipherSettings(compatibility: .sqlCipher3, plaintextHeaderSize: 16, salt: salt)
        #expect(older.parameters.settings(salt: salt) == older)
    }
}
