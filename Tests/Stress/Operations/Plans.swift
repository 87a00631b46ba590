/// What operations change: drawn before anything runs.
enum Plans {
    static func value(_ random: inout Random, _ scale: Scale, isBlob: Bool? = nil) -> Value {
        let blob = random.oneIn(3)
        return Value(tag: random.next(), length: scale.length(&random), isBlob: isBlob ?? blob)
    }

    static func put(_ table: Table, _ random: inout Random, _ scale: Scale) -> Change {
        let isBlob: Bool? = table == .words ? false : table == .attachment ? true : nil
        return .put(table, key: random.int(0..<scale.keyCount), value(&random, scale, isBlob: isBlob))
    }

    static func remove(_ table: Table, _ random: inout Random, _ scale: Scale) -> Change {
        .remove(table, key: random.int(0..<scale.keyCount))
    }

    /// Some changes of some of the tables.
    static func mixed(_ random: inout Random, _ scale: Scale) -> [Change] {
        let tables: [Table] = [.note, .note, .pair, .entry, .attachment, .words]
        return (0..<random.int(1..<6)).map { _ in
            let table = random.pick(tables)
            return random.oneIn(4) ? remove(table, &random, scale) : put(table, &random, scale)
        }
    }

    /// Many rows at once.
    static func bulk(_ random: inout Random, _ scale: Scale) -> [Change] {
        let table = random.pick([Table.note, .pair, .entry])
        return (0..<scale.keyCount).map { key in .put(table, key: key, value(&random, scale)) }
    }

    /// A row of each of the two tables of a foreign key, or of neither; first that which refers to the other.
    static func family(_ random: inout Random, _ scale: Scale) -> [Change] {
        let key = random.int(0..<scale.keyCount)
        guard random.oneIn(3) else {
            let (first, second) = (value(&random, scale), value(&random, scale))
            return [.put(.child, key: key, first), .put(.parent, key: key, second)]
        }
        return [.remove(.parent, key: key), .remove(.child, key: key)]
    }

    /// What a retention job removes.
    static func retention(_ random: inout Random, _ scale: Scale) -> [Change] {
        let first = random.int(0..<max(1, scale.keyCount / 4))
        return [Table.note, .pair, .entry, .words].map { .removeRange($0, first..<scale.keyCount) }
    }
}
