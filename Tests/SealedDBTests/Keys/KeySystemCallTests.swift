import CSealedDBSystem
import Foundation
import Testing

@testable import SealedDB

/// What becomes of keys when the system fails: no weaker key, no key that is in no file, and no lock that is none.
@Suite(.hangLimit)
struct KeySystemCallTests {
    private let directory: TemporaryDirectory
    private static let digits = String(repeating: "0a", count: 32)

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// What is thrown while one of this thread's calls that concern no file fails.
    private func failure(_ call: String, _ code: Int32, _ body: () throws -> Void) throws -> DatabaseError? {
        let count = CallWatch(nil)
        let made = Result { try body() }
        let calls = count.endWithAll()
        try made.get()
        let index = try #require(calls.firstIndex(of: call), "\(calls)")
        let watch = CallWatch(nil, failing: index...index, code: code)
        defer { watch.end() }
        return #expect(throws: DatabaseError.self) { try body() }
    }

    // MARK: Random bytes

    /// Otherwise they would be zeros.
    @Test func withoutRandomBytesThereIsNoSalt() throws {
        #expect(try failure("getrandom", EIO) { _ = try DerivedKeys().saltOfNewStore("db") }?.reason == .ioError)
        #expect(try failure("getrandom", EIO) { _ = try SlotTable.random(12) }?.reason == .ioError)
        #expect(try SlotTable.random(12) != SlotTable.random(12))
    }

    // MARK: Programs

    @Test func aProgramThatCannotBeGivenItsInput() throws {
        let input = try SecretBytes(copying: [UInt8]("input".utf8))
        let error = try failure("pipe2", EMFILE) {
            let output = try KeyCommand(["/bin/cat"], timeout: 600).output(input: input)
            #expect(output.isEqual(to: input))
        }
        #expect(error?.reason == .keySourceFailed, "\(error as Any)")
        #expect(error?.message.contains("cannot be given its input") == true, "\(error as Any)")
    }

