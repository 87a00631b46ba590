import Foundation

/// What has the form of a raw key on the command line, or in a variable that should name a file. A message may name what was
/// given, and shows no key.
enum GivenKeys {
    /// The variables that name files or directories.
    static let namesOfFileVariables = [
        "SEALDB_CONFIG", "SEALDB_KEY_FILE", "SEALDB_KEY_RING", "SEALDB_PASSPHRASE_FILE", "SEALDB_HISTORY",
        "CREDENTIALS_DIRECTORY", "TMPDIR", "HOME", "XDG_STATE_HOME", "STATE_DIRECTORY",
    ]

    /// Not of Swift's arguments, which are none without /proc.
    private static let digits: [String] = {
        let arguments = (0..<Int(CommandLine.argc)).compactMap { CommandLine.unsafeArgv[$0] }
        let variables = namesOfFileVariables.compactMap { getenv($0) }
        return (arguments.map { String(cString: $0) } + variables.map { String(cString: $0) }).flatMap(keys)
    }()

    /// The digits that are as long as a key. The last part of a path, which SQL is not, is a name that was chosen for a file.
    static func keys(in text: String) -> [String] {
        let bytes = Array(text.utf8)
        let mayBePath = !bytes.contains { " \t\n'\"=".utf8.contains($0) }
        let isDigit = { (byte: UInt8) in Character(Unicode.Scalar(byte)).isHexDigit }
        return bytes.indices.compactMap { start in
            guard isDigit(bytes[start]),
                start == 0 || !isDigit(bytes[start - 1]) && !(mayBePath && bytes[start - 1] == UInt8(ascii: "/"))
            else { return nil }
            let digits = bytes[start...].prefix(while: isDigit)
            return digits.count >= 2 * 32 ? String(decoding: digits, as: UTF8.self) : nil
        }
    }

    /// The text with something else in the place of each key that was given.
    static func hidden(in text: String, _ keys: [String] = digits) -> String {
        keys.reduce(text) { text, key in
            guard text.contains(key) else { return text }
            return text.replacing(key, with: "(digits of a key)")
        }
    }
}
