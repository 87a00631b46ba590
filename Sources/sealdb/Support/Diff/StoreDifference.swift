import SealedDB

/// Something that one store does not have, or has otherwise than another one.
struct StoreDifference: Encodable {
    enum Kind: String, Encodable {
        case table, virtualTable = "virtual table", view, index, trigger, setting, counter
    }
    enum Place: String, Encodable { case first, second, both }

    let kind: Kind
    /// That of the object or setting; of the table for a counter of row ids.
    let name: String
    /// Which store has it.
    let place: Place
    /// Whether the statements that made it are not the same.
    var hasOtherStatement = false
    var rowsOnlyInFirst = 0
    var rowsOnlyInSecond = 0
    var rowsThatDiffer = 0
    /// The values of a setting.
    var valueInFirst: String?
    var valueInSecond: String?

    /// The line of JSON has a kind of its own.
    private enum CodingKeys: String, CodingKey {
        case kind = "object"
        case name, place, hasOtherStatement, rowsOnlyInFirst, rowsOnlyInSecond, rowsThatDiffer, valueInFirst,
            valueInSecond
    }

    init(_ kind: Kind, _ name: String, _ place: Place = .both) {
        (self.kind, self.name, self.place) = (kind, name, place)
    }

    init(_ object: SchemaObject, _ place: Place) {
        let kind: Kind =
            switch object.kind {
            case .table, .shadowTable: .table
            case .virtualTable: .virtualTable
            case .view: .view
            case .index: .index
            case .trigger: .trigger
            }
        self.init(kind, object.name, place)
    }

    var identity: SchemaObject.Identity {
        SchemaObject.Identity(name: ExactText(name: name), isTrigger: kind == .trigger)
    }

    var isOfRowsAlone: Bool { place == .both && !hasOtherStatement }

    var hasOtherRows: Bool { rowsOnlyInFirst + rowsOnlyInSecond + rowsThatDiffer > 0 }

    /// One line, without its end.
    func text(_ first: String, _ second: String) -> String {
        let start =
            switch kind {
            case .setting: name
            case .counter: "last row id of \(name)"
            default: "\(kind.rawValue) \(name)"
            }
        return "\(start): \(parts(first, second).joined(separator: ", "))"
    }

    private func parts(_ first: String, _ second: String) -> [String] {
        if [.setting, .counter].contains(kind) {
            return ["\(valueInFirst ?? "none") in \(first)", "\(valueInSecond ?? "none") in \(second)"]
        }
        switch place {
        case .first: return ["only in \(first)"]
        case .second: return ["only in \(second)"]
        case .both: break
        }
        var parts: [String] = []
        if hasOtherStatement { parts.append("made by another statement") }
        if rowsThatDiffer > 0 { parts.append(rowsThatDiffer == 1 ? "1 row differs" : "\(rowsThatDiffer) rows differ") }
        for (count, store) in [(rowsOnlyInFirst, first), (rowsOnlyInSecond, second)] where count > 0 {
            parts.append("\(count) row\(count == 1 ? "" : "s") only in \(store)")
        }
        return parts
    }
}
