import ArgumentParser
import Foundation
import SealedDB

struct CreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a new, empty encrypted store.",
        discussion: """
            The store's file is made with mode 0600, and opened again with the key before success is reported. A file \
            that exists is never overwritten (exit 73).

              sealdb create app.db --key-file app.key
            """
    )

    @Argument(help: "The store to make.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @OptionGroup(title: "Cipher settings; whatever is given here must be given at every use of the store")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        try Store.requireAbsent(path)
        let key = try keyOptions.keyForNewStore(store)
        try Store.create(path, key: key, settings: try cipherOptions.settings(of: path))
        StoreRecords.forget(path)
        StoreRecords.note(.key, of: path)
        try reportOptions.report("\(TerminalText.escaped(store)): new store\n")
    }
}
