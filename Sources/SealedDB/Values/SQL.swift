/// The text of a statement, together with the values bound to it.
///
/// The values in an interpolated literal do not become part of the text. Each value is bound, so it may contain
/// anything.
///
/// ```swift
/// try db.executeUpdate("INSERT INTO person (name, age) VALUES (\(name), \(age))")
///
/// let adults: SQL = "age >= \(18)"
/// let rows = try db.executeQuery("SELECT * FROM person WHERE \(adults) AND id IN \(ids)")
/// ```
///
/// | interpolation | result |
/// |---|---|
/// | `\(value)` | a ``Bindable`` value, bound; `nil` is NULL |
/// | `\(values)` | a collection: `(?, ?, …)` for `IN`; if empty, nothing matches. `Data` and `[UInt8]` are one value |
/// | `\(sql)` | another `SQL`, with its values |
/// | `\(identifier: name)` | the name of a table or column, quoted |
/// | `\(raw: text)` | your own text, unchanged. Never use text from outside |
///
/// A value within quotes would be part of a string, so omit the quotes: `name = \(name)`.
///
/// A literal binds its values in every call that takes SQL, FMDB's included. Only literals do: if a literal is joined to a
/// `String` with `+`, Swift makes it a `String`, and its values become text. Join `SQL` to `SQL` instead. Calls without
/// values of their own, such as ``Database/executeUpdate(_:_:)-(_,Value)``, take no `String`; others take one as it is, like FMDB.
public struct SQL: Sendable {
    /// The text, with a placeholder for each value.
    public internal(set) var text: String
    var values: [any Bindable & Sendable] = []
    /// The offset in bytes at which the last placeholder of the text ends.
    private var placeholderEnd = -1
    /// Why the SQL cannot be executed; `nil` if it can. It is stored because interpolations cannot throw.
    var problem: String?

    /// Creates SQL from text as it is, such as text from a file of your own. The text must not come from outside.
    public init(raw text: String) {
        self.text = text
    }

    /// Joins two pieces of SQL with their values.
    public static func + (first: SQL, second: SQL) -> SQL {
        var result = first
        result += second
        return result
    }

    /// Appends SQL with its values.
    public static func += (first: inout SQL, second: SQL) { first.append(second) }

    /// Throws if the SQL cannot be executed. Called before its text is compiled. The error does not show the text,
    /// which could contain a key.
    func requireUsable() throws(DatabaseError) {
        if let problem { throw SQL.unusable(problem) }
    }

    static func unusable(_ problem: String, sql: String? = nil) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: "The SQL cannot be executed: \(problem) Nothing was executed.",
            sql: sql
        )
    }

    /// Returns an error of compiling the text, with a hint if a value stands where SQLite takes none.
    func explained(_ error: DatabaseError) -> DatabaseError {
        guard !values.isEmpty, error.message.contains("near \"?\"") else { return error }
        return error.adding(
            context: """
                An interpolated value is bound, and none can be bound here. Write \\(identifier: …) for a name, or \
                \\(raw: …) for text of your own
                """
        )
    }

    mutating func append(_ other: SQL) {
        append(text: other.text)
        if other.placeholderEnd >= 0 { placeholderEnd = text.utf8.count - other.text.utf8.count + other.placeholderEnd }
        values += other.values
        problem = problem ?? other.problem
    }

    mutating func append(text addition: String) {
        // A "?" followed by a digit would be the parameter of that number, so a space separates them.
        let isDigit = addition.utf8.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
        if isDigit, text.utf8.count == placeholderEnd { text += " " }
        text += addition
    }

    mutating func append(value: any Bindable & Sendable) {
        text += "?"
        placeholderEnd = text.utf8.count
        values.append(value)
    }

    mutating func append<Value: Bindable & Sendable>(list: some Collection<Value>) {
        if list.isEmpty {
            append(text: "(SELECT NULL WHERE 0)")
        } else {
            append(text: "(" + SQL.placeholders(list.count) + ")")
            for value in list { values.append(value) }
        }
    }

    /// Returns this many placeholders. The count must be at least 1.
    static func placeholders(_ count: Int) -> String { String(repeating: "?, ", count: count - 1) + "?" }

    mutating func append(identifier: String) {
        if identifier.utf8.contains(0) { problem = problem ?? "a name holds a NUL byte." }
        text += Identifier.quoted(identifier)
    }
}

