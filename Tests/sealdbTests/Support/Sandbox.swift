import Foundation
import SealedDB
import Testing

/// A temporary directory of one test, and processes that run in it.
final class Sandbox {
    /// The working directory of the processes; file names in arguments are relative to it.
    let directory: String
    private let root: String
    private let files = FileManager.default

    init() throws {
        var template = Array((NSTemporaryDirectory() + "sealdb-test-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw ChildProcess.Failure(message: "no temporary directory") }
        root = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        directory = root + "/work"
        try files.createDirectory(atPath: directory, withIntermediateDirectories: false)
    }

    deinit {
        try? files.removeItem(atPath: root)
    }

    // MARK: Processes

    @discardableResult
    func run(
        _ arguments: [String],
        input: String? = nil,
        environment: [String: String?] = [:]
    ) throws -> Outcome {
        let streams = root + "/" + UUID().uuidString
        defer { for suffix in [".in", ".out", ".err"] { try? files.removeItem(atPath: streams + suffix) } }
        if let input { try Data(input.utf8).write(to: URL(fileURLWithPath: streams + ".in")) }
        let child = try ChildProcess(
            arguments,
            directory: directory,
            environment: environment,
            streams: .files(
                input: input == nil ? "/dev/null" : streams + ".in",
                output: streams + ".out",
                error: streams + ".err"
            )
        )
        let status = child.wait()
        return Outcome(
            status: status,
            outputData: files.contents(atPath: streams + ".out") ?? Data(),
            error: String(decoding: files.contents(atPath: streams + ".err") ?? Data(), as: UTF8.self)
        )
    }

    @discardableResult
    func sealdb(_ arguments: String..., input: String? = nil) throws -> Outcome {
        try run([Tool.sealdb] + arguments, input: input)
    }

    /// Runs and expects success.
    @discardableResult
    func succeed(
        _ arguments: String...,
        input: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let outcome = try run([Tool.sealdb] + arguments, input: input)
        #expect(outcome.status == 0, "\(arguments): \(outcome.error)", sourceLocation: sourceLocation)
        return outcome
    }

    /// Runs and expects this exit code, nothing on standard output, and one message on standard error.
    @discardableResult
    func fail(
        _ status: Int32,
        _ arguments: String...,
        input: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let outcome = try run([Tool.sealdb] + arguments, input: input)
        #expect(outcome.status == status, "\(arguments): \(outcome.error)", sourceLocation: sourceLocation)
        #expect(outcome.output.isEmpty, sourceLocation: sourceLocation)
        #expect(outcome.error.hasPrefix("sealdb: "), "\(outcome.error)", sourceLocation: sourceLocation)
        return outcome
    }

    // MARK: Files

    func path(_ name: String) -> String { directory + "/" + name }

    func write(_ name: String, _ text: String, mode: Int = 0o600) throws {
        try write(name, Data(text.utf8), mode: mode)
    }

    func write(_ name: String, _ data: Data, mode: Int = 0o600) throws {
        try FileHandle.closedToChildren(path(name), O_WRONLY | O_CREAT | O_TRUNC).write(contentsOf: data)
        try files.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
    }

    /// A program, such as a script, and its path.
    ///
    /// Another process writes it. What this one has open for writing, a child of another test has open too until it has begun
    /// its own program; and what somebody may write to cannot be started ("Text file busy").
    @discardableResult
    func writeProgram(_ name: String, _ text: String) throws -> String {
        let outcome = try run(["/bin/sh", "-c", "cat >\"$0\" && chmod 700 \"$0\"", path(name)], input: text)
        guard outcome.status == 0 else { throw ChildProcess.Failure(message: "\(name): \(outcome.error)") }
        return path(name)
    }

    /// Another process reads the file: where a process closes one, it loses the locks of its connections, and others then take
    /// them for ones that use another file.
    func contents(_ name: String) throws -> Data {
        let outcome = try run(["/bin/cat", "--", path(name)])
        guard outcome.status == 0 else { throw ChildProcess.Failure(message: "\(name): \(outcome.error)") }
        return outcome.outputData
    }

    func mode(_ name: String) throws -> Int? {
        try files.attributesOfItem(atPath: path(name))[.posixPermissions] as? Int
    }

    /// The names of all files, sorted.
    func names() throws -> [String] {
        try files.contentsOfDirectory(atPath: directory).sorted()
    }

    func removeAll(but kept: [String]) throws {
        for name in try names() where !kept.contains(name) { try files.removeItem(atPath: path(name)) }
    }

    func exists(_ name: String) -> Bool { files.fileExists(atPath: path(name)) }

    /// Overwrites bytes in the middle of a file.
    func overwrite(_ name: String, at offset: UInt64, with bytes: [UInt8]) throws {
        let handle = try FileHandle.closedToChildren(path(name), O_RDWR)
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    func truncate(_ name: String, to size: UInt64) throws {
        let handle = try FileHandle.closedToChildren(path(name), O_RDWR)
        try handle.truncate(atOffset: size)
        try handle.close()
    }

    // MARK: Stores

    /// A key file of this name.
    func makeKey(_ name: String = "key") throws {
        try succeed("keygen", name)
    }

    /// A store "db" under the key file "key", with a table `people` of 50 rows that fill some pages.
    func makeStore(journalMode: String = "delete") throws {
        try makeKey()
        try succeed("create", "db", "--key-file", "key")
        if journalMode != "delete" {
            try succeed("exec", "db", "PRAGMA journal_mode = \(journalMode)", "--key-file", "key")
        }
        try succeed(
            "exec",
            "db",
            """
            CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, bio TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            INSERT INTO people SELECT i, 'Person ' || i, 'known plaintext ' || hex(zeroblob(200)) FROM n;
            """,
            "--key-file",
            "key"
        )
    }

    /// Stores "s01", "s02" and so on, all as "db" of `makeStore`, under the key file "key"; and a key file "new".
    @discardableResult
    func makeFleet(_ count: Int, journalMode: String = "delete") throws -> [String] {
        try makeStore(journalMode: journalMode)
        try makeKey("new")
        let names = (1...count).map { String(format: "s%02d", $0) }
        for name in names { try files.copyItem(atPath: path("db"), toPath: path(name)) }
        try files.removeItem(atPath: path("db"))
        return names
    }

    /// Which of the key files open the store, sound and whole.
    func keys(opening store: String, of keyFiles: [String] = ["key", "new"]) throws -> [String] {
        try keyFiles.filter { keyFile in
            let verified = try sealdb("verify", store, "--key-file", keyFile)
            guard verified.status == 0 else {
                guard verified.status != 77 else { return false }
                throw ChildProcess.Failure(message: "\(store), \(keyFile): \(verified.output)\(verified.error)")
            }
            return try census(keyFile: keyFile, store: store).output == Sandbox.wholeStore
        }
    }

    /// What a whole store "db" of `makeStore` answers.
    static let wholeStore = "50,1275,50\n"

    /// The answer of the store under a key file: its rows, their sum, and how many have their text.
    func census(keyFile: String, store: String = "db") throws -> Outcome {
        let sql = "SELECT count(*), sum(id), sum(bio LIKE 'known plaintext %') FROM people"
        let outcome = try sealdb("query", store, sql, "--key-file", keyFile, "--format", "csv")
        let rows = outcome.outputData.drop { $0 != UInt8(ascii: "\n") }.dropFirst()
        return Outcome(status: outcome.status, outputData: Data(rows), error: outcome.error)
    }

    /// A connection of this process, for what needs a second one.
    func connection(_ store: String = "db", keyFile: String = "key") throws -> Database {
        let key = try KeySource.keyFile(path(keyFile)).key()
        let database = Database(path: path(store), configuration: Configuration(key: key))
        try database.openVerified()
        return database
    }
}

/// Whether this is the build with a cipher.
let isEncrypting = EngineInfo.current().isEncrypting
