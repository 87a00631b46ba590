import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KeySourceTests {
    private let directory: TemporaryDirectory
    private let digits = String(repeating: "0A", count: 32)

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func write(_ name: String, _ bytes: some Collection<UInt8>, mode: mode_t = 0o600) throws -> String {
        try directory.write(name, bytes, mode: mode)
    }

    private func reason(_ source: KeySource) -> DatabaseError.Reason? { failure(source)?.reason }

    private func failure(_ source: KeySource) -> DatabaseError? {
        do throws(DatabaseError) {
            _ = try source.key()
            return nil
        } catch {
            return error
        }
    }

    // MARK: Files

    @Test func createdFileIsPrivateAndRead() throws {
        let path = directory.file("key")
        // Left by one that was killed; it may hold a key.
        try Data("half".utf8).write(to: URL(fileURLWithPath: TemporaryFile.path(beside: path)))
        try KeyFile.create(atPath: path)
        #expect(directory.names == ["key"])
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
        let expected = try Key.testing(10)
        #expect(try KeySource.keyFile(write("a", digits.utf8)).key() == expected)
        #expect(try KeySource.keyFile(write("b", (digits + "\n").utf8)).key() == expected)
        #expect(try KeySource.keyFile(write("c", [UInt8](repeating: 10, count: 32))).key() == expected)
        for bad in [
            digits + "\n\n", digits + "\r\n", String(digits.dropLast()), digits + "0", "", "zz" + digits.dropLast(2),
        ] {
            let error = try #require(try failure(.keyFile(write("bad", bad.utf8))))
            #expect(error.reason == .malformedKey)
            #expect(error.message.contains(directory.file("bad")) && !error.message.contains("0A0A"))
        }
        #expect(try reason(.keyFile(write("huge", [UInt8](repeating: 48, count: 5000)))) == .malformedKey)
        // As a file system leaves one that was not synced.
        let lost = try failure(.keyFile(write("lost", [UInt8](repeating: 0, count: 32))))
        #expect(lost?.reason == .malformedKey && lost?.message.contains("nothing but zeros") == true)
    }

    @Test func everyHexDigit() throws {
        let text = String(repeating: "0123456789abcdef0123456789ABCDEF", count: 2)
        let bytes: [UInt8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
        let expected = try (bytes + bytes + bytes + bytes).withUnsafeBytes { try Key.raw($0) }
        #expect(try KeySource.keyFile(write("all", text.utf8)).key() == expected)
        // Their neighbours in ASCII.
        for other in ["/", ":", "@", "G", "`", "g"] {
            let path = try write("bad", (String(text.dropLast()) + other).utf8)
            #expect(reason(.keyFile(path)) == .malformedKey, "\(other)")
        }
    }

    @Test func theLongestPassphraseOfAFile() throws {
        let start = String(repeating: "a", count: 4095)
        #expect(try KeySource.passphraseFile(write("p", (start + "b").utf8)).key() == .passphrase(start + "b"))
        let error = try failure(.passphraseFile(write("p", (start + "bc").utf8)))
        #expect(error?.message.contains("more than 4096 bytes") == true, "\(error as Any)")
    }

    /// All sources that are files, by the name of one in the directory.
    private static let fileSources: [@Sendable (String) -> KeySource] = [
        { .keyFile($0) }, { .passphraseFile($0) },
    ]

    @Test(arguments: fileSources)
    func unsafeFilesAreRefused(source: @Sendable (String) -> KeySource) throws {
        for mode: mode_t in [0o640, 0o604, 0o660, 0o644, 0o620, 0o601] {
            #expect(try reason(source(write("open", digits.utf8, mode: mode))) == .unsafeKeyFile)
        }
        symlink(try write("target", digits.utf8), directory.file("link"))
        #expect(reason(source(directory.file("link"))) == .unsafeKeyFile)
        mkfifo(directory.file("pipe"), 0o600)
        #expect(reason(source(directory.file("pipe"))) == .unsafeKeyFile)
        #expect(reason(source(directory.path)) == .unsafeKeyFile)
        #expect(reason(source("/dev/null")) == .unsafeKeyFile)
        #expect(reason(source(directory.file("absent"))) == .noSuchFile)
        #expect(reason(source(directory.file("target/below"))) == .noSuchFile)
        #expect(reason(source(directory.file("target\0.txt"))) == .malformedKey)
        #expect(try reason(source(write("huge", [UInt8](repeating: 48, count: 4097)))) == .malformedKey)
        #expect(try reason(source(write("empty", []))) == .malformedKey)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"), arguments: fileSources)
    func filesOfOthersAreRefused(source: @Sendable (String) -> KeySource) throws {
        let path = try write("foreign", digits.utf8)
        #expect(chown(path, 65534, 65534) == 0)
        #expect(reason(source(path)) == .unsafeKeyFile)
    }

    @Test func passphraseFiles() throws {
        let expected = try Key.passphrase("open sesame")
        #expect(try KeySource.passphraseFile(write("p", "open sesame\n".utf8)).key() == expected)
        #expect(try KeySource.passphraseFile(write("p", "open sesame".utf8)).key() == expected)
        #expect(try KeySource.passphraseFile(write("p", "open sesame\n\n".utf8)).key() != expected)
        #expect(try reason(.passphraseFile(write("empty", "\n".utf8))) == .malformedKey)
        let utf16 = try #require(try failure(.passphraseFile(write("nul", [0x6f, 0, 0x70, 0]))))
        #expect(utf16.reason == .malformedKey && utf16.message.contains("NUL"))
        #expect(try reason(.passphraseFile(write("raw", "x'\(digits)'".utf8))) == .malformedKey)
    }

    // MARK: Descriptors

    @Test func descriptorsAreReadAndClosed() throws {
        let descriptor = open(try write("p", "open sesame\n".utf8), O_RDONLY)
        #expect(try KeySource.passphraseDescriptor(descriptor).key() == Key.passphrase("open sesame"))
        let other = open(try write("k", digits.utf8), O_RDONLY)
        #expect(try KeySource.keyDescriptor(other).key() == .testing(10))
        #expect(reason(.passphraseDescriptor(-1)) == .noSuchFile)
        #expect(reason(.keyDescriptor(-1)) == .noSuchFile)
    }

    /// Whoever holds the other end is told that nobody reads any more, whether it was a key or not.
    @Test(arguments: [true, false]) func aDescriptorIsClosed(isKey: Bool) throws {
        var ends: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        let own = ends[0]
        defer { close(own) }
        let text = Array((isKey ? digits : "no key").utf8)
        #expect(text.withUnsafeBytes { Glibc.write(own, $0.baseAddress, $0.count) } == text.count)
        #expect(shutdown(own, Int32(SHUT_WR)) == 0)
        let expected: DatabaseError.Reason? = isKey ? nil : .malformedKey
        #expect(reason(.keyDescriptor(ends[1])) == expected)
        // Without a limit this would wait for ever.
        var end = pollfd(fd: own, events: 0, revents: 0)
        #expect(poll(&end, 1, 60_000) == 1 && end.revents & Int16(POLLHUP) != 0)
    }

    /// Where nothing is left to read, nothing is read again: the number may be that of another file by now.
    @Test func descriptorsAreReadOnce() throws {
        let path = try write("k", digits.utf8)
        let sourced = SourcedKey(.keyDescriptor(open(path, O_RDONLY)))
        let key = try sourced.key()
        #expect(try sourced.newKey(insteadOf: key) == nil)
        let read = try KeySource.keyDescriptor(open(path, O_RDONLY)).key()
        #expect(throws: Never.self) { try read.confirm() }
        #expect(read.provenance == nil)
    }

    @Test func descriptorsOfAPipeGiveAllThatIsWritten() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let digits = digits
        Thread.detachNewThread {
            for part in [digits.prefix(10), digits.dropFirst(10)] {
                _ = Array(part.utf8).withUnsafeBytes { Glibc.write(writing, $0.baseAddress, $0.count) }
            }
            close(writing)
        }
        #expect(try KeySource.keyDescriptor(reading).key() == .testing(10))
    }

    /// A program that is started meanwhile does not get it.
    @Test func aDescriptorThatIsReadIsClosedToPrograms() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        func write(_ part: Substring) {
            _ = Array(part.utf8).withUnsafeBytes { Glibc.write(writing, $0.baseAddress, $0.count) }
        }
        write(digits.prefix(10))
        let key = Guarded<Key?>(nil)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let read = try? KeySource.keyDescriptor(reading).key()
            key.withLock { $0 = read }
            done.signal()
        }
        var left: Int32 = 1
        while left > 0, ioctl(reading, UInt(FIONREAD), &left) == 0 { sched_yield() }
        #expect(fcntl(reading, F_GETFD) & FD_CLOEXEC != 0)
        write(digits.dropFirst(10))
        close(writing)
        done.wait()
        #expect(try key.withLock { $0 } == .testing(10))
    }

    /// What cannot be started is told where it is given, and not when a store is opened.
    @Test func programsThatUnwrapAreNamedByAPath() {
        for arguments in [[], ["vault"], ["/bin/vault", "a\0b"]] {
            #expect(reason(.unwrapCommand(arguments)) == .malformedKey, "\(arguments)")
        }
        #expect(reason(.unwrapCommand(["/bin/vault"], timeout: .zero)) == .malformedKey)
        #expect(reason(.unwrapCommand(["/bin/vault"])) == nil)
    }

    // MARK: Credentials

    /// It would be another one in each working directory.
    @Test func theDirectoryOfCredentialsIsAbsolute() throws {
        _ = try write("db", digits.utf8)
        let relative = String(repeating: "../", count: 40) + directory.path.dropFirst()
        try #require(access("\(relative)/db", F_OK) == 0)
        #expect(throws: Never.self) { try Credential.contents("db", directory: directory.path) }
        let error = #expect(throws: DatabaseError.self) { try Credential.contents("db", directory: relative) }
        #expect(error?.message.contains("CREDENTIALS_DIRECTORY") == true, "\(error as Any)")
    }

    private func credential(_ name: String, directory: String?) -> DatabaseError.Reason? {
        do throws(DatabaseError) {
            _ = try Credential.contents(name, directory: directory)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func credentialsAreFilesOfTheService() throws {
        _ = try write("db", digits.utf8, mode: 0o400)
        let contents = try Credential.contents("db", directory: directory.path)
        #expect(try KeyFile.rawKey(in: contents, name: "it") == .testing(10))
        #expect(credential("absent", directory: directory.path) == .noSuchFile)
        for directory in [nil, "", "relative"] { #expect(credential("db", directory: directory) == .noSuchFile) }
        for name in ["", ".", "..", "../db", "/db", "a/b", "db\0"] {
            #expect(credential(name, directory: directory.path) == .malformedKey, "\(name)")
        }
    }

    @Test func unsafeCredentialsAreRefused() throws {
        _ = try write("db", digits.utf8, mode: 0o404)
        #expect(credential("db", directory: directory.path) == .unsafeKeyFile)
        _ = try write("db", digits.utf8, mode: 0o420)
        #expect(credential("db", directory: directory.path) == .unsafeKeyFile)
        symlink("db", directory.file("link"))
        #expect(credential("link", directory: directory.path) == .unsafeKeyFile)
    }

    /// systemd keeps the file root's and lets the service read it by an access control list, whose mask shows there.
    @Test(.enabled(if: geteuid() == 0, "is about files of root"))
    func groupBitsOfRootsCredentials() throws {
        _ = try write("db", digits.utf8, mode: 0o440)
        #expect(credential("db", directory: directory.path) == nil)
        #expect(reason(.keyFile(directory.file("db"))) == .unsafeKeyFile)
        #expect(chown(directory.file("db"), 65534, 65534) == 0)
        #expect(credential("db", directory: directory.path) == .unsafeKeyFile)
    }

    // MARK: Closures and texts

    @Test func closures() throws {
        #expect(try KeySource.closure { try .testing(3) }.key() == .testing(3))
        struct Unavailable: Error { let secret = "hush" }
        let error = try #require(failure(.closure { throw Unavailable() }))
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("Unavailable") && !error.message.contains("hush"))
        #expect(reason(.closure { throw DatabaseError.malformedKey("no") }) == .malformedKey)
    }

    /// All threads that tasks share wait for such a closure at once, in tasks that open stores.
    @Test func asynchronousClosures() async throws {
        let keys = try await withThrowingTaskGroup(of: Key.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    try KeySource.asyncClosure {
                        await Task.yield()
                        return try .testing(3)
                    }.key()
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(try keys == Array(repeating: .testing(3), count: 64))
        struct Unavailable: Error { let secret = "hush" }
        let error = try #require(failure(.asyncClosure { throw Unavailable() }))
        #expect(error.reason == .keySourceFailed)
        #expect(error.message.contains("Unavailable") && !error.message.contains("hush"))
        #expect(reason(.asyncClosure { throw DatabaseError.malformedKey("no") }) == .malformedKey)
        #expect(reason(.asyncClosure(timeout: .zero) { try .testing(3) }) == .malformedKey)
    }

    @Test func anAsynchronousClosureThatTakesTooLong() async throws {
        let (cancelled, end) = AsyncStream.makeStream(of: Void.self)
        let error = try #require(
            failure(
                .asyncClosure(timeout: .milliseconds(10)) {
                    try? await Task.sleep(for: .seconds(86_400))
                    end.finish()
                    return try .testing(3)
                }
            )
        )
        #expect(error.reason == .keySourceFailed && error.message.contains("0.01 seconds"))
        // It was cancelled, and so its sleep has ended.
        for await _ in cancelled {}
    }

    @Test func aStoreWithAnAsynchronousKey() throws {
        let configuration = Configuration(keySource: .asyncClosure { try .testing(1) })
        let path = directory.file("db")
        let queue = try DatabaseQueue(path: path, configuration: isEncrypting ? configuration : .init())
        try queue.write { try $0.executeUpdate("CREATE TABLE t (a)") }
        queue.close()
        #expect(try Database.testing(path).tableExists("t"))
    }

    @Test(arguments: [
        (KeySource.keyFile("/k"), "key file /k"), (.passphraseFile("/p"), "passphrase file /p"),
        (.keyCredential("c"), "key credential c"), (.passphraseCredential("c"), "passphrase credential c"),
        (.keyDescriptor(3), "key from descriptor 3"), (.passphraseDescriptor(3), "passphrase from descriptor 3"),
        (.keyCommand(["/bin/vault", "hush"]), "key from command /bin/vault"),
        (.passphraseCommand(["/bin/vault", "hush"]), "passphrase from command /bin/vault"),
        (.prompt("Passphrase: ", confirm: true), "passphrase from the terminal"),
    ])
    func descriptionsNameTheSourceAndNoArguments(source: KeySource, text: String) {
        #expect("\(source)" == text)
    }

    // MARK: Reading again

    /// Of those who found the old key stale, one reads the new one.
    @Test func aSourceIsReadAgainOnce() throws {
        let calls = Guarded(0 as UInt8)
        let source = KeySource.closure {
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            return try .testing(number)
        }
        let sourced = SourcedKey(source)
        let first = try sourced.key()
        let second = try sourced.newKey(insteadOf: first)
        let third = try sourced.newKey(insteadOf: first)
        let known = try sourced.key()
        let expected = try Key.testing(2)
        #expect(second == expected && third == expected && known == expected)
        #expect(calls.withLock { $0 } == 2)
    }

    /// What was derived from it would have to be derived again.
    @Test func anEqualKeyStaysTheOldOne() throws {
        let sourced = SourcedKey(.closure { try Key.passphrase("open sesame") })
        let key = try sourced.key()
        #expect(try sourced.newKey(insteadOf: key) == nil)
        #expect(try sourced.key().derivedKeys === key.derivedKeys)
    }

    @Test func timeoutsOfAsynchronousClosures() throws {
        let longest = try KeySource.asyncClosure(timeout: .seconds(86_400)) { try .testing(3) }.key()
        let expected = try Key.testing(3)
        #expect(longest == expected)
        #expect(reason(.asyncClosure(timeout: .seconds(86_401)) { try .testing(3) }) == .malformedKey)
    }

    /// What is a key by mistake is not shown, nor stored as a name.
    @Test(arguments: [64, 96], ["", "x'"])
    func aNameThatLooksLikeAKeyIsNotShown(count: Int, prefix: String) throws {
        let name = prefix + String(repeating: "0a", count: count / 2) + (prefix.isEmpty ? "" : "'")
        for source in [.keyFile(name), .passphraseFile(name), .keyCredential(name), .passphraseCredential(name)]
            as [KeySource]
        {
            let error = #expect(throws: DatabaseError.self) { try source.key() }
            #expect(error?.reason == .malformedKey)
            #expect(error?.message.contains("0a0a") == false)
        }
        let errors = [
            #expect(throws: DatabaseError.self) { try KeyRing(contentsOfFile: name) },
            #expect(throws: DatabaseError.self) { try KeyRing(activeID: name, key: .testing(1)) },
            #expect(throws: DatabaseError.self) { try KeyRing(activeID: "a", key: .testing(1)).write(toNewFile: name) },
        ]
        for error in errors { #expect(error?.message.contains("0a0a") == false) }
        var ring = try KeyRing(activeID: "a", key: .testing(1))
        #expect(throws: DatabaseError.self) { try ring.add(.testing(2), id: name) }
        #expect(ring.ids == ["a"])
    }
}
