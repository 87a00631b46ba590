import Cases
import Foundation
import Wire

/// Measures what the comparison asks for: requests come in on standard input, replies go out on standard output, each a
/// JSON object on a line of its own.
///
/// Usage: `worker DIRECTORY (full | quick) [PACKAGE-FILE]`
@main
struct Worker {
    let suite: Suite
    var prepared: [String: PreparedCase] = [:]

    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else {
            FileHandle.standardError.write(Data("This is a part of Benchmarks/compare.\n".utf8))
            exit(64)
        }
        var worker = Worker(
            suite: Suite(
                directory: arguments[1],
                isQuick: arguments[2] == "quick",
                packageFile: arguments.count > 3 ? arguments[3] : nil
            )
        )
        while let line = readLine() {
            var reply: Reply
            do {
                reply = try worker.answer(JSONDecoder().decode(Request.self, from: Data(line.utf8)))
            } catch {
                reply = .failure("\(error)")
            }
            try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(reply) + Data("\n".utf8))
        }
    }

    private mutating func answer(_ request: Request) throws -> Reply {
        switch request {
        case .list: return .cases(suite.cases)
        case .describeEngine: return .engine(Suite.engine)
        case .begin(let id, let sampleNanoseconds):
            let new = try suite.begin(id, sampleNanoseconds: sampleNanoseconds)
            prepared[id] = new
            return .ready(subjects: new.subjects)
        case .sample(let id, let subject):
            guard let prepared = prepared[id] else { return .failure("\(id) was not begun.") }
            return .sample(try prepared.sample(subject))
        case .end:
            prepared = [:]
            return .done
        }
    }
}
