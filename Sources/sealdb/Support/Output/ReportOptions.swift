import ArgumentParser
import Foundation
import SealedDB
import Synchronization

/// How a command tells what it has done.
struct ReportOptions: ParsableArguments {
    @Flag(help: "Print JSON lines, each with kind, path, status and exitCode.")
    var json = false

    @Flag(name: [.customShort("q"), .long], help: "Print nothing about what went well.")
    var quiet = false

    func validate() throws {
        guard !json || !quiet else { throw ValidationError("--json and --quiet exclude each other.") }
        if json { JSONReport.expect() }
    }

    /// Call this before the work on a file begins. From then on a failure is reported in JSON too.
    func begin(_ path: String) {
        if json { JSONReport.begin(path: StoreItem.identity(of: path)) }
    }

    /// Call this before anything that may fail, if there may be several files.
    func begin() {
        if json { JSONReport.begin(path: nil) }
    }

    /// Refuses JSON where standard output takes the file itself.
    func requireNoJSON() throws {
        guard !json else { throw ValidationError("Standard output cannot take both the file and --json.") }
    }

    /// Reports that the work is done.
    /// - Parameters:
    ///   - text: whole lines.
    ///   - content: further members of the JSON object.
    ///   - failure: why it is done only in part. It is thrown when the report is written.
    ///   - failureStatus: what JSON then says.
    func report(
        _ text: String,
        _ content: any Encodable & Sendable = [String: String](),
        status: String = "done",
        failure: Failure? = nil,
        failureStatus: String = "partial",
        to output: ResultOutput = ResultOutput()
    ) throws {
        if json {
            let record = ResultRecord(
                path: JSONReport.path,
                status: failure == nil ? status : failureStatus,
                exitCode: failure?.status.rawValue ?? 0,
                message: failure?.message,
                content: content
            )
            try JSONReport.complete(record, output)
        } else if !quiet || failure != nil {
            try output.write(text)
        }
        try output.flush()
        if let failure { throw failure }
    }
}

/// A line of JSON that tells how the work on one file ended, with the members of the content. Fields may be added;
/// existing fields keep their meaning.
struct ResultRecord: Encodable {
    /// Absolute; `nil` for work that concerns no file alone.
    let path: String?
    let status: String
    var exitCode: Int32 = 0
    var message: String?
    var content: any Encodable & Sendable = [String: String]()

    private enum Names: String, CodingKey { case kind, path, status, exitCode, message }

    func encode(to encoder: any Encoder) throws {
        try content.encode(to: encoder)
        var container = encoder.container(keyedBy: Names.self)
        try container.encode("result", forKey: .kind)
        // The path of the content, if there is one, may be as the user wrote it.
        if let path { try container.encode(path, forKey: .path) }
        try container.encode(status, forKey: .status)
        try container.encode(exitCode, forKey: .exitCode)
        try container.encodeIfPresent(message, forKey: .message)
    }
}

extension ResultRecord {
    /// - Parameter status: the status to write; `nil` for the name of the outcome.
    init(_ store: StoreItem, _ outcome: StoreOutcome, status: String? = nil, content: any Encodable & Sendable) {
        self.init(path: store.identity, status: status ?? outcome.name, content: content)
        switch outcome {
        case .failed(let exitCode, let message): (self.exitCode, self.message) = (exitCode, message)
        case .stopped: exitCode = SignalWatch.exitStatus ?? ExitStatus.busy.rawValue
        case .done, .unchanged, .notBegun: break
        }
    }
}

/// The JSON of the whole process: its last result is written once, whether the work went well or failed.
enum JSONReport {
    private struct State {
        var isExpected = false
        var isPending = false
        var path: String?
    }

    private static let state = Mutex(State())

    static var path: String? { state.withLock { $0.path } }

    /// The command line asks for JSON.
    static func expect() { state.withLock { $0.isExpected = true } }

    /// Has a failure reported from now on, if JSON was asked for.
    static func beginIfExpected() {
        state.withLock { state in
            if state.isExpected { state.isPending = true }
        }
    }

    /// - Parameter path: `nil` if there are several files, each with a result of its own.
    static func begin(path: String?) {
        state.withLock { $0 = State(isPending: true, path: path) }
    }

    static func complete(_ record: ResultRecord, _ output: ResultOutput) throws {
        state.withLock { $0.isPending = false }
        try output.writeJSON(record)
    }

    /// The results were written by somebody else.
    static func end() { state.withLock { $0.isPending = false } }

    /// Reports the failure that ends the process, unless JSON was not asked for, or the result is written already.
    static func fail(status: Int32, message: String) {
        let pending = state.withLock { state in
            defer { state.isPending = false }
            return state.isPending ? state : nil
        }
        guard let pending else { return }
        let record = ResultRecord(
            path: pending.path,
            status: SignalWatch.exitStatus == status ? "stopped" : "failed",
            exitCode: status,
            message: GivenKeys.hidden(in: message)
        )
        let output = ResultOutput(endsWithReader: false)
        // The failure is told on standard error in any case, and the exit code is that of the first one.
        try? output.writeJSON(record)
        try? output.flush()
    }
}

/// A row of a statement, as a line of JSON.
final class JSONRowWriter: ResultWriter {
    private let output: ResultOutput
    private let start: String
    private let writer: JSONWriter

    /// - Parameter statement: its number, from 1.
    init(output: ResultOutput, path: String, statement: Int) {
        self.output = output
        writer = JSONWriter(output: output, isLines: true)
        start = #"{"kind":"row","path":\#(JSONWriter.string(path)),"statement":\#(statement),"values":"#
    }

    func begin(columns: [String]) throws { try writer.begin(columns: columns) }

    func write(row: ResultSet) throws {
        output.buffer.add(start)
        writer.addObject(row)
        output.buffer.add("}\n")
        try output.endRow()
    }

    func end() throws {}
}
