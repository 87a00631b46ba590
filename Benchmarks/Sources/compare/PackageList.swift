import Foundation

/// Writes the machine's package index as the workers want it: a line for each package, fields apart by tabs.
enum PackageList {
    private static let fields = ["Package", "Version", "Section", "Maintainer", "Depends"]

    /// - Parameter limit: packages after these are left out.
    /// - Returns: where the packages come from and how many they are; `nil` if the machine has none.
    static func write(to path: String, limit: Int) throws -> String? {
        let lists = "/var/lib/apt/lists"
        let names = ((try? FileManager.default.contentsOfDirectory(atPath: lists)) ?? []).filter {
            $0.contains("_Packages")
        }.sorted().map { "\(lists)/\($0)" }
        if !names.isEmpty {
            let text = Machine.output("/usr/lib/apt/apt-helper", ["cat-file"] + names)
            let count = try write(text, to: path, limit: limit)
            if count > 0 { return "\(count) packages of the apt lists" }
        }
        guard let status = FileManager.default.contents(atPath: "/var/lib/dpkg/status") else { return nil }
        let count = try write(String(decoding: status, as: UTF8.self), to: path, limit: limit)
        return count > 0 ? "\(count) packages of the dpkg status" : nil
    }

    /// https://www.debian.org/doc/debian-policy/ch-controlfields.html
    private static func write(_ text: String, to path: String, limit: Int) throws -> Int {
        var result = ""
        var count = 0
        var values: [Substring: String] = [:]
        var key: Substring = ""
        func finish() {
            defer { values = [:] }
            guard values["Package"] != nil else { return }
            // The long description, where there is one, and the tags.
            let description = (values["Description"] ?? "") + " " + (values["Tag"] ?? "")
            let record = fields.map { values[Substring($0)] ?? "" } + [description]
            result += record.joined(separator: "\t") + "\n"
            count += 1
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let line = line.contains("\t") ? Substring(line.replacing("\t", with: " ")) : line
            if line.isEmpty {
                finish()
                if count == limit { break }
            } else if line.first == " " {
                values[key, default: ""] += line
            } else if let colon = line.firstIndex(of: ":") {
                key = line[..<colon]
                values[key] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            }
        }
        finish()
        try Data(result.utf8).write(to: URL(fileURLWithPath: path))
        return count
    }
}
