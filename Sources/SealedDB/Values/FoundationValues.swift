public import Foundation

// How Foundation's value types are bound and read.

extension Date: Bindable, ColumnReadable {
    /// Binds REAL seconds since 1970; if the database has a date format, TEXT in that format.
    /// - Throws: ``DatabaseError/Reason/typeMismatch`` for a date that the format has no text for.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        if let format = slot.statement.dateFormat {
            let text = format.string(from: self)
            guard timeIntervalSince1970.isFinite, !text.isEmpty else {
                throw slot.mismatch(Self.self, "has no text in the database's date format")
            }
            try slot.bind(text)
        } else {
            try slot.bind(timeIntervalSince1970)
        }
    }

    /// Reads seconds since 1970, or a TEXT as SQLite writes dates, which is UTC if it names no time zone; if the
    /// database has a date format, TEXT in that format.
    ///
    /// A column that is declared TEXT turns seconds into text, and keeps 15 digits of them. They are read too.
    /// https://www.sqlite.org/lang_datefunc.html#time_values
    public init(column: borrowing Column) throws(DatabaseError) {
        if let format = column.statement.dateFormat {
            guard let date = format.date(from: try column.text(for: Self.self)) else {
                throw column.mismatch(Self.self, "that is not in the database's date format")
            }
            self = date
        } else if let seconds = column.number() {
            self.init(timeIntervalSince1970: seconds)
        } else {
            guard column.type == .text else { throw column.mismatch(Self.self) }
            let text = try column.text(for: Self.self)
            guard let seconds = SQLDateText.seconds(of: text) ?? Date.seconds(inDecimal: text) else {
                throw column.mismatch(Self.self, "that is no date as SQLite writes it")
            }
            self.init(timeIntervalSince1970: seconds)
        }
    }

    /// The number of a REAL that was turned into text; `nil` for any other text, such as "nan" or "0x10".
    private static func seconds(inDecimal text: String) -> Double? {
        guard text.utf8.allSatisfy({ "+-.0123456789e".utf8.contains($0) }), let value = Double(text), value.isFinite
        else { return nil }
        return value
    }
}

extension UUID: Bindable, ColumnReadable {
    /// Binds TEXT in upper case.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(uuidString) }

    /// Reads a TEXT in either case, or a BLOB of 16 bytes.
    public init(column: borrowing Column) throws(DatabaseError) {
        if column.type == .blob {
            let bytes = column.withUnsafeBytes { $0.count == 16 ? $0.loadUnaligned(as: uuid_t.self) : nil }
            guard let bytes else { throw column.mismatch(Self.self, "that has not 16 bytes") }
            self.init(uuid: bytes)
        } else {
            guard let value = UUID(uuidString: try column.text(for: Self.self)) else {
                throw column.mismatch(Self.self, "that is no UUID")
            }
            self = value
        }
    }
}

extension URL: Bindable, ColumnReadable {
    /// Binds the absolute string as TEXT.
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) { try slot.bind(absoluteString) }

    /// Reads a TEXT that is a valid URL as it stands.
    public init(column: borrowing Column) throws(DatabaseError) {
        guard let value = URL(string: try column.text(for: Self.self), encodingInvalidCharacters: false) else {
            throw column.mismatch(Self.self, "that is no URL")
        }
        self = value
    }
}

extension Decimal: Bindable, ColumnReadable {
    /// Binds TEXT with all digits; NaN as NULL.
    ///
    /// A column whose declared type has numeric affinity, such as `DECIMAL(10, 2)`, converts the text to a REAL of 15
    /// digits. For exact numbers, declare the column TEXT.
    /// https://www.sqlite.org/datatype3.html#determination_of_column_affinity
    public func bind(to slot: borrowing ParameterSlot) throws(DatabaseError) {
        if isNaN { try slot.bindNull() } else { try slot.bind(description) }
    }

    /// Reads a TEXT of a number that can be represented exactly, an INTEGER, or a REAL as the shortest number that
    /// denotes it.
    public init(column: borrowing Column) throws(DatabaseError) {
        switch column.type {
        case .integer: self.init(try Int64(column: column))
        case .float:
            guard let value = Decimal(exactly: try Double(column: column).description) else {
                throw column.mismatch(Self.self, "that does not fit")
            }
            self = value
        case .text:
            guard let value = Decimal(exactly: try column.text(for: Self.self)) else {
                throw column.mismatch(Self.self, "that is no number that it holds exactly")
            }
            self = value
        case .blob, .null: throw column.mismatch(Self.self)
        }
    }

    /// Returns `nil` unless the whole text is a number that can be represented exactly. `Decimal(string:)` would read
    /// the number at the start of the text, and round it.
    private init?(exactly text: String) {
        guard Decimal.isNumber(text),
            let value = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")),
            Decimal.significantDigits(value.description) == Decimal.significantDigits(text)
        else { return nil }
        self = value
    }

    /// Whether the whole text is a number: a sign, digits with at most one point, an exponent. It is read once, as a store
    /// may hold long texts: a regular expression would divide the digits in each possible way.
    private static func isNumber(_ text: String) -> Bool {
        var rest = text.utf8[...]
        func skip(_ bytes: String) -> Bool {
            guard let first = rest.first, bytes.utf8.contains(first) else { return false }
            rest.removeFirst()
            return true
        }
        func skipDigits() -> Int {
            let count = rest.prefix { (0x30...0x39).contains($0) }.count
            rest.removeFirst(count)
            return count
        }
        // Each part may be missing, but for the digits.
        _ = skip("+-")
        var digits = skipDigits()
        if skip(".") { digits += skipDigits() }
        guard digits > 0 else { return false }
        if skip("eE") {
            _ = skip("+-")
            guard skipDigits() > 0 else { return false }
        }
        return rest.isEmpty
    }

    private static func significantDigits(_ number: String) -> String {
        let digits = number.prefix { !"eE".contains($0) }.filter(\.isWholeNumber).drop { $0 == "0" }
        return String(digits.reversed().drop { $0 == "0" }.reversed())
    }
}
