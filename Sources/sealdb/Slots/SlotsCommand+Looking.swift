import ArgumentParser
import Foundation
import SealedDB

extension SlotsCommand {
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the slots.",
            discussion: """
                Without a key nothing proves that the slots are as they were written. Never writes.

                  sealdb slots list app.db
                  sealdb slots list app.db --key-file ops.key --json
                """
        )

        @OptionGroup
        var access: SlotAccess

        private struct Contents: Encodable, Sendable {
            let report: KeySlots.Report
            let isVerified: Bool
            let problems: [String]

            private enum Names: String, CodingKey { case isVerified, problems }

            func encode(to encoder: any Encoder) throws {
                try report.encode(to: encoder)
                var container = encoder.container(keyedBy: Names.self)
                try container.encode(isVerified, forKey: .isVerified)
                try container.encode(problems, forKey: .problems)
            }
        }

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: false)
        }

        func run() throws {
            try access.begin()
            let path = try Store.literalPath(access.store)
            let problems = KeySlots.problems(path: path)
            let choice = access.keyOptions.choice
            let isVerified = choice.isGiven || choice.isConfigured
            let report = isVerified ? try access.withSlots { try $0.list() } : try KeySlots.unverifiedList(path: path)
            var rows = report.slots.map { slot in
                (
                    slot.label,
                    ["\(slot.kind.rawValue), \(slot.created)"] + (slot.derivation.map { [$0] } ?? [])
                        + (slot.isRecovery ? ["recovery"] : [])
                )
            }
            .map { ($0, $1.joined(separator: ", ")) }
            rows.append(("generation", String(report.generation)))
            rows += problems.map { ("problem", $0) }
            if !isVerified {
                rows.append(("verified", "no: without a key nothing proves that this is as it was written"))
            }
            let contents = Contents(report: report, isVerified: isVerified, problems: problems)
            try access.reportOptions.report(FieldList(rows).text, contents)
        }
    }

    struct Test: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Open the store with a key, and tell which slot that was.",
            discussion: """
                Puts in order what a change that was cut off has left: a missing or older copy of the slots, and what the \
                store remembers of them. With --accept-older-slots, older slots become the newest.

                  sealdb slots test app.db --unwrap-command '/usr/bin/age -d -i id.txt'
                """
        )

        @OptionGroup
        var access: SlotAccess

        private struct Contents: Encodable, Sendable {
            let report: KeySlots.Report
            let label: String?

            private enum Names: String, CodingKey { case label }

            func encode(to encoder: any Encoder) throws {
                try report.encode(to: encoder)
                var container = encoder.container(keyedBy: Names.self)
                try container.encodeIfPresent(label, forKey: .label)
            }
        }

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
        }

        func run() throws {
            try access.begin()
            SignalWatch.start()
            let (label, report) = try access.withSlots { try $0.test() }
            let what = label.map { "opens with the slot \($0)" } ?? "opens with its data key"
            try access.reportOptions.report(
                "\(TerminalText.escaped(access.store)): \(what)\n" + report.warnings,
                Contents(report: report, label: label)
            )
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the slots as one text, to keep elsewhere.",
            discussion: """
                It has no key in the clear, but with the key of a slot it opens the store: keep it where the keys are not.

                  sealdb slots export app.db --key-file ops.key > app.slots.txt

                With --json the text is the member slots. --quiet changes nothing.
                """
        )

        @OptionGroup
        var access: SlotAccess

        private struct Contents: Encodable, Sendable {
            let slots: String
        }

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
        }

        func run() throws {
            try access.begin()
            let text = try access.withSlots { try $0.export() }
            if access.reportOptions.json { return try access.reportOptions.report(text, Contents(slots: text)) }
            let output = ResultOutput()
            try output.write(text)
            try output.flush()
        }
    }

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put an exported text in the place of lost slots.",
            discussion: """
                The text must be that of this store, open with the key, and be no older than the slots that the store has \
                seen.

                  sealdb slots import app.db app.slots.txt --key-file ops.key
                """
        )

        @OptionGroup
        var access: SlotAccess

        @Argument(help: "The text; - is standard input.", completion: .file())
        var text: String

        func validate() throws {
            try access.keyOptions.choice.validate(isRequired: true)
        }

        func run() throws {
            try access.begin()
            let input = try InputFile(path: text)
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            // What is longer is no text of slots.
            while bytes.count <= 1 << 20 {
                let count = try input.read(into: &buffer)
                if count == 0 { break }
                bytes += buffer.prefix(count)
            }
            SignalWatch.start()
            let slots = String(decoding: bytes, as: UTF8.self)
            let report = try access.withSlots { try $0.importSlots(slots) }
            try access.report(report, "\(report.slots.count) key slots")
        }
    }
}
