import ArgumentParser
import Foundation
import SealedDB

/// Values for the parameters of a statement by their names.
struct ParameterOptions: ParsableArguments {
    @Option(
        name: .customLong("param"),
        help: ArgumentHelp(
            "The value of :name, @name or $name: a number in its plain form, else a text.",
            valueName: "name=value"
        )
    )
    var values: [String] = []

    @Option(name: .customLong("text"), help: ArgumentHelp("The same, always a text.", valueName: "name=text"))
    var texts: [String] = []

    @Option(name: .customLong("int"), help: ArgumentHelp("An integer of 64 bits.", valueName: "name=number"))
    var integers: [String] = []

    @Option(name: .customLong("real"), help: ArgumentHelp("A real number.", valueName: "name=number"))
    var reals: [String] = []

    @Option(name: .customLong("blob"), help: ArgumentHelp("A blob in hex digits.", valueName: "name=hex"))
    var blobs: [String] = []

    @Option(
        name: .customLong("text-file"),
        help: ArgumentHelp("A text that is a file's contents; - is standard input.", valueName: "name=path")
    )
    var textFiles: [String] = []

    @Option(
        name: .customLong("blob-file"),
        help: ArgumentHelp("A blob that is a file's contents; - is standard input.", valueName: "name=path")
    )
    var blobFiles: [String] = []

    @Option(name: .customLong("null-param"), help: ArgumentHelp("NULL.", valueName: "name"))
    var nulls: [String] = []

    /// Whether one of them reads standard input.
    var readsStandardInput: Bool { !inputs.isEmpty }

    private var inputs: [String] {
        (textFiles + blobFiles).filter { word in
            word.utf8.firstIndex(of: UInt8(ascii: "=")).map {
                InputFile.isStandardInput(String(word[word.utf8.index(after: $0)...]))
            } ?? false
        }
    }

    func validate() throws {
        guard inputs.count < 2 else { throw ValidationError("Standard input cannot give two values.") }
    }

    /// The values by the names of the parameters.
    /// - Throws: ``Failure`` for a value that is not what its option says, and for a name that is given twice.
    func named() throws -> [String: (any Bindable)?] {
        var result: [String: (any Bindable)?] = [:]
        func add(_ name: String, _ value: (any Bindable)?) throws {
            guard !name.isEmpty else { throw Failure(.usage, "A parameter has no name. Write: --param name=value") }
            guard result.updateValue(value, forKey: name) == nil else {
                throw Failure(.usage, "The parameter \(name) has two values.")
            }
        }
        func each(_ option: String, _ words: [String], _ value: (String) throws -> (any Bindable)?) throws {
            for word in words {
                guard let sign = word.utf8.firstIndex(of: UInt8(ascii: "=")) else {
                    throw Failure(.usage, "--\(option) takes a name, an equals sign and a value.")
                }
                let name = String(word[..<sign])
                guard let value = try value(String(word[word.utf8.index(after: sign)...])) else {
                    throw Failure(.usage, "The value of --\(option) \(name) is not one.")
                }
                try add(name, value)
            }
        }
        try each("param", values) { NumberForm($0.utf8).bindable(text: $0) as? any Bindable }
        try each("text", texts) { $0 }
        try each("int", integers) { Int64($0) }
        try each("real", reals, ParameterOptions.real)
        try each("blob", blobs, ParameterOptions.bytes(hex:))
        try each("text-file", textFiles) { path in
            guard let text = String(validating: try value(path), as: UTF8.self) else {
                throw Failure(.data, "\(path) is not UTF-8. Nothing was executed.")
            }
            return text
        }
        try each("blob-file", blobFiles) { Data(try value($0)) }
        for name in nulls { try add(name, nil) }
        return result
    }

    /// The bytes of a file, of which SQLite takes no more than so many. <https://www.sqlite.org/limits.html#max_length>
    private func value(_ path: String) throws(Failure) -> [UInt8] {
        try InputFile(path: path).contents(upTo: 1_000_000_000)
    }

    /// - Returns: `nil` also for a number that is too large or too small to be one of 64 bits.
    private static func real(_ text: String) -> Double? {
        guard let value = Double(text), value.isFinite else { return nil }
        let mantissa = text.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        let isZero = !mantissa.contains { (UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0) }
        return value == 0 && !isZero ? nil : value
    }

    private static func bytes(hex: String) -> Data? {
        let digits = Array(hex.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var result = Data()
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Character(Unicode.Scalar(digits[index])).hexDigitValue,
                let low = Character(Unicode.Scalar(digits[index + 1])).hexDigitValue
            else { return nil }
            result.append(UInt8(high << 4 | low))
        }
        return result
    }
}
