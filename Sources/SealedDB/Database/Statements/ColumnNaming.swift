/// How the columns of a table are named after the properties of a type that is read from its rows or written to them.
///
/// What is named so is looked up in the exact spelling first, then without regard to case. Of columns with the same name
/// the last counts, as in ``ResultSet/columnIndex(forName:)``.
public enum ColumnNaming: Sendable, Hashable {
    /// Property `firstName` is column `firstName`.
    case asIs
    /// Property `firstName` is column `first_name`; `homeURL` is `home_url`.
    case snakeCase

    func column(for key: some CodingKey) -> String {
        switch self {
        case .asIs: key.stringValue
        case .snakeCase: ColumnNaming.snakeCase(key.stringValue)
        }
    }

    /// An underscore goes before each capital that follows a small letter or a digit, or that begins a word after capitals.
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
    /// How columns are named after properties. Default ``ColumnNaming/asIs``.
    public var columnNaming: ColumnNaming {
        get { configuration.columnNaming }
        set { configuration.columnNaming = newValue }
    }
}
