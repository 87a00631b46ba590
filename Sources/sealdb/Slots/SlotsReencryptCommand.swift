import ArgumentParser
import SealedDB

struct SlotsReencryptCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reencrypt",
        abstract: "Encrypt a store with slots under a new data key.",
        discussion: """
            By copy, verify, swap, as "sealdb rotate" does it for a store without slots. Only a slot whose key is given can \
            get the new data key: that of the options, and those of --keep, with sources as in a key map, or wrap-command: \
            with the program of a slot. All other slots are removed; asks then, unless --yes is given.

              sealdb slots reencrypt app.db --key-file ops.key --keep on-call=passphrase-file:/etc/keys/p \\
                  --keep 'safe=wrap-command:/usr/bin/age -r age1…'
            """
    )

    @OptionGroup
    var access: SlotAccess

    @Option(help: ArgumentHelp("Keep this slot too. May be given several times.", valueName: "label=source"))
    var keep: [String] = []

    @Flag(help: "Do not ask whether the other slots may be removed.")
    var yes = false

    @OptionGroup
    var progressOptions: ProgressOptions

    func validate() throws {
        try access.keyOptions.choice.validate(isRequired: true)
    }

    func run() throws {
        try access.begin()
        let kept = try keep.map { try KeptSlot.slot($0) }
        let report = try access.withSlots { slots in
            let (own, before) = try slots.test()
            let labels = Set(kept.map(\.label) + (own.map { [$0] } ?? []))
            let lost = before.slots.map(\.label).filter { !labels.contains($0) }
            if !yes { try KeptSlot.requireConsent(lost, asks: true) }
            return try progressOptions.watchingSignals {
                try slots.reencrypt(keeping: kept, removing: Set(lost), progress: $0)
            }
        }
        try access.report(report, "new data key, \(report.slots.count) key slots")
    }
}
