import Foundation
import Testing

@testable import SealedDB

/// Slots of programs. A shell script takes the place of `age` here.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build has no keys"))
struct SlotProgramTests {
    private let wrap = ["/usr/bin/tr", "0-9a-f", "g-v"]
    private let unwrap = ["/usr/bin/tr", "g-v", "0-9a-f"]
    private let store: SlotStore

    init() throws {
        store = try SlotStore()
    }

    private func add(_ wrap: [String], _ unwrap: [String]?, label: String = "safe-2") throws -> KeySlots.Report {
        try store.slots().add(.init(.program(wrap: wrap, unwrap: unwrap), label: label, isRecovery: true))
    }

    private func refusal(_ wrap: [String], _ unwrap: [String]?) throws -> DatabaseError {
        let error = try #require(throws: DatabaseError.self) { try self.add(wrap, unwrap) }
        #expect(try store.slots().list().slots.count == 2)
        return error
    }

    @Test func programsOpen() throws {
        #expect(try add(wrap, unwrap).untried.isEmpty)
        let key = try KeySource.unwrapCommand(unwrap).key()
        for _ in 0..<3 { #expect(try store.count(key) == 20) }
        #expect(key.slotKeys.derivationCount == 1)
        #expect("\(key)" == "Key(redacted)")
    }

    @Test func wrappingAloneIsEnough() throws {
        #expect(try add(wrap, nil).untried == ["safe-2"])
        #expect(try store.count(KeySource.unwrapCommand(unwrap).key()) == 20)
    }

    /// What the article tells to do without this library.
    @Test func recipe() throws {
        _ = try add(wrap, nil)
        let script = """
            f=$0; b=$(sed -n '/^slot [0-9]* program /{n;s/^wrap 1 program //p}' "$f.slots")
            k=$(printf %s "$b" | base64 -d | tr g-v 0-9a-f)
            printf "PRAGMA key = \\"x'%s'\\"; SELECT count(*) FROM t;\\n" "$k" | sqlcipher -batch "$f"
            """
        let output = try KeyCommand(["/bin/sh", "-c", script, store.path], timeout: 60).output()
        let text = try output.withBytes { bytes throws(DatabaseError) in String(decoding: bytes, as: UTF8.self) }
        #expect(text.hasSuffix("20\n"))
    }

    @Test func programsThatFail() throws {
        #expect(try refusal(["/bin/false"], nil).reason == .keySourceFailed)
        #expect(try refusal(["/bin/true"], nil).message.contains("printed nothing"))
        #expect(try refusal(["/bin/cat"], nil).message.contains("as it is"))
        for program in [
            ["/usr/bin/tr", "a-f", "A-F"], ["/usr/bin/base64"], ["/usr/bin/base64", "-w", "16"],
            ["/usr/bin/fold", "-w", "2"],
            [
                "/bin/sh", "-c",
                "xxd -r -p 2>/dev/null || python3 -c 'import sys;sys.stdout.buffer.write(bytes.fromhex(input()))'",
            ],
        ] {
            #expect(try refusal(program, nil).message.contains("as it is"), "\(program)")
        }
        #expect(try refusal(["/usr/bin/yes"], nil).message.contains("more than 4096"))
        #expect(try refusal(["tr"], nil).reason == .malformedKey)
        #expect(try refusal(["/no/such/program"], nil).reason == .noSuchFile)
        #expect(try refusal(wrap, ["/bin/false"]).message.contains("removed again"))
        #expect(try refusal(wrap, ["/bin/cat"]).message.contains("removed again"))
        let other = String(repeating: "0a", count: 32)
        #expect(try refusal(wrap, ["/bin/echo", other]).reason == .keySourceFailed)
        let limit = ["/bin/sh", "-c", "sleep 100"]
        let slow = try #require(throws: DatabaseError.self) {
            try store.slots().add(
                .init(.program(wrap: limit, unwrap: nil, timeout: .milliseconds(50)), label: "slow")
            )
        }
        #expect(slow.message.contains("within"))
        for error in [try refusal(["/bin/cat"], nil), slow] {
            #expect(try !error.message.contains(store.dataKey()))
        }
    }

    /// What a program prints proves nothing: an older file is not used because of it, and nothing is repaired.
    @Test func otherKeysProveNothing() throws {
        _ = try add(wrap, unwrap)
        let old = try store.bytes()
        _ = try store.slots().rename("ops", to: "x")
        let new = try store.bytes()
        try store.write(old, to: [1])
        let key = try KeySource.unwrapCommand(["/bin/echo", String(repeating: "0a", count: 32)]).key()
        let error = try store.refusal(key)
        #expect(error.reason == .keySourceFailed && error.message.contains("not this store's"))
        #expect(try store.bytes(0) == new && store.bytes(1) == old)
    }

    /// All slots together take no longer than one program may.
    @Test func programsTakeNoLongerTogether() throws {
        for label in ["a", "b", "c"] { _ = try add(wrap, nil, label: label) }
        let log = store.directory.file("log")
        let script = "echo x >> \(log); read -r x; sleep 0.2; exit 1"
        let key = try KeySource.unwrapCommand(["/bin/sh", "-c", script], timeout: .milliseconds(100)).key()
        #expect(try store.refusal(key).reason == .keySourceFailed)
        #expect(try String(contentsOfFile: log, encoding: .utf8) == "x\n")
    }

    /// Nothing that a program has started goes on with the data key.
    @Test func childrenAreKilled() throws {
        let file = store.directory.file("pid")
        let script = "(read -r key; while :; do sleep 1; done) <&0 & echo $! > \(file); wait"
        let error = try #require(throws: DatabaseError.self) {
            try self.store.slots().add(
                .init(.program(wrap: ["/bin/sh", "-c", script], unwrap: nil, timeout: .milliseconds(500)), label: "x")
            )
        }
        #expect(error.reason == .keySourceFailed)
        let process = try #require(
            pid_t(String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines))
        )
        // The signal is on its way, and nobody may wait for the process.
        var isAlive = true
        while isAlive {
            let state = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            isAlive = state.map { !$0.contains(") Z") && !$0.contains(") X") } ?? false
            sched_yield()
        }
    }

    @Test func programsOfOtherSlotsAreTriedToo() throws {
        _ = try add(["/usr/bin/tr", "0-9a-f", "A-P"], nil, label: "first")
        _ = try add(wrap, nil, label: "second")
        #expect(try store.count(KeySource.unwrapCommand(unwrap).key()) == 20)
        #expect(try store.refusal(KeySource.unwrapCommand(["/bin/false"]).key()).reason == .keySourceFailed)
        #expect(try store.refusal(KeySource.unwrapCommand(["/bin/cat"]).key()).reason != .wrongKey)
    }

    @Test func programsOpenOnlySlots() throws {
        let plain = try Database.testing(store.directory.file("plain.db"))
        try plain.fill(rows: 1)
        plain.close()
        let key = try KeySource.unwrapCommand(["/bin/echo", String(repeating: "01", count: 32)]).key()
        for name in ["plain.db", "new.db"] {
            let database = Database(path: store.directory.file(name), configuration: Configuration(key: key))
            let error = try #require(throws: DatabaseError.self) { try database.openVerified() }
            #expect(error.reason == .malformedKey && error.message.contains("slots"), "\(error)")
        }
        #expect(throws: DatabaseError.self) {
            try KeySlots(path: store.path, key: .testing(1)).add(.init(.key(key), label: "x"))
        }
        #expect(throws: DatabaseError.self) {
            try KeyRing(activeID: "x", key: key).write(toNewFile: store.directory.file("ring"))
        }
    }
}
