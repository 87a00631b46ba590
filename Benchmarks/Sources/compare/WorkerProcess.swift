import Foundation
import Wire

/// A process that measures with one engine.
final class WorkerProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer = Data()
    private let directory: String

    /// - Parameters:
    ///   - directory: made here, and removed with the process.
    ///   - keepsContexts: whether SealedDB may put its functions in the place of SQLCipher's, for the whole process.
    init(_ executable: String, directory: String, isQuick: Bool, packageFile: String?, keepsContexts: Bool) throws {
        self.directory = directory
        try? FileManager.default.removeItem(atPath: directory)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = [directory, isQuick ? "quick" : "full"] + (packageFile.map { [$0] } ?? [])
        var environment = ProcessInfo.processInfo.environment
        environment["SEALEDDB_PROVIDER"] = keepsContexts ? nil : "stock"
        process.environment = environment
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func cases() throws -> [CaseInfo] {
        guard case .cases(let cases) = try ask(.list) else { throw WorkerError("no list of cases") }
        return cases
    }

    func engine() throws -> EngineInfo {
        guard case .engine(let engine) = try ask(.describeEngine) else { throw WorkerError("no engine") }
        return engine
    }

    func begin(_ id: String, sampleNanoseconds: Double) throws -> [Subject] {
        guard case .ready(let subjects) = try ask(.begin(id: id, sampleNanoseconds: sampleNanoseconds)) else {
            throw WorkerError("\(id) did not begin")
        }
        return subjects
    }

    func sample(_ id: String, _ subject: Subject) throws -> Sample {
        guard case .sample(let sample) = try ask(.sample(id: id, subject: subject)) else {
            throw WorkerError("no sample")
        }
        return sample
    }

    func end() throws { _ = try ask(.end) }

    private func ask(_ request: Request) throws -> Reply {
        try input.fileHandleForWriting.write(contentsOf: JSONEncoder().encode(request) + Data("\n".utf8))
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = Data(buffer[..<end])
                buffer = Data(buffer[(end + 1)...])
                let reply = try JSONDecoder().decode(Reply.self, from: line)
                if case .failure(let message) = reply { throw WorkerError(message) }
                return reply
            }
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else { throw WorkerError("the process ended; asked for \(request)") }
            buffer += more
        }
    }
}

struct WorkerError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
