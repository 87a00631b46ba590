import SealedDB

/// What one column of a table holds: which kinds of values, and where each kind is first.
struct ColumnContents {
    /// Kinds of values that no type of PostgreSQL but one or a few hold.
    enum Kind: Int, CaseIterable {
        case null
        /// 0 or 1.
        case truth
        case integer
        /// One that a floating-point number does not hold exactly.
        case longInteger
        case real
        case infinity
        case date, timestamp, timestampWithZone
        case text
        /// Text that holds a NUL, which no text of PostgreSQL may.
        case textWithNUL
        case brokenText
        case blob

        /// For messages, after "holds".
        var noun: String {
            switch self {
            case .null: "NULL"
            case .truth, .integer, .longInteger: "an integer"
            case .real: "a floating-point number"
            case .infinity: "an infinite number"
            case .date, .timestamp, .timestampWithZone, .text: "a text"
            case .textWithNUL: "a text with a NUL"
            case .brokenText: "a text that is not valid \(TextEncoding.utf8.rawValue)"
            case .blob: "a blob"
            }
        }
    }

    private var places = [RowPlace?](repeating: nil, count: Kind.allCases.count)
    /// Of numbers.
    private(set) var mostWholeDigits = 0
    private(set) var mostDecimals = 0
    private let declared: DeclaredType

    init(_ declared: DeclaredType) { self.declared = declared }

    var kinds: [Kind] { Kind.allCases.filter { $0 != .null && places[$0.rawValue] != nil } }

    func firstPlace(of kind: Kind) -> RowPlace? { places[kind.rawValue] }

    mutating func add(_ value: ExportedValue, at place: RowPlace) {
        let kind = kind(of: value)
        if places[kind.rawValue] == nil { places[kind.rawValue] = place }
        guard case .numeric(.some) = declared else { return }
        switch value {
        case .integer(let number): add(DecimalForm(number))
        case .real(let number) where number.isFinite: add(DecimalForm(number))
        default: break
        }
    }

    private mutating func add(_ number: DecimalForm) {
        mostWholeDigits = max(mostWholeDigits, number.wholeDigits)
        mostDecimals = max(mostDecimals, number.scale)
    }

    private func kind(of value: ExportedValue) -> Kind {
        switch value {
        case .null: .null
        case .integer(0), .integer(1): .truth
        case .integer(let number): number.magnitude <= 1 << 53 ? .integer : .longInteger
        case .real(let number): number.isFinite ? .real : .infinity
        case .brokenText: .brokenText
        case .blob: .blob
        case .text(let bytes):
            if bytes.contains(0) {
                .textWithNUL
            } else if [.date, .dateTime].contains(declared), let date = DateForm(bytes) {
                switch date.kind {
                case .date: .date
                case .timestamp: .timestamp
                case .timestampWithZone: .timestampWithZone
                }
            } else {
                .text
            }
        }
    }

    // MARK: Types

    /// What the column becomes, and what keeps it from becoming what it is declared as.
    struct Choice {
        var type: TargetType
        /// What is stored and does not fit.
        var misfit: (kind: Kind, place: RowPlace, wanted: TargetType)?
        /// What its owner should know, although all fits.
        var remark: String?
    }

    private static let integers: Set<Kind> = [.truth, .integer, .longInteger]
    private static let exactInDouble: Set<Kind> = [.truth, .integer, .real, .infinity]
    private static let texts: Set<Kind> = [.date, .timestamp, .timestampWithZone, .text]

    func choice() -> Choice {
        let held = Set(kinds)
        switch declared {
        case .integer: return choice(.bigint, Self.integers)
        case .real: return choice(.double, Self.exactInDouble)
        case .text: return choice(.text, Self.texts)
        case .blob: return choice(.bytea, [.blob])
        case .boolean: return choice(.boolean, [.truth])
        case .numeric(let limits):
            var choice = choice(.numeric(limits), Self.integers.union([.real]))
            let fits = limits.map { mostWholeDigits <= $0.precision - $0.scale && mostDecimals <= $0.scale } ?? true
            if choice.misfit == nil, !fits {
                choice.type = .numeric(nil)
                choice.remark = "has numbers with more digits than are declared, so it is numeric without a limit"
            }
            return choice
        case .date, .dateTime: return dateChoice(held)
        case .any:
            if held.isSubset(of: Self.texts) { return Choice(type: .text) }
            if held.isSubset(of: Self.integers) { return Choice(type: .bigint) }
            if held.isSubset(of: Self.exactInDouble) { return Choice(type: .double) }
            if held == [.blob] { return Choice(type: .bytea) }
            // What most rows would say cannot be known; the first kind is as good as another.
            let first = held.min { number($0) < number($1) } ?? .text
            let wanted: (TargetType, Set<Kind>) =
                Self.integers.contains(first)
                ? (.bigint, Self.integers)
                : Self.exactInDouble.contains(first)
                    ? (.double, Self.exactInDouble) : first == .blob ? (.bytea, [.blob]) : (.text, Self.texts)
            return choice(wanted.0, wanted.1)
        }
    }

    private func number(_ kind: Kind) -> Int64 { firstPlace(of: kind)?.number ?? .max }

    private func choice(_ type: TargetType, _ fitting: Set<Kind>) -> Choice {
        let misfits = kinds.filter { !fitting.contains($0) }
        guard let first = misfits.min(by: { number($0) < number($1) }), let place = firstPlace(of: first) else {
            return Choice(type: type)
        }
        return Choice(type: widened, misfit: (first, place, type))
    }

    private func dateChoice(_ held: Set<Kind>) -> Choice {
        let empty: TargetType = declared == .date ? .date : .timestamp
        if held.isEmpty { return Choice(type: empty) }
        if held == [.date] { return Choice(type: empty) }
        if held.isSubset(of: [.date, .timestamp]) { return Choice(type: .timestamp) }
        if held == [.timestampWithZone] { return Choice(type: .timestampWithZone) }
        if held.isSubset(of: Self.integers) || held.isSubset(of: Self.exactInDouble) {
            return Choice(
                type: held.isSubset(of: Self.integers) ? .bigint : .double,
                remark: "holds numbers where dates are declared; nothing says what they count, so they stay numbers"
            )
        }
        let wanted: TargetType = held.contains(.timestampWithZone) ? .timestampWithZone : .timestamp
        return choice(wanted, wanted == .timestamp ? [.date, .timestamp] : [.timestampWithZone])
    }

    /// The narrowest type that holds all that is there.
    private var widened: TargetType {
        let held = Set(kinds)
        if held.isSubset(of: Self.integers) { return .bigint }
        if held.isSubset(of: Self.exactInDouble) { return .double }
        return held.isSubset(of: Self.integers.union(Self.exactInDouble).union(Self.texts)) ? .text : .bytea
    }
}