extension SQL: ExpressibleByStringInterpolation {
    /// SQL without values.
    public init(stringLiteral value: String) { self.init(raw: value) }

    /// SQL whose interpolated values are bound.
    public init(stringInterpolation: StringInterpolation) { self = stringInterpolation.sql }

    /// Collects the parts of a literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        var sql = SQL(raw: "")

        /// Begins SQL; the compiler calls it.
        public init(literalCapacity: Int, interpolationCount: Int) {
            sql.text.reserveCapacity(literalCapacity + interpolationCount)
            sql.values.reserveCapacity(interpolationCount)
        }

        /// Appends SQL; the compiler calls it.
        public mutating func appendLiteral(_ literal: String) { sql.append(text: literal) }

        /// Binds the value.
        public mutating func appendInterpolation<Value: Bindable & Sendable>(_ value: Value) {
            sql.append(value: value)
        }

        /// Binds the value, or NULL for `nil`.
        public mutating func appendInterpolation<Value: Bindable & Sendable>(_ value: Value?) {
            sql.append(value: value)
        }

        /// Binds the values as the right side of `IN`.
        public mutating func appendInterpolation<Values: Collection>(
            _ values: Values
        ) where Values.Element: Bindable & Sendable {
            sql.append(list: values)
        }

        /// Binds one value whose type is also a collection, such as `Data`.
        public mutating func appendInterpolation<Value: Bindable & Sendable & Collection>(
            _ value: Value
        ) where Value.Element: Bindable & Sendable {
            sql.append(value: value)
        }

        /// Inserts other SQL, with its values.
        public mutating func appendInterpolation(_ other: SQL) { sql.append(other) }

        /// Inserts text, or a number, as it is. It must not come from outside.
        public mutating func appendInterpolation(raw text: some LosslessStringConvertible) {
            sql.append(text: text.description)
        }

        /// Inserts a name in back quotes. SQLite takes an unknown name in double quotes for a string. If the name
        /// contains a NUL, executing the SQL throws. https://www.sqlite.org/quirks.html#dblquote
        public mutating func appendInterpolation(identifier name: String) { sql.append(identifier: name) }

        /// Makes executing the SQL throw. Without this method, Swift would take such a literal for a `String`, and make
        /// all its values part of the text.
        @available(
            *,
            deprecated,
            message: """
                A value of this type cannot be bound, so this throws when it is executed. Make the type Bindable and \
                Sendable, or write \\(raw: …), \\(identifier: …) or \\(JSON(…)).
                """
        )
        @_disfavoredOverload
        public mutating func appendInterpolation<Value>(_ value: Value) {
            sql.problem = sql.problem ?? "a value of type \(Value.self) cannot be bound."
        }
    }
}

extension SQL: CustomStringConvertible {
    /// The text with its placeholders, without the values.
    public var description: String { text }
}

extension SQL: CustomReflectable {
    /// Shows the text, and none of the values.
    public var customMirror: Mirror { Mirror(self, children: ["text": text]) }
}

extension Sequence<SQL> {
    /// Joins the parts, with their values.
    public func joined(separator: SQL = "") -> SQL {
        var result = SQL(raw: "")
        var isFirst = true
        for part in self {
            if !isFirst { result += separator }
            result += part
            isFirst = false
        }
        return result
    }
}

/// Names of tables and columns in SQL. https://www.sqlite.org/lang_keywords.html
enum Identifier {
    static func quoted(_ name: String) -> String { name.quoted(by: "`") }
}
