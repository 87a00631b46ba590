import Foundation

/// What SQLCipher's own shell reads.
struct ShellCheck {
    let place: Place
    let key: Int

    func run(_ model: StoreModel) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlcipher", "-batch", "-bail", place.store]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let tables = Table.fixed
        let counts = tables.map { "SELECT count(*), total(length(CAST(value AS BLOB))) FROM \($0);" }.joined(
            separator: "\n"
        )
        let script = ".output /dev/null\nPRAGMA key = \"\(try place.keyLiteral(key))\";\n.output stdout\n\(counts)\n"
        try input.fileHandleForWriting.write(contentsOf: Data(script.utf8))
        try input.fileHandleForWriting.close()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        let expected = tables.map { table in
            let rows = model.clients.values.flatMap { ($0.rows[table] ?? [:]).values }
            return "\(rows.count)|\(rows.reduce(0) { $0 + $1.length }).0"
        }
        guard process.terminationStatus == 0, text.split(separator: "\n").map(String.init) == expected else {
            throw Violation("The stock shell reads \(text) where \(expected) is stored.")
        }
    }
}
