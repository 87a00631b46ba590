import ArgumentParser
import Foundation
import SealedDB

/// The SQL of a command, and the values for its parameters in their order. ``ParameterOptions`` has those by name.
struct SQLOptions: ParsableArguments {
    @Argument(help: "The SQL; - reads it from standard input. Left out with --file.")
    var sql: String?

    @Argument(help: "Values for the statement's parameters, in order.")
    var values: [String] = []

    @Option(name: .customLong("file"), help: ArgumentHelp("Read the SQL from a file.", valueName: "path"))
    var path: String?

    /// The SQL, with the values for its parameters.
    struct Source {
        let script: SQLScript
        /// In the order of the parameters.
        var values: [String]
        /// By their names. Only one of the two has any.
        var named: [String: (any Bindable)?] = [:]
        var hasValues: Bool { !values.isEmpty || !named.isEmpty }
        /// Whether an error has to say where in the SQL it is.
        let isFile: Bool
    }

    func validate() throws {
        guard path == nil else { return }
        guard sql != nil else { throw ValidationError("Give the SQL, or --file with a file that holds it.") }
    }

    /// Whether the SQL comes from standard input.
    var readsStandardInput: Bool { path.map(InputFile.isStandardInput) ?? (sql == "-") }

    func source(_ parameters: ParameterOptions) throws -> Source {
        guard !parameters.readsStandardInput || !readsStandardInput else {
            throw Failure(.usage, "Standard input cannot give both the SQL and a value.")
        }
        var source = try text()
        source.named = try parameters.named()
        guard source.values.isEmpty || source.named.isEmpty else {
            throw Failure(.usage, "Give values in the order of the parameters, or by their names, not both.")
        }
        return source
    }

    private func text() throws -> Source {
        if let path { return try Source(script: script(path), values: (sql.map { [$0] } ?? []) + values, isFile: true) }
        guard let sql, sql != "-" else { return try Source(script: script("-"), values: values, isFile: true) }
        return Source(script: SQLScript(sql), values: values, isFile: false)
    }

    /// In bytes. A script is in memory twice while it is looked at.
    private var sizeLimit: Int { Int(clamping: ProcessInfo.processInfo.physicalMemory / 4) }

    private func script(_ path: String) throws -> SQLScript {
        let file = try InputFile(path: path)
        guard let text = String(validating: try file.contents(upTo: sizeLimit), as: UTF8.self) else {
            throw Failure(.data, "The SQL in \(file.name) is not UTF-8. Nothing was executed.")
        }
        guard !text.utf8.contains(0) else {
            throw Failure(.data, "The SQL in \(file.name) holds a NUL, at which SQLite ends. Nothing was executed.")
        }
        return SQLScript(text)
    }
}
