import Foundation
import Testing

/// A real PostgreSQL server, which all tests of this process share and which ends with it. Nothing of it changes: that makes it
/// sendable.
final class PostgreSQLServer: @unchecked Sendable {
    static let shared = Result { try PostgreSQLServer() }

    /// Why there can be none; `nil` if there can.
    static let obstacle: String? = {
        guard isEncrypting else { return "the plain build takes no key" }
        guard (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql"))?.isEmpty == false else {
            return "there is no PostgreSQL server; scripts/setup installs it"
        }
        guard let sandbox = try? Sandbox(), (try? sandbox.makeKey()) != nil,
            let outcome = try? sandbox.sealdb("export", "absent", "--to", "postgresql://", "--key-file", "key")
        else { return "sealdb does not run" }
        return outcome.status == 78 ? "the trait PostgreSQL is off" : nil
    }()

    /// The directory of its socket.
    let directory: String
    let port: String
    private let programs: String
    /// The server runs until this is closed, which the system does when the process ends in whatever way.
    private let hold: FileHandle

    private init() throws {
        let (input, output) = (Pipe(), Pipe())
        hold = input.fileHandleForWriting
        let process = Process()
        let scripts = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../scripts").standardized
        process.executableURL = scripts.appendingPathComponent("postgresql-server")
        // A port of its own: there may be another server, and the tests of another checkout.
        process.arguments = ["--port", String(20_000 + Int(getpid()) % 20_000)]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try output.fileHandleForWriting.close()
        var text = Data()
        while text.filter({ $0 == UInt8(ascii: "\n") }).count < 3 {
            guard let more = try output.fileHandleForReading.read(upToCount: 1), !more.isEmpty else {
                throw ChildProcess.Failure(message: "scripts/postgresql-server failed")
            }
            text += more
        }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        (directory, port, programs) = (lines[0], lines[1], lines[2])
    }

    /// The URL of a database by the server's socket.
    func url(_ database: String) -> String { "postgresql:///\(database)?host=\(directory)&port=\(port)&user=postgres" }

    /// What psql prints for SQL, without alignment.
    func query(_ database: String, _ sql: String, in sandbox: Sandbox) throws -> String {
        let outcome = try sandbox.run(
            [
                programs + "/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", directory, "-p", port, "-U", "postgres",
                database,
            ],
            input: sql
        )
        guard outcome.status == 0 else { throw ChildProcess.Failure(message: outcome.error) }
        return outcome.output
    }

    /// A session that executes SQL and goes on until it is ended.
    func session(_ database: String, _ sql: String, in sandbox: Sandbox) throws -> ChildProcess {
        try ChildProcess(
            [programs + "/psql", "-Xq", "-h", directory, "-p", port, "-U", "postgres", "-c", sql, database],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("psql.out"), error: sandbox.path("psql.err"))
        )
    }
}
