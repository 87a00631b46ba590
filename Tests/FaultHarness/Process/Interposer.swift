import Foundation

/// The shared object that goes in front of libc in the program under test, built from `Interposer/interposer.c`.
enum Interposer {
    static func build(in directory: String) throws -> String {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Interposer/interposer.c").path
        let object = directory + "/interposer.so"
        let result = try Command.run(
            ["clang", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", object, source]
        )
        guard result.status == 0 else { throw HarnessError("The interposer does not compile:\n\(result.error)") }
        return object
    }
}

/// The harness itself cannot go on. Never a verdict on the program under test.
struct HarnessError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The programs that are run, which lie beside the harness.
enum Program {
    private static let directory = URL(
        fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    ).deletingLastPathComponent()

    static let sealdb = directory.appendingPathComponent("sealdb").path
    static let subject = directory.appendingPathComponent("FaultSubject").path
}
