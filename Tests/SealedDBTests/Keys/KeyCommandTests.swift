import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct KeyCommandTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A passphrase that a shell script prints. `$0` is the test's directory.
    private func script(_ text: String, timeout: Duration = .seconds(60)) -> KeySource {
        .passphraseCommand(["/bin/sh", "-c", text, directory.path], timeout: timeout)
    }

    private func failure(_ source: KeySource) throws -> DatabaseError {
        try #require(throws: DatabaseError.self) { try source.key() }
    }

    @Test func rawKeysAndPassphrases() throws {
        #expect(try script("echo open sesame").key() == .passphrase("open sesame"))
        #expect(try script("printf 'open '; printf sesame").key() == .passphrase("open sesame"))
        let digits = String(repeating: "0a", count: 32)
        #expect(try KeySource.keyCommand(["/bin/echo", digits]).key() == .testing(10))
        #expect(try KeySource.keyCommand(["/usr/bin/printf", digits]).key() == .testing(10))
    }

    @Test func argumentsAreTakenLiterally() throws {
        let source = KeySource.passphraseCommand(["/bin/echo", "$HOME; *", "'two  words'"])
        #expect(try source.key() == .passphrase("$HOME; * 'two  words'"))
    }

    @Test(arguments: [
        [], [""], ["echo", "x"], ["./echo", "x"], ["/bin/echo", "a\0b"],
    ])
    func malformedCommands(arguments: [String]) throws {
        #expect(try failure(.passphraseCommand(arguments)).reason == .malformedKey)
    }

    @Test(arguments: [.zero, .seconds(-1), .seconds(86_401), Duration(secondsComponent: .max, attosecondsComponent: 0)])
    func malformedTimeouts(timeout: Duration) throws {
        #expect(try failure(script("echo x", timeout: timeout)).reason == .malformedKey)
    }

    @Test func programsThatCannotBeStarted() throws {
        #expect(try failure(.keyCommand(["/no/such/program"])).reason == .noSuchFile)
        #expect(try failure(.keyCommand([directory.path])).reason == .notPermitted)
        #expect(try failure(.keyCommand([directory.write("text", "x".utf8)])).reason == .notPermitted)
    }

    @Test func failuresShowNoOutput() throws {
        let failed = try failure(script("echo hush; exit 3"))
        #expect(failed.reason == .keySourceFailed)
        #expect(failed.message.contains("exit status 3") && failed.message.contains("/bin/sh"))
        let killed = try failure(script("echo hush; kill -9 $$"))
        #expect(killed.reason == .keySourceFailed && killed.message.contains("signal 9"))
        for error in [failed, killed] { #expect(!"\(error)".contains("hush")) }
    }

    @Test func badOutput() throws {
        #expect(try failure(script(":")).reason == .malformedKey)
        #expect(try failure(script("echo")).reason == .malformedKey)
        #expect(try failure(script("printf 'a\\0b'")).reason == .malformedKey)
        #expect(try failure(.keyCommand(["/bin/echo", "abc"])).reason == .malformedKey)
    }

    @Test func endlessOutputIsCutOff() throws {
        let error = try failure(script("exec yes"))
        #expect(error.reason == .keySourceFailed && error.message.contains("4096"))
        #expect(
            try script("head -c 4096 /dev/zero | tr '\\0' a").key() == .passphrase(String(repeating: "a", count: 4096))
        )
        #expect(try failure(script("head -c 4097 /dev/zero | tr '\\0' a")).reason == .keySourceFailed)
    }

    /// A child that has ended stays until somebody waits for it.
    @Test func noChildIsLeftOver() throws {
        let program = directory.file("left-over")
        try #require(symlink("/bin/sleep", program) == 0)
        let source = KeySource.passphraseCommand([program, "60"], timeout: .milliseconds(100))
        #expect(try failure(source).reason == .keySourceFailed)
        let left = try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { process in
            // A process may end meanwhile.
            let status = Int(process).flatMap { try? String(contentsOfFile: "/proc/\($0)/stat", encoding: .utf8) }
            return status?.contains("(left-over) Z \(getpid()) ") == true
        }
        #expect(left == [])
    }

    /// The pipe ends when nobody has it open any more, so neither the shell nor its child is left.
    @Test(arguments: ["sleep 600 & wait", "sleep 600 & exit 0", "exec >&-; sleep 600 & wait"])
    func timeoutKillsAllChildren(text: String) throws {
        mkfifo(directory.file("alive"), 0o600)
        let alive = open(directory.file("alive"), O_RDONLY | O_NONBLOCK)
        defer { close(alive) }
        let error = try failure(script("exec 9>\"$0/alive\"; echo hush; \(text)", timeout: .milliseconds(300)))
        #expect(error.reason == .keySourceFailed && error.message.contains("0.3 seconds"), "\(error)")
        #expect(!"\(error)".contains("hush"))
        // Without a limit this would wait for as long as a child sleeps that was not killed.
        var end = pollfd(fd: alive, events: Int16(POLLIN), revents: 0)
        #expect(poll(&end, 1, 60_000) == 1 && end.revents & Int16(POLLHUP) != 0, "A child lives on.")
        var byte: UInt8 = 0
        #expect(read(alive, &byte, 1) == 0)
    }

    @Test func nothingIsInherited() throws {
        // Without O_CLOEXEC, as another library might leave it.
        let leaked = open(try directory.write("secret", "x".utf8), O_RDONLY)
        defer { close(leaked) }
        let text = "env > \"$0/env\"; ls -l /proc/$$/fd > \"$0/fds\"; cat > \"$0/input\"; echo x"
        _ = try script(text).key()
        let names = try String(decoding: directory.bytes("env"), as: UTF8.self).split(separator: "\n")
            .map { String($0.prefix { $0 != "=" }) }
        // The last three are the shell's own.
        let allowed: Set = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "PWD", "OLDPWD", "_", "SHLVL"]
        #expect(names.contains("PATH") && Set(names).isSubset(of: allowed), "\(names)")
        let descriptors = try String(decoding: directory.bytes("fds"), as: UTF8.self)
        #expect(!descriptors.contains("secret"), "\(descriptors)")
        let numbers = descriptors.split(separator: "\n").compactMap { line in
            line.split(separator: " ").drop { $0 != "->" }.isEmpty
                ? nil : line.split(separator: " ").dropLast(2).last.map(String.init)
        }
        #expect(Set(numbers).isSubset(of: ["0", "1", "2", "10"]) && numbers.contains("1"), "\(descriptors)")
        var status = stat()
        #expect(stat(directory.file("input"), &status) == 0 && status.st_size == 0)
    }

    @Test func signalsAreAsTheyShouldBe() throws {
        // The threads of a test block signals, and SIGPIPE may be ignored.
        _ = try script("grep -E '^Sig(Blk|Ign):' /proc/self/status > \"$0/signals\"; echo x").key()
        let sets = try String(decoding: directory.bytes("signals"), as: UTF8.self).split(separator: "\n")
            .compactMap { UInt64($0.suffix(16), radix: 16) }
        // The C library uses two of the signals beyond 31 itself.
        #expect(sets.count == 2 && sets.allSatisfy { $0 & 0x7fff_ffff == 0 }, "\(sets)")
    }

    /// Neither the end from which its output was read, nor that from which it read.
    @Test(arguments: [false, true]) func noPipeStaysOpen(hasInput: Bool) throws {
        let command = KeyCommand(["/bin/sh", "-c", "readlink /proc/$$/fd/0 /proc/$$/fd/1"], timeout: 60)
        let output = try command.output(input: hasInput ? SecretBytes(copying: Array("x".utf8)) : nil)
        let text = try output.withBytes { bytes throws(DatabaseError) in String(decoding: bytes, as: UTF8.self) }
        let pipes = text.split(separator: "\n").filter { $0.hasPrefix("pipe:") }
        #expect(pipes.count == (hasInput ? 2 : 1), "\(text)")
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { descriptor in
            // One that is closed meanwhile leads nowhere.
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        }
        for pipe in pipes { #expect(!open.contains { $0.hasSuffix(pipe) }, "\(pipe)") }
    }

    /// Programs look for what belongs to their user.
    @Test func theUserIsTold() throws {
        let names = ["HOME", "USER", "LOGNAME", "LANG"]
        let values = names.map { ProcessInfo.processInfo.environment[$0] ?? "" }
        let key = try script("echo \"of $HOME:$USER:$LOGNAME:$LANG\"").key()
        #expect(try key == .passphrase("of " + values.joined(separator: ":")))
    }

    @Test func theLongestTimeout() throws {
        #expect(try script("echo x", timeout: .seconds(86_400)).key() == .passphrase("x"))
    }
}
