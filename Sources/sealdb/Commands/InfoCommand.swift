import ArgumentParser
import SealedDB

struct InfoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Tell what a file is, with and without a key.",
        discussion: """
            Without a key, only what anybody can see from outside. The salt is not a secret. With the right key, what \
            is inside too; a wrong key is an error (exit 77). With a key ring, also which of its keys the store has.

              sealdb info app.db
              sealdb info app.db --key-file app.key --json
            """
    )

    @Argument(help: "The file to look at.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        try keyOptions.choice.validate(isRequired: false)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        let result = try result(path)
        let output = StandardOutput()
        if json {
            try output.writeJSON(result)
        } else {
            try output.write(FieldList(rows(result)).text)
        }
        try output.flush()
    }

    /// One object: what the key ring tells beside the members of the store's own.
    private struct Result: Encodable {
        let info: StoreInfo
        var keyID: String?
        var needsRotation: Bool?

        private enum Names: String, CodingKey { case keyID, needsRotation }

        func encode(to encoder: any Encoder) throws {
            try info.encode(to: encoder)
            var container = encoder.container(keyedBy: Names.self)
            try container.encodeIfPresent(keyID, forKey: .keyID)
            try container.encodeIfPresent(needsRotation, forKey: .needsRotation)
        }
    }

    private func result(_ path: String) throws -> Result {
        guard !keyOptions.choice.given.isEmpty else { return Result(info: try StoreInfo.inspect(path: path, key: nil)) }
        return try keyOptions.withKey(of: store) { key, fromRing in
            var result = Result(info: try StoreInfo.inspect(path: path, key: key))
            if let (ring, id) = fromRing, result.info.details != nil {
                result.keyID = id
                result.needsRotation = id != ring.activeID
            }
            return result
        }
    }

    private func rows(_ result: Result) -> [(String, String)] {
        let info = result.info
        var rows = [
            ("path", info.path),
            ("kind", info.kind.rawValue),
            ("size", "\(info.fileSize) bytes"),
        ]
        if !info.siblings.isEmpty { rows.append(("beside it", info.siblings.joined(separator: ", "))) }
        if let salt = info.salt { rows.append(("salt", salt)) }
        guard let details = info.details else { return rows }
        rows += [
            ("pages", "\(details.pageCount) of \(details.pageSize) bytes, \(details.freePages) free"),
            ("journal mode", details.journalMode),
            ("user version", String(details.userVersion)),
            ("application id", String(details.applicationID)),
            ("tables", String(details.tableCount)),
        ]
        if let id = result.keyID {
            let isActive = result.needsRotation == false
            rows.append(("key", isActive ? "\(id), active" : "\(id), not the active one: sealdb rotate"))
        }
        rows += details.cipherSettings.map { ("cipher", $0) }
        return rows
    }
}
