import ArgumentParser
import Foundation
import SealedDB

struct CreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a new, empty encrypted store.",
        discussion: """
            The store's file is made with mode 0600, and opened again with the key before success is reported. A file \
            that exists is never overwritten (exit 73). With --slots it gets a random data key, and the key has the first of \
            its slots: see "sealdb help slots".

              sealdb create app.db --key-file app.key
              sealdb create app.db --key-file ops.key --slots --recovery-key-file safe.key
            """
    )

    @Argument(help: "The store to make.", completion: .file())
    var store: String

    @OptionGroup(title: "Key")
    var keyOptions: KeyOptions

    @OptionGroup(title: "Configuration")
    var configurationOptions: ConfigurationOptions

    @Flag(inversion: .prefixedNo, help: "Give the store key slots.")
    var slots = false

    @OptionGroup(title: "Key slots")
    var firstSlots: FirstSlotOptions

    @OptionGroup(title: "Cipher settings; whatever is given here must be given at every use of the store")
    var cipherOptions: CipherOptions

    @OptionGroup(title: "Output")
    var reportOptions: ReportOptions

    func validate() throws {
        try keyOptions.choice.validate(isRequired: true)
        if slots {
            try firstSlots.requireRecovery()
        } else if firstSlots.isGiven {
            throw ValidationError("Options for recovery need --slots.")
        }
    }

    func run() throws {
        let path = try Store.literalPath(store)
        reportOptions.begin(path)
        try Store.requireAbsent(path)
        let key = try keyOptions.keyForNewStore(store)
        guard !slots else {
            let new = try firstSlots.slots(key)
            SignalWatch.start()
            let report = try KeySlots.create(path: path, cipherSettings: cipherOptions.settings(of: path), new)
            StoreRecords.forget(path)
            StoreRecords.note(.key, of: path)
            let text = "\(TerminalText.escaped(store)): new store with \(report.slots.count.counted("key slot"))\n"
            return try reportOptions.report(text + report.warnings, report)
        }
        try Store.create(path, key: key, settings: try cipherOptions.settings(of: path))
        StoreRecords.forget(path)
        StoreRecords.note(.key, of: path)
        try reportOptions.report("\(TerminalText.escaped(store)): new store\n")
    }
}
