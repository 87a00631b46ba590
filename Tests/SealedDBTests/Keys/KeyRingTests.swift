import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KeyRingTests {
    private let directory: TemporaryDirectory
    private static let digits = String(repeating: "0a", count: 32)

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func failure(_ body: () throws -> Void) throws -> DatabaseError {
        try #require(throws: DatabaseError.self) { try body() }
    }

    // MARK: In code

    @Test func addActivateRemove() throws {
        var ring = try KeyRing(activeID: "b", key: .testing(2))
        try ring.add(.testing(1), id: "a")
        try ring.add(.keyFile(directory.write("key", KeyRingTests.digits.utf8)), id: "c")
        #expect(ring.ids == ["a", "b", "c"])
        #expect(ring.activeID == "b")
        #expect(try ring.activeKey() == .testing(2))
        #expect(try ring.key("c") == .testing(10))
        try ring.activate("c")
        #expect(try ring.activeKey() == .testing(10))
        try ring.remove("b")
        #expect(ring.ids == ["a", "c"])
    }

    @Test func retiredKeys() throws {
        var ring = try KeyRing(activeID: "b", key: .testing(2))
        try ring.add(.testing(1), id: "a")
        let day = try #require(ISO8601DateFormatter().date(from: "2031-12-31T23:59:59Z"))
        try ring.retire("a", until: day)
        #expect(ring.ids == ["b"] && ring.retiredKeys == [.init(id: "a", keptUntil: "2031-12-31")])
        #expect(try failure { _ = try ring.key("a") }.reason == .malformedKeyRing)
        for attempt in [
            { try ring.retire("a", until: day) }, { try ring.retire("b", until: day) }, { try ring.activate("a") },
            { try ring.retire("z", until: day) }, { try ring.reinstate("b") }, { try ring.add(.testing(3), id: "a") },
        ] as [() throws -> Void] {
            #expect(try failure(attempt).reason == .malformedKeyRing)
        }
        let path = directory.file("ring")
        try ring.write(toNewFile: path)
        var read = try KeyRing(contentsOfFile: path)
        #expect(read.retiredKeys == ring.retiredKeys && read.ids == ["b"])
        #expect(try read.retiredKey("a") == .testing(1))
        try read.reinstate("a")
        #expect(try read.key("a") == .testing(1) && read.retiredKeys.isEmpty && read.activeID == "b")
        try ring.remove("a")
        #expect(ring.retiredKeys.isEmpty)
    }

    /// What is done with one retired key concerns no other.
    @Test func severalRetiredKeys() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        for (number, id) in ["b", "c", "d"].enumerated() {
            try ring.add(.testing(UInt8(number + 2)), id: id)
            try ring.retire(id, until: Date(timeIntervalSince1970: 0))
        }
        #expect(try ring.retiredKey("b") == .testing(2) && ring.retiredKey("d") == .testing(4))
        try ring.reinstate("c")
        #expect(ring.ids == ["a", "c"] && ring.retiredKeys.map(\.id) == ["b", "d"])
        #expect(try ring.key("c") == .testing(3))
        try ring.remove("b")
        #expect(ring.ids == ["a", "c"] && ring.retiredKeys == [.init(id: "d", keptUntil: "1970-01-01")])
        #expect(try ring.retiredKey("d") == .testing(4))
    }

    @Test(arguments: [
        "retired: a 2031-12-31 key DIGITS", "retired: a 2031-12-31 key DIGITS\na key DIGITS",
        "retired: a 2031-02-30 key DIGITS",
        "retired: a 31-12-31 key DIGITS", "retired: a 10000-12-31 key DIGITS", "retired: a key DIGITS",
        "retired: a 2031-12-31 key 0a",
        "retired:  2031-12-31 key DIGITS",
    ])
    func malformedLinesOfRetiredKeys(lines: String) throws {
        let text = "active b\nb key DIGITS\n\(lines)\n".replacing("DIGITS", with: KeyRingTests.digits)
        // Only the second version has retired keys, and the first of these lines is right there.
        #expect(try failure { _ = try KeyRing(parsing: "sealdb-keyring 1\n" + text) }.reason == .malformedKeyRing)
        guard !lines.hasSuffix("31 key DIGITS") || lines.contains("2031-02") || !lines.hasPrefix("retired: a 2031")
        else {
            #expect(try KeyRing(parsing: "sealdb-keyring 2\n" + text).retiredKeys.count == 1)
            return
        }
        let error = try failure { _ = try KeyRing(parsing: "sealdb-keyring 2\n" + text) }
        #expect(error.reason == .malformedKeyRing && !error.message.contains("0a0a"), "\(error)")
    }

    @Test func unknownDuplicateAndActive() throws {
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        for (attempt, text) in [
            ({ try ring.add(.testing(2), id: "a") }, "has a key a already"),
            ({ try ring.activate("z") }, "has no key z, but a"), ({ try ring.remove("z") }, "has no key z"),
            ({ try ring.remove("a") }, "a is the active key"), ({ _ = try ring.key("z") }, "has no key z"),
        ] as [(() throws -> Void, String)] {
            let error = try failure(attempt)
            #expect(error.reason == .malformedKeyRing && error.message.contains(text), "\(error)")
        }
        #expect(ring.ids == ["a"])
    }

    @Test(arguments: ["", "a b", "ä", "a/b", "a\n", String(repeating: "a", count: 65)])
    func malformedIDs(id: String) throws {
        #expect(try failure { _ = try KeyRing(activeID: id, key: .testing(1)) }.reason == .malformedKeyRing)
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        #expect(try failure { try ring.add(.testing(1), id: id) }.reason == .malformedKeyRing)
    }

    @Test func neverPrintsAKey() throws {
        let ring = try KeyRing(parsing: "sealdb-keyring 1\nactive a\na key \(KeyRingTests.digits)\n")
        var dumped = ""
        dump(ring, to: &dumped)
        dump(Configuration(keyRing: ring), to: &dumped)
        for text in ["\(ring)", String(reflecting: ring), dumped] { #expect(!text.contains("0a0a")) }
        #expect("\(ring)" == "KeyRing(active: a, ids: a)")
        var source = ""
        dump(Configuration(keySource: .keyCommand(["/bin/show", "0a0a"])), to: &source)
        #expect(!source.contains("0a0a") && source.contains("/bin/show"), "\(source)")
    }

    // MARK: Files

    @Test func fileHoldsAllThatItCan() throws {
        var ring = try KeyRing(activeID: "raw", key: .testing(10))
        try ring.add(.keyFile("/etc/a key"), id: "kf")
        try ring.add(.passphraseFile("/etc/p"), id: "pf")
        try ring.add(.keyCredential("kc"), id: "kc")
        try ring.add(.passphraseCredential("pc"), id: "pc")
        try ring.write(toNewFile: directory.file("ring"))
        #expect(
            try String(decoding: directory.bytes("ring"), as: UTF8.self) == """
                sealdb-keyring 1
                active raw
                raw key \(KeyRingTests.digits)
                kf key-file /etc/a key
                pf passphrase-file /etc/p
                kc key-credential kc
                pc passphrase-credential pc

                """
        )
        var status = stat()
        #expect(stat(directory.file("ring"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        let read = try KeyRing(contentsOfFile: directory.file("ring"))
        #expect(read.activeID == "raw" && read.ids == ring.ids)
        #expect(try read.activeKey() == .testing(10))
        #expect(try failure { try ring.write(toNewFile: directory.file("ring")) }.reason == .alreadyExists)
    }

    @Test func saltedKeysAreKept() throws {
        let text = "sealdb-keyring 1\nactive a\na key \(KeyRingTests.digits)\(String(repeating: "0b", count: 16))\n"
        let ring = try KeyRing(parsing: text)
        #expect(try ring.activeKey().form == .rawWithSalt)
        try ring.write(toNewFile: directory.file("ring"))
        #expect(try directory.bytes("ring") == Data(text.utf8))
    }

    /// No key is left out to make the others fit.
    @Test func moreThanAFileHolds() throws {
        var ring = try KeyRing(activeID: "raw", key: .testing(10))
        for number in 0..<20 { try ring.add(.keyFile("/" + String(repeating: "d", count: 4000)), id: "k\(number)") }
        let error = try failure { try ring.write(toNewFile: directory.file("ring")) }
        #expect(error.reason == .malformedKeyRing && error.message.contains("more than 65536 bytes"), "\(error)")
        #expect(directory.names.isEmpty)
        // Nor where a file is changed, which stays as it is.
        try KeyRing(activeID: "raw", key: .testing(10)).write(toNewFile: directory.file("ring"))
        let before = try directory.bytes("ring")
        #expect(throws: DatabaseError.self) {
            try KeyRing.update(file: directory.file("ring")) { $0 = ring }
        }
        #expect(try directory.bytes("ring") == before)
        #expect(directory.names == ["ring"])
    }

    @Test(arguments: [String(repeating: "x", count: 64), "azAZ09.-_"])
    func idsThatAreJustAllowed(id: String) throws {
        try KeyRing(activeID: id, key: .testing(1)).write(toNewFile: directory.file("ring"))
        #expect(try KeyRing(contentsOfFile: directory.file("ring")).key(id) == .testing(1))
        let longer = String(repeating: "x", count: 65)
        let text = "sealdb-keyring 1\nactive a\na key \(KeyRingTests.digits)\n\(longer) key \(KeyRingTests.digits)\n"
        #expect(try failure { _ = try KeyRing(parsing: text) }.message.contains("line 4"))
    }

    /// A file that is written can be read again, up to its last byte.
    @Test(arguments: [true, false]) func theLargestFile(endsWithAKey: Bool) throws {
        func ring(_ count: Int) throws -> KeyRing {
            var ring = try KeyRing(activeID: "k", source: .keyFile("/" + String(repeating: "d", count: count)))
            for number in 0..<16 { try ring.add(.keyFile("/" + String(repeating: "d", count: 4000)), id: "k\(number)") }
            if endsWithAKey { try ring.add(.testing(1), id: "last") }
            return ring
        }
        try ring(1).write(toNewFile: directory.file("small"))
        let count = try 1 + KeyRing.sizeLimit - directory.bytes("small").count
        try ring(count).write(toNewFile: directory.file("largest"))
        #expect(try directory.bytes("largest").count == 65536)
        #expect(try KeyRing(contentsOfFile: directory.file("largest")).ids.count == (endsWithAKey ? 18 : 17))
        let error = try failure { try ring(count + 1).write(toNewFile: directory.file("larger")) }
        #expect(error.message.contains("more than 65536 bytes") && directory.names == ["largest", "small"])
    }

    /// A ring that is read again keeps what it has read from a file, and takes it for no other file's.
    @Test func eachFileStaysItsOwn() throws {
        var ring = try KeyRing(activeID: "a", source: .keyFile(directory.write("a", KeyRingTests.digits.utf8)))
        try ring.add(.keyFile(directory.write("b", [UInt8](repeating: 2, count: 32))), id: "b")
        try ring.add(.passphraseFile(directory.write("c", "open sesame".utf8)), id: "c")
        try ring.add(.passphraseFile(directory.write("d", "other words".utf8)), id: "d")
        try ring.write(toNewFile: directory.file("ring"))
        let read = try KeyRing(contentsOfFile: directory.file("ring"))
        let known = try read.key("d")
        let again = try read.readAgain()
        #expect(try again.key("a") == .testing(10) && again.key("b") == .testing(2))
        #expect(try again.key("c") == .passphrase("open sesame") && again.key("d") == .passphrase("other words"))
        #expect(try again.key("d").derivedKeys === known.derivedKeys)
    }

    @Test func whatAFileCannotHold() throws {
        for (index, ring) in [
            try KeyRing(activeID: "a", key: .passphrase("hush")),
            try KeyRing(activeID: "a", source: .keyCommand(["/bin/hush"])),
            try KeyRing(activeID: "a", source: .keyDescriptor(3)), try KeyRing(activeID: "a", source: .keyFile("rel")),
            try KeyRing(activeID: "a", source: .keyFile("/a\nb")),
            try KeyRing(activeID: "a", source: .keyCredential("/c")),
        ].enumerated() {
            let error = try failure { try ring.write(toNewFile: directory.file("ring")) }
            #expect(error.reason == .malformedKeyRing && !error.message.contains("hush\""), "\(index): \(error)")
        }
        #expect(directory.names == [])
    }

    /// What a later release wrote is no file of something else.
    @Test func aRingOfALaterVersion() throws {
        let later = try failure { _ = try KeyRing(parsing: "sealdb-keyring 3\nactive a\n") }
        #expect(later.message.contains("another version than 1 and 2"), "\(later)")
        let other = try failure { _ = try KeyRing(parsing: "sealdb-slots 1\nactive a\n") }
        #expect(other.message.contains("not a key ring"), "\(other)")
    }

    /// The key that is missing may be the one that fits.
    @Test func keysThatCouldNotBeTriedAreTold() throws {
        var ring = try KeyRing(activeID: "one", key: .testing(1))
        try ring.add(.keyFile(directory.file("missing")), id: "two")
        let wrongKey = DatabaseError(extendedCode: SQLITE_NOTADB, reason: .wrongKey, message: "no")
        let error = try failure { try ring.withKey(toOpen: "db") { _, _ in throw wrongKey } }
        #expect(error.reason == .wrongKey)
        #expect(
            error.message.contains("tried were one (") && error.message.contains("could not be read: two: "),
            "\(error)"
        )
    }

    static let malformed: [(String, line: Int?)] = [
        ("", nil), ("sealdb-keyring 1", nil), ("\n", 1), ("sealdb-keyring 3\nactive a\n", 1),
        ("SEALDB-KEYRING 1\nactive a\n", 1), (" sealdb-keyring 1\nactive a\n", 1),
        ("sealdb-keyring 1\r\nactive a\n", 1),
        ("sealdb-keyring 1\n", 2), ("sealdb-keyring 1\na key \(digits)\n", 2), ("sealdb-keyring 1\nactive\n", 2),
        ("sealdb-keyring 1\nactive a\n", 2), ("sealdb-keyring 1\nactive a b\n", 2),
        ("sealdb-keyring 1\nactive z\na key \(digits)\n", 2), ("sealdb-keyring 1\nactive a\r\na key \(digits)\n", 2),
        ("sealdb-keyring 1\nactive a\n\na key \(digits)\n", 3), ("sealdb-keyring 1\nactive a\n# note\n", 3),
        ("sealdb-keyring 1\nactive a\na key\n", 3), ("sealdb-keyring 1\nactive a\na key \(digits)0\n", 3),
        ("sealdb-keyring 1\nactive a\na key  \(digits)\n", 3), ("sealdb-keyring 1\nactive a\na key \(digits) \n", 3),
        ("sealdb-keyring 1\nactive a\na key \(digits)\r\n", 3),
        ("sealdb-keyring 1\nactive a\na key zz\(digits.dropFirst(2))\n", 3),
        ("sealdb-keyring 1\nactive a\na KEY \(digits)\n", 3),
        ("sealdb-keyring 1\nactive a\na passphrase \(digits)\n", 3),
        ("sealdb-keyring 1\nactive a\na key-file relative\n", 3), ("sealdb-keyring 1\nactive a\na key-file \n", 3),
        ("sealdb-keyring 1\nactive a\na key-credential a/b\n", 3),
        ("sealdb-keyring 1\nactive a\na key-credential \n", 3),
        ("sealdb-keyring 1\nactive a\na key-file /a\0b\n", 3),
        ("sealdb-keyring 1\nactive a\n\(digits)\(digits) key \(digits)\n", 3),
        ("sealdb-keyring 1\nactive a\n\(digits)\n", 3),
        ("sealdb-keyring 1\nactive a\na key \(digits)\na key \(digits)\n", 4),
        ("sealdb-keyring 1\nactive a\na key \(digits)\nb key-file /k\nb key-file /l\n", 5),
        ("sealdb-keyring 1\nactive a\na key \(digits)\nactive b\n", 4),
        ("sealdb-keyring 1\nactive a\na key \(digits)\nb key \(digits)", nil),
    ]

    @Test(arguments: malformed)
    func malformedFiles(text: String, line: Int?) throws {
        let path = try directory.write("ring", text.utf8)
        let error = try failure { _ = try KeyRing(contentsOfFile: path) }
        #expect(error.reason == .malformedKeyRing)
        #expect(error.message.contains(path))
        if let line { #expect(error.message.contains("line \(line)"), "\(error)") }
        #expect(!error.message.contains("0a0a"), "\(error)")
    }

    @Test func invalidUTF8InAPath() throws {
        let text = Array("sealdb-keyring 1\nactive a\na key-file /".utf8) + [0xff, 0x0a]
        #expect(
            try failure { _ = try KeyRing(contentsOfFile: directory.write("ring", text)) }.message.contains("line 3")
        )
    }

    @Test func unsafeFilesAreRefused() throws {
        let text = "sealdb-keyring 1\nactive a\na key \(KeyRingTests.digits)\n"
        for mode: mode_t in [0o640, 0o604] {
            let path = try directory.write("ring", text.utf8, mode: mode)
            #expect(try failure { _ = try KeyRing(contentsOfFile: path) }.reason == .unsafeKeyFile)
            #expect(try failure { try KeyRing.update(file: path) { _ in } }.reason == .unsafeKeyFile)
        }
        symlink(try directory.write("real", text.utf8), directory.file("link"))
        #expect(try failure { _ = try KeyRing(contentsOfFile: directory.file("link")) }.reason == .unsafeKeyFile)
        #expect(try failure { _ = try KeyRing(contentsOfFile: directory.path) }.reason == .unsafeKeyFile)
        #expect(try failure { _ = try KeyRing(contentsOfFile: directory.file("absent")) }.reason == .noSuchFile)
        let large = try directory.write("large", [UInt8](repeating: 10, count: KeyRing.sizeLimit + 1))
        #expect(try failure { _ = try KeyRing(contentsOfFile: large) }.message.contains("more than 65536 bytes"))
    }

    // MARK: Updates

    private func makeFile(mode: mode_t = 0o600) throws -> String {
        try directory.write("ring", "sealdb-keyring 1\nactive a\na key \(KeyRingTests.digits)\n".utf8, mode: mode)
    }

    @Test func updateReplacesTheFileAndKeepsItsMode() throws {
        let path = try makeFile(mode: 0o400)
        // Of one that was killed.
        try Data("x".utf8).write(to: URL(fileURLWithPath: TemporaryFile.path(beside: path)))
        let ring = try KeyRing.update(file: path) { ring throws(DatabaseError) in
            try ring.add(.random(), id: "b")
            try ring.activate("b")
        }
        #expect(ring.activeID == "b")
        let read = try KeyRing(contentsOfFile: path)
        #expect(read.activeID == "b" && read.ids == ["a", "b"])
        #expect(try read.key("b") == ring.key("b"))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o400)
        #expect(directory.names == ["ring"])
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func updateKeepsTheOwner() throws {
        let path = try makeFile()
        #expect(chown(path, 0, 65534) == 0)
        try KeyRing.update(file: path) { ring throws(DatabaseError) in try ring.add(.random(), id: "b") }
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_gid == 65534)
    }

    @Test func failedUpdateChangesNothing() throws {
        let path = try makeFile()
        let before = try directory.bytes("ring")
        #expect(
            try failure { try KeyRing.update(file: path) { ring throws(DatabaseError) in try ring.remove("a") } }
                .reason == .malformedKeyRing
        )
        let attempt = { () throws in
            try KeyRing.update(file: path) { ring throws(DatabaseError) in try ring.add(.passphrase("p"), id: "b") }
        }
        #expect(try failure { _ = try attempt() }.reason == .malformedKeyRing)
        let tooMany = { () throws in
            try KeyRing.update(file: path) { ring throws(DatabaseError) in
                for number in 0..<1000 { try ring.add(.random(), id: "k\(number)") }
            }
        }
        #expect(try failure { _ = try tooMany() }.message.contains("65536"))
        #expect(try directory.bytes("ring") == before)
        #expect(directory.names == ["ring"])
    }

    @Test func simultaneousUpdatesAllCount() throws {
        let path = try makeFile()
        DispatchQueue.concurrentPerform(iterations: 8) { number in
            #expect(throws: Never.self) {
                try KeyRing.update(file: path) { ring throws(DatabaseError) in try ring.add(.random(), id: "k\(number)")
                }
            }
        }
        #expect(try KeyRing(contentsOfFile: path).ids == ["a"] + (0..<8).map { "k\($0)" })
        #expect(directory.names == ["ring"])
    }
}

extension KeyRing {
    init(parsing text: String) throws {
        self = try Array(text.utf8).withUnsafeBytes { bytes in try KeyRing(parsing: bytes, path: nil) }
    }
}
