/// Describes an error of Swift's coding without values, which its own description may quote.
enum CodingFailure {
    static func summary(of error: any Error) -> String {
        switch error {
        case DecodingError.typeMismatch(let type, let context): place(context.codingPath) + "expected \(type)"
        case DecodingError.valueNotFound(let type, let context):
            place(context.codingPath) + "null where \(type) was expected"
        case DecodingError.keyNotFound(let key, let context):
            place(context.codingPath) + "no value for \(name(of: key))"
        case DecodingError.dataCorrupted(let context): place(context.codingPath) + "not a valid value"
        case EncodingError.invalidValue(let value, let context):
            place(context.codingPath) + "a value of type \(type(of: value))"
        case let error as DatabaseError: error.message
        default: "\(type(of: error))"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "" : "at " + path.map(name).joined(separator: ".") + ": "
    }

    /// The keys of a dictionary are data, and are not shown, nor those that are numbers. Foundation names the positions of a
    /// list "Index 0", "Index 1". The keys of a type are cases of an enum.
    private static func name(of key: any CodingKey) -> String {
        if let index = key.intValue, key.stringValue == "Index \(index)" { return "[\(index)]" }
        return Mirror(reflecting: key).displayStyle == .enum ? key.stringValue : "?"
    }
}
