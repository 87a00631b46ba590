import Foundation
import SealedDB

/// What others do with a store that a service uses: by the command, and by SQLCipher's own shell.
enum Visits {
    static let all: [Operation] = [
        Operation(name: "sealdb exec", weights: [.visitor: 2, .custodian: 1], isLedgered: true) { random, scale in
            // The kernel takes arguments of 128 KiB.
            let value = Plans.value(&random, min(scale, .medium))
            return [.put(random.pick([.note, .pair]), key: random.int(0..<scale.keyCount), value)]
        } run: { client, step in
            try client.sealdb(["exec", client.place.store, sql(of: step, client), "--lock-wait", "10"])
        },
        Operation(name: "sealdb query", weights: [.visitor: 1, .custodian: 1]) { client, _ in
            let text = try client.sealdb([
                "query", client.place.store, "SELECT count(*) FROM note WHERE owner = ?", "\(client.id)", "--format",
                "csv",
                "--lock-wait", "10",
            ])
            let count = client.state.count(.note)
            guard text.split(whereSeparator: \.isNewline).last.map(String.init) == "\(count)" else {
                throw Violation("sealdb query prints \(text) where \(count) rows are.")
            }
        },
        Operation(name: "sealdb backup", weights: [.visitor: 1, .custodian: 1]) { client, step in
            try Copies.copied(client, step, isUnderOwnKey: true) { path, _ in
                try client.sealdb(["backup", client.place.store, path, "--lock-wait", "10"])
            }
        },
        Operation(name: "sealdb verify", weights: [.visitor: 1, .custodian: 1]) { client, _ in
            try client.sealdb(["verify", "--deep", client.place.store])
        },
        Operation(name: "sealdb info", weights: [.visitor: 1, .custodian: 1]) { client, _ in
            try client.sealdb(["info", client.place.store])
        },
        Operation(name: "wrong key", weights: [.visitor: 1, .custodian: 1]) { client, _ in
            let wrong = (client.place.currentKey + 1) % Place.keyCount
            // A rotation may make it the right one meanwhile, so that nothing may hang on it.
            let harmless = "UPDATE note SET value = value WHERE 0"
            for arguments in [["exec", client.place.store, harmless], ["verify", client.place.store]] {
                let outcome = try Command.outcome(
                    of: [Command.sealdb] + arguments + client.place.option(wrong)
                )
                if outcome.status == 0, !client.station.plan.rotates { throw Violation("Another key opens the store.") }
                if outcome.status == 0 { throw CommandFailure(status: CommandFailure.wrongKey, text: outcome.text) }
            }
        },
        Operation(name: "rotation from outside", weights: [.visitor: 1], changesKey: true) { client, step in
            guard let number = step.newKey, number != client.place.currentKey else { return }
            let option = client.place.option(number, isNew: true)
            try client.sealdb(["rotate", client.place.store, "--lock-wait", "0.1"] + option)
            // A service that was killed, or that has ended its work, has the store no more.
            guard client.station.plan.killsAfter != nil || access(client.place.serviceFile, F_OK) != 0 else {
                throw Violation("sealdb rotate took the store from under a service.")
            }
            client.place.currentKey = number
        },
        Operation(name: "stock shell", weights: [.visitor: 3, .custodian: 1], isLedgered: true) { random, scale in
            [Plans.put(random.pick([.note, .pair]), &random, scale)]
        } run: { client, step in
            // With FULL a power failure could undo the last commit of a rollback journal.
            // The shell of SQLite 3.53 goes on after an error in the middle of a line, and tells the last one alone.
            let (begin, end) = ("PRAGMA synchronous = EXTRA;\nBEGIN IMMEDIATE;\n", ";\nCOMMIT;\nSELECT 'done';")
            let sql = begin + sql(of: step, client) + end
            try client.shell(sql) { text in
                guard text.hasSuffix("done\n") else { throw Violation("The stock shell says \(text).") }
            }
        },
        Operation(name: "sealdb import", weights: [.visitor: 1, .custodian: 1]) { random, scale in
            // Keys that nobody else uses: rows that are there already are an error.
            (0..<random.int(1..<20)).map { _ in
                let value = Plans.value(&random, scale, isBlob: false)
                return .put(.attachment, key: random.int(importedKeys), value)
            }
        } run: { client, step in
            let file = "\(client.place.openDirectory)/import-\(client.id).csv"
            let rows = step.changes.map { change -> String in
                guard case .put(_, let key, let value) = change else { return "" }
                return "\(client.id),\(key),\"\(value.text)\"\n"
            }
            try Data(("owner,key,value\n" + rows.joined()).utf8).write(to: URL(fileURLWithPath: file))
            try client.sealdb(["import", client.place.store, "attachment", file, "--append", "--lock-wait", "10"])
        },
        Operation(name: "remove what was imported", weights: [.visitor: 1, .custodian: 1]) { _, _ in
            [.removeRange(.attachment, importedKeys)]
        } run: { client, _ in
            let sql = """
                DELETE FROM attachment WHERE owner = \(client.id)
                    AND key >= \(importedKeys.lowerBound) AND key < \(importedKeys.upperBound)
                """
            try client.sealdb(["exec", client.place.store, sql, "--lock-wait", "10"])
        },
        Operation(name: "stock shell reads", weights: [.visitor: 1, .custodian: 1]) { client, _ in
            try client.shell("SELECT count(*) FROM pair WHERE owner = \(client.id);") { text in
                guard text == "\(client.state.count(.pair))\n" else {
                    throw Violation("The stock shell reads \(text).")
                }
            }
        },
    ]

    private static let importedKeys = 1_000_000..<1_000_000_000

    /// The step's changes and its line in the ledger.
    private static func sql(of step: Step, _ client: Client) -> String {
        let owner = client.id
        let rows = step.changes.map { change -> String in
            guard case .put(let table, let key, let value) = change else { return "" }
            let literal =
                value.isBlob ? "x'" + value.bytes.map { String(format: "%02x", $0) }.joined() + "'" : "'\(value.text)'"
            return "REPLACE INTO \(table) (owner, key, value) VALUES (\(owner), \(key), \(literal));\n"
        }
        return rows.joined() + """
            REPLACE INTO ledger VALUES (\(owner), \(step.id),
                (SELECT count(*) FROM note WHERE owner = \(owner)), (SELECT count(*) FROM pair WHERE owner = \(owner)))
            """
    }
}

extension Client {
    /// With the key that the store has.
    @discardableResult
    func sealdb(_ arguments: [String]) throws -> String {
        try Command.run([Command.sealdb] + arguments + place.option(place.currentKey))
    }

    /// With the key that the store has. SQLCipher's word for a wrong key, or a lock that others have, becomes that of
    /// the command.
    func shell(_ sql: String, _ check: (String) throws -> Void) throws {
        do {
            try check(Command.shell(place.store, key: place.keyLiteral(place.currentKey), sql))
        } catch let failure as CommandFailure {
            if failure.text.contains("file is not a database") {
                throw CommandFailure(status: CommandFailure.wrongKey, text: failure.text)
            }
            // The last is what SQLite says to whoever has opened a file that is not in its place any more.
            if failure.text.contains("database is locked")
                || station.plan.rotates && failure.text.contains("attempt to write a readonly database")
            {
                throw CommandFailure(status: CommandFailure.busy, text: failure.text)
            }
            throw failure
        }
    }
}
