/// Names and values for people to read, one pair per line.
struct FieldList {
    let text: String

    init(_ rows: [(name: String, value: String)]) {
        let width = rows.map(\.name.count).max() ?? 0
        text = rows.map { name, value in
            let padding = String(repeating: " ", count: width - name.count)
            return "\(name):\(padding) \(TerminalText.escaped(value))\n"
        }.joined()
    }
}
