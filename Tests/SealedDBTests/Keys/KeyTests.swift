import Foundation
import Testing

@testable import SealedDB

struct KeyTests {
    @Test func neverPrintsItself() throws {
        let key = try Key.passphrase("correct horse battery staple")
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped, "\([key])", "\(Configuration(key: key))"] {
            #expect(!text.contains("horse"), "\(text)")
        }
        #expect("\(key)" == "Key(redacted)")
    }

    @Test(arguments: [
        "", "x'" + String(repeating: "a", count: 64) + "'", "X'" + String(repeating: "0", count: 96) + "'",
        "x'" + String(repeating: "F", count: 64) + "?",
    ])
    func dangerousPassphrasesAreRefused(text: String) {
        let error = #expect(throws: DatabaseError.self) { try Key.passphrase(text) }
        #expect(error?.reason == .malformedKey)
        #expect(error.map { !$0.message.contains("aaaa") } == true)
    }

    @Test(arguments: [
        "x'" + String(repeating: "a", count: 63) + "'", "x'" + String(repeating: "g", count: 64) + "'", "x''", "a",
    ])
    func otherPassphrasesAreTaken(text: String) throws {
        #expect(try Key.passphrase(text) == Key.passphrase(text))
    }

    @Test func rawKeysHaveTheirLength() throws {
        for count in [0, 16, 31, 33, 64] {
            let bytes = [UInt8](repeating: 7, count: count)
            #expect(throws: DatabaseError.self) { try bytes.withUnsafeBytes { try Key.raw($0) } }
        }
        #expect(try Key.testing(1) == Key.testing(1))
        #expect(try Key.testing(1) != Key.testing(2))
        #expect(try Key.random() != Key.random())
    }

    @Test func specIsSQLCiphers() throws {
        let spec = try Key.testing(0xAB).withKeySpec { bytes throws(DatabaseError) in
            String(decoding: bytes, as: UTF8.self)
        }
        #expect(spec == "x'" + String(repeating: "ab", count: 32) + "'")
        let salted = try [UInt8](repeating: 1, count: 32).withUnsafeBytes { key in
            try [UInt8](repeating: 2, count: 16).withUnsafeBytes { salt in try Key.raw(key, salt: salt) }
        }
        let saltedSpec = try salted.withKeySpec { bytes throws(DatabaseError) in String(decoding: bytes, as: UTF8.self)
        }
        #expect(saltedSpec == "x'" + String(repeating: "01", count: 32) + String(repeating: "02", count: 16) + "'")
    }
}

struct KeySourceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func write(_ name: String, _ bytes: some Collection<UInt8>, mode: mode_t = 0o600) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file(name)))
        chmod(directory.file(name), mode)
        return directory.file(name)
    }

    private func reason(_ source: KeySource) -> DatabaseError.Reason? {
        do throws(DatabaseError) {
            _ = try source.key()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func createdFileIsPrivateAndRead() throws {
        let path = directory.file("key")
        try KeyFile.create(atPath: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(status.st_size == 65)
        let before = try directory.bytes("key")
        #expect(try KeySource.keyFile(path).key() == KeySource.keyFile(path).key())
        let error = #expect(throws: DatabaseError.self) { try KeyFile.create(atPath: path) }
        #expect(error?.reason == .alreadyExists)
        #expect(try directory.bytes("key") == before)
        let nowhere = #expect(throws: DatabaseError.self) { try KeyFile.create(atPath: directory.file("no/key")) }
        #expect(nowhere?.reason == .cannotCreate)
    }

    @Test func formsOfKeyFiles() throws {
        let digits = String(repeating: "0A", count: 32)
        let expected = try Key.testing(10)
        #expect(try KeySource.keyFile(write("a", digits.utf8)).key() == expected)
        #expect(try KeySource.keyFile(write("b", (digits + "\n").utf8)).key() == expected)
        #expect(try KeySource.keyFile(write("c", [UInt8](repeating: 10, count: 32))).key() == expected)
        for bad in [
            digits + "\n\n", digits + "\r\n", String(digits.dropLast()), digits + "0", "", "zz" + digits.dropLast(2),
        ] {
            #expect(try reason(.keyFile(write("bad", bad.utf8))) == .malformedKey)
        }
        #expect(try reason(.keyFile(write("huge", [UInt8](repeating: 48, count: 5000)))) == .malformedKey)
    }

    @Test func unsafeFilesAreRefused() throws {
        let digits = String(repeating: "0A", count: 32)
        for mode: mode_t in [0o640, 0o604, 0o660, 0o644] {
            #expect(try reason(.keyFile(write("open", digits.utf8, mode: mode))) == .unsafeKeyFile)
        }
        let target = try write("target", digits.utf8)
        symlink(target, directory.file("link"))
        #expect(reason(.keyFile(directory.file("link"))) == .unsafeKeyFile)
        mkfifo(directory.file("pipe"), 0o600)
        #expect(reason(.passphraseFile(directory.file("pipe"))) == .unsafeKeyFile)
        #expect(reason(.keyFile(directory.file("absent"))) == .noSuchFile)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func filesOfOthersAreRefused() throws {
        let path = try write("foreign", String(repeating: "0A", count: 32).utf8)
        #expect(chown(path, 65534, 65534) == 0)
        #expect(reason(.keyFile(path)) == .unsafeKeyFile)
    }

    @Test func passphrasesFromFileAndDescriptor() throws {
        let expected = try Key.passphrase("open sesame")
        let path = try write("p", "open sesame\n".utf8)
        #expect(try KeySource.passphraseFile(path).key() == expected)
        let descriptor = open(path, O_RDONLY)
        #expect(try KeySource.passphraseDescriptor(descriptor).key() == expected)
        #expect(fcntl(descriptor, F_GETFD) == -1)
        #expect(try reason(.passphraseFile(write("empty", "\n".utf8))) == .malformedKey)
        #expect(reason(.passphraseDescriptor(-1)) == .noSuchFile)
    }
}
