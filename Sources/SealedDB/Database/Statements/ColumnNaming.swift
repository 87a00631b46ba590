/// How column names are derived from the properties of a type that is read from rows or written to them.
///
/// A derived name is looked up in the exact spelling first, then without regard to case. If several columns have the
/// same name, the last one is used, as in ``ResultSet/columnIndex(forName:)``.
public enum ColumnNaming: Sendable, Hashable {
    /// The property `firstName` is the column `firstName`.
    case asIs
    /// The property `firstName` is the column `first_name`; `homeURL` is `home_url`.
    case snakeCase

    func column(for key: some CodingKey) -> String {
        switch self {
        case .asIs: key.stringValue
        case .snakeCase: ColumnNaming.snakeCase(key.stringValue)
        }
    }

    /// The key that is read from the column of that name; `nil` if there is none. A property with several capital letters
    /// in a row (`homeURL`) is not found, because nothing in its column says so.
    func key<Key: CodingKey>(forColumn name: String) -> Key? {
        guard self == .snakeCase else { return Key(stringValue: name) }
        let words = name.split(separator: "_")
        let inner = words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        let property = String(name.prefix { $0 == "_" }) + (words.first ?? "") + inner
        return [name, property].lazy.compactMap(Key.init).first {
            ExactText(column(for: $0).lowercased()) == ExactText(name.lowercased())
        }
    }

    /// Puts an underscore before each capital letter that follows a small letter or a digit, and before the last
    /// capital letter of several if a small letter follows it.
    private static func snakeCase(_ name: String) -> String {
        let characters = Array(name)
        var result = ""
        for (index, character) in characters.enumerated() {
            if character.isUppercase, index > 0 {
                let before = characters[index - 1]
                let beginsWord = index + 1 < characters.count && characters[index + 1].isLowercase
                if before != "_", !before.isUppercase || beginsWord { result += "_" }
            }
            result += character.lowercased()
        }
        return result
    }
}

extension Database {
    /// How column names are derived from properties. Default ``ColumnNaming/asIs``.
    public var columnNaming: ColumnNaming {
        get { configuration.columnNaming }
        set { configuration.columnNaming = newValue }
    }
}