    /// A program that prints too much is killed. A signal comes while it is waited for.
    @Test func noChildIsLeftOverAfterASignal() throws {
        let path = directory.file("pid")
        let script = "echo $$ > '\(path)'; head -c 100000 /dev/zero; exec sleep 600"
        func run() throws -> DatabaseError? {
            unlink(path)
            return #expect(throws: DatabaseError.self) {
                try KeyCommand(["/bin/sh", "-c", script], timeout: 600).output()
            }
        }
        while true {
            let count = CallWatch(nil)
            _ = try run()
            let calls = count.endWithAll()
            let index = try #require(calls.lastIndex(of: "waitpid"), "\(calls)")
            let watch = CallWatch(nil, failing: index...index, code: EINTR)
            let error = try run()
            let failed = watch.end(describing: index)
            #expect(error?.message.contains("printed more than") == true, "\(error as Any)")
            // What it prints may come in other parts than before.
            guard failed == "waitpid" else { continue }
            let process = try #require(pid_t(String(contentsOfFile: path, encoding: .utf8).dropLast()))
            #expect(kill(process, 0) == -1 && errno == ESRCH)
            break
        }
    }

    /// It stands for no key where there are no slots.
    @Test func aProgramIsNoKey() throws {
        let key = try Key.program(KeyCommand(["/bin/true"], timeout: 1))
        let error = #expect(throws: DatabaseError.self) {
            try key.derived(
                salt: [UInt8](repeating: 0, count: 16),
                by: CipherSettings.sqlCipher4.parameters.keyDerivation
            )
        }
        #expect(error?.reason == .malformedKey && error?.message.contains("opens only stores with slots") == true)
    }

    // MARK: Files

    /// Such a file is not read, and not one that is missing.
    @Test func aSocketIsNoKeyFile() throws {
        let path = directory.file("key")
        try #require(mknod(path, S_IFSOCK | 0o600, 0) == 0)
        let error = #expect(throws: DatabaseError.self) { try KeySource.keyFile(path).key() }
        #expect(error?.reason == .unsafeKeyFile, "\(error as Any)")
    }

    /// Somebody makes one of the same name at the last moment.
    @Test func aKeyFileThatComesMeanwhile() throws {
        let call = try FailedCall("renameat2 key", EEXIST) { try KeyFile.create(atPath: $0.file("key")) }
        #expect(call.error?.reason == .alreadyExists, "\(call.error as Any)")
        #expect(call.directory.names == [])
        let other = try FailedCall("renameat2 key", EIO) { try KeyFile.create(atPath: $0.file("key")) }
        #expect(other.error?.reason == .cannotCreate, "\(other.error as Any)")
    }

    /// The whole file system is synced in place of a directory that may be entered, but not read.
    @Test func aKeyInADirectoryThatMayNotBeReadIsDurable() throws {
        let key = try KeySource.keyFile(directory.write("key", Self.digits.utf8)).key()
        let count = CallWatch(directory.path)
        try key.confirm()
        let index = try #require(count.endWithAll().firstIndex(of: "open \(directory.path)"))
        let watch = CallWatch(directory.path, failing: index...index, code: EACCES)
        let result = Result { try key.confirm() }
        #expect(watch.endWithAll().contains("syncfs key"))
        #expect(throws: Never.self) { try result.get() }
    }

    // MARK: Rings

    private static func makeRing(_ directory: TemporaryDirectory) throws {
        try KeyRing(activeID: "one", key: .testing(1)).write(toNewFile: directory.file("ring"))
    }

    private func hold(_ call: String, _ code: Int32, timeout: Double) throws -> FailedCall<Void> {
        try FailedCall(call, code, prepare: Self.makeRing) { directory in
            let hold = KeyHold()
            defer { hold.release() }
            try hold.add(ring: directory.file("ring"), timeout: timeout)
        }
    }

    /// Only who changes the ring is waited for.
    @Test func aRingThatCannotBeLocked() throws {
        let failed = try hold("flock ring", ENOLCK, timeout: 0)
        #expect(failed.error?.reason == .ioError && failed.open == [], "\(failed.error as Any)")
        #expect(try hold("flock ring", EINTR, timeout: 600).error == nil)
        #expect(try hold("flock ring", EWOULDBLOCK, timeout: 600).error == nil)
        #expect(try hold("flock ring", EINTR, timeout: 0).error?.reason == .busy)
        let descriptor = try hold("dup ring", EMFILE, timeout: 0)
        #expect(descriptor.error?.reason == .ioError && descriptor.open == [], "\(descriptor.error as Any)")
    }

    @Test(arguments: [
        ("sealdb-keyring 1\naktiv a\na key DIGITS\n", 2), ("sealdb-keyring 1\nactive a\na key-file /a\u{7f}b\n", 3),
        ("sealdb-keyring 2\nactive a\na key DIGITS\nretired: b 2031-12-31\n", 4),
        ("sealdb-keyring 2\nactive a\na key DIGITS\nretired: b\n", 4),
        ("sealdb-keyring 2\nactive a\na key DIGITS\nretired: \n", 4),
    ])
    func ringsThatAreNone(text: String, line: Int) throws {
        let path = try directory.write("ring", text.replacing("DIGITS", with: Self.digits).utf8)
        let error = #expect(throws: DatabaseError.self) { try KeyRing(contentsOfFile: path) }
        #expect(error?.reason == .malformedKeyRing && error?.message.contains("line \(line)") == true)
    }

    /// Nobody could read the line again.
    @Test func aPathWithAControlCharacter() throws {
        let ring = try KeyRing(activeID: "a", source: .keyFile("/a\u{7f}b"))
        let error = #expect(throws: DatabaseError.self) { try ring.write(toNewFile: directory.file("ring")) }
        #expect(error?.reason == .malformedKeyRing)
        #expect(directory.names == [])
    }

    /// A key that is about to be replaced may have left its ring, but the ring must not be changed just now.
    @Test func aRingThatIsChangedWhileItsKeyIsReplaced() throws {
        try Self.makeRing(directory)
        let path = directory.file("ring")
        let key = try KeyRing(contentsOfFile: path).activeKey()
        let hold = KeyHold()
        defer { hold.release() }
        try key.keepInRingIfThere(hold)
        hold.release()
        let changer = open(path, O_RDONLY | O_CLOEXEC)
        try #require(changer >= 0 && flock(changer, LOCK_EX) == 0)
        let error = #expect(throws: DatabaseError.self) { try key.keepInRingIfThere(hold) }
        #expect(error?.reason == .busy)
        close(changer)
        unlink(path)
        try KeyRing(activeID: "other", key: .testing(2)).write(toNewFile: path)
        try key.keepInRingIfThere(hold)
    }
}
