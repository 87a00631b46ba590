import ArgumentParser
import SealedDB

struct InfoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Tell what a file is, with and without a key.",
        discussion: """
            Without a key, only what anybody can see from outside. The salt is not a secret. With the right key, what \
            is inside too; a wrong key is an error (exit 77).

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
        let key = keyOptions.choice.isGiven ? try keyOptions.key(of: store) : nil
        let info = try StoreInfo.inspect(path: path, key: key)
        let output = StandardOutput()
        if json {
            try output.writeJSON(info)
        } else {
            try output.write(FieldList(rows(info)).text)
        }
        try output.flush()
    }

    private func rows(_ info: StoreInfo) -> [(String, String)] {
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
        rows += details.cipherSettings.map { ("cipher", $0) }
        return rows
    }
}
