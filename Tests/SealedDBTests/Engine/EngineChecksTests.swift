import Testing

@testable import SealedDB

/// Which library is trusted with keys, told from what is known of it.
@Suite(.hangLimit)
struct EngineChecksTests {
    private static let library = "/usr/lib/libsqlcipher.so.1"

    private func facts(_ change: (inout EngineFacts) -> Void = { _ in }) -> EngineFacts {
        var facts = EngineFacts(
            hasCodec: true,
            versionNumber: 3_046_001,
            sourceID: "2024-08-13 c9c2ab54ba1f5f46360f1b4f35d849cd3f080e6fc2b6c60e91b16c63f69aa1",
            oldestVersionNumber: 3_038_000,
            objects: ["open", "prepare", "step", "key"].map { ($0, EngineChecksTests.library) }
        )
        change(&facts)
        return facts
    }

    private func failures(_ facts: EngineFacts, cipherVersion: String? = "4.6.1 community") -> [String] {
        facts.checks { cipherVersion }.filter { !$0.passed }.map(\.name)
    }

    @Test func theLibraryOfTheBuildPasses() {
        #expect(failures(facts()).isEmpty)
        let names = facts().checks { "4.6.1 community" }.map(\.name)
        #expect(names == ["codec", "version", "object", "cipher_version"])
    }

    /// `doctor` prints them.
    @Test func whatWasFoundIsTold() {
        func details(_ facts: EngineFacts, _ version: String?) -> [String] {
            facts.checks { version }.map(\.detail)
        }
        #expect(
            details(facts(), "4.6.1 community") == [
                "HAS_CODEC is compiled in",
                "SQLite 3.46.1, 2024-08-13 c9c2ab54ba1f5f46360f1b4f35d849cd3f080e6fc2b6c60e91b16c63f69aa1",
                EngineChecksTests.library, "4.6.1 community",
            ]
        )
        #expect(
            details(facts(), "4.4.3 community")[3] == "SQLCipher 4.4.3 community is loaded, and 4.5 or later is needed"
        )
        #expect(details(facts(), nil)[3] == "PRAGMA cipher_version has no answer")
        let wrong = facts {
            ($0.hasCodec, $0.versionNumber) = (false, 3_037_002)
            $0.objects[1].path = "/usr/lib/libsqlite3.so.0"
            $0.objects[2].path = nil
        }
        #expect(
            details(wrong, "4.6.1 community") == [
                "the loaded SQLite has no codec (HAS_CODEC)",
                "SQLite 3.37.2 is loaded, and this build needs 3.38.0 or later",
                "not one library: open from \(EngineChecksTests.library), prepare from /usr/lib/libsqlite3.so.0, "
                    + "step from an unknown object, key from \(EngineChecksTests.library)",
                "not asked",
            ]
        )
    }

    @Test(arguments: [3_038_000, 3_046_001, 3_046_002, 3_053_004, 4_000_000] as [Int32])
    func anUpdatePasses(_ version: Int32) {
        #expect(failures(facts { ($0.versionNumber, $0.sourceID) = (version, "another source id") }).isEmpty)
    }

    @Test(arguments: ["4.5.0 community", "4.5.7", "4.6.1 enterprise", "4.10.0 community", "4.19.0 community", "5.0 x"])
    func anyCipherThatIsNewEnoughPasses(_ version: String) {
        #expect(failures(facts(), cipherVersion: version).isEmpty)
    }

    @Test(arguments: ["3.4.1", "4.4.3 community", "", "community", "4", "4.x", "x.5"])
    func anOldOrUnknownCipherIsRefused(_ version: String) {
        #expect(failures(facts(), cipherVersion: version) == ["cipher_version"])
    }

    @Test func aCipherThatDoesNotAnswerIsRefused() {
        #expect(failures(facts(), cipherVersion: nil) == ["cipher_version"])
    }

    /// With the wrong library in front, asking for the cipher's version would crash: it is asked last, or not at all.
    @Test func nothingIsKeyedInAWrongLibrary() {
        func change(_ index: Int, _ path: String?) -> (inout EngineFacts) -> Void { { $0.objects[index].path = path } }
        var wrong = [
            (facts { $0.hasCodec = false }, "codec"),
            (facts { $0.versionNumber = 3_037_999 }, "version"),
            (facts { facts in for index in facts.objects.indices { facts.objects[index].path = nil } }, "object"),
            (facts { $0.objects = [] }, "object"),
        ]
        for index in facts().objects.indices {
            wrong.append((facts(change(index, "/usr/lib/libsqlite3.so.0")), "object"))
            wrong.append((facts(change(index, nil)), "object"))
        }
        for (facts, name) in wrong {
            var isAsked = false
            let checks = facts.checks {
                isAsked = true
                return "4.6.1 community"
            }
            #expect(!isAsked)
            #expect(checks.filter { !$0.passed }.map(\.name) == [name, "cipher_version"])
        }
    }
}
