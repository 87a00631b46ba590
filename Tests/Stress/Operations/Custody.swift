import Foundation
import RawStore
import SealedDB

/// What needs the store for itself: commands that give it another key or another file.
enum Custody {
    static let all: [Operation] = [
        rotation("sealdb rotate") { client, number in
            try client.sealdb(["rotate", client.place.store] + client.place.option(number, isNew: true))
        },
        rotation("sealdb rotate by a command") { client, number in
            let command = "/bin/cat \(client.place.keyFile(number))"
            let option = client.place.option(number, "command", isNew: true, value: command)
            try client.sealdb(["rotate", client.place.store] + option)
        },
        rotation("sealdb rotate by a ring") { client, number in
            let place = client.place
            let ring = "\(place.keyDirectory)/ring"
            // From an earlier round that was cut off.
            _ = unlink(ring)
            defer { _ = unlink(ring) }
            try Command.run([Command.sealdb, "keyring", "create", ring, "old"] + place.option(place.currentKey))
            try Command.run([Command.sealdb, "keyring", "add", ring, "new", "--activate"] + place.option(number))
            try Command.run([Command.sealdb, "rotate", client.place.store, "--key-ring", ring])
        },
        rotation("batch with a journal") { client, number in
            let journal = "\(client.place.otherDirectory)/journal"
            _ = unlink(journal)
            defer { _ = unlink(journal) }
            let option = client.place.option(number, isNew: true)
            try client.sealdb(["rotate", client.place.store, "--journal", journal] + option)
        },
        rotation("decrypt and encrypt") { client, number in
            let place = client.place
            let (plain, sealed) = ("\(place.openDirectory)/plain.db", "\(place.otherDirectory)/sealed.db")
            for path in [plain, sealed] { _ = unlink(path) }
            defer { _ = unlink(plain) }
            try client.sealdb(["decrypt", place.store, plain, "--allow-plaintext"])
            try Command.run([Command.sealdb, "encrypt", plain, sealed] + place.option(number))
            try replaceStore(place, by: sealed)
        },
        Operation(name: "sealdb backup and restore", weights: [.custodian: 1]) { client, _ in
            let (store, backup) = (client.place.store, "\(client.place.otherDirectory)/backup.db")
            _ = unlink(backup)
            defer { _ = unlink(backup) }
            try client.sealdb(["backup", store, backup])
            try client.sealdb(["restore", backup, store, "--replace"])
            for name in try FileManager.default.contentsOfDirectory(atPath: client.place.storeDirectory)
            where name.hasPrefix("store.db.replaced-") {
                try FileManager.default.removeItem(atPath: client.place.storeDirectory + "/" + name)
            }
        },
        Operation(name: "sealdb migrate", weights: [.custodian: 1]) { client, _ in
            try client.sealdb(["migrate", client.place.store])
        },
        Operation(name: "empty store", weights: [.custodian: 1]) { client, _ in
            let empty = "\(client.place.otherDirectory)/empty.db"
            defer { for ending in ["", "-wal", "-shm", "-journal"] { _ = unlink(empty + ending) } }
            for arguments in [
                ["verify"], ["rotate"] + client.place.option(1, isNew: true), ["exec"], ["rotate", "--dry-run"],
            ] {
                try Data().write(to: URL(fileURLWithPath: empty))
                var words = [Command.sealdb] + arguments + [empty, "--key-file", client.place.keyFile(0)]
                if arguments == ["exec"] { words.insert("CREATE TABLE t (a)", at: 3) }
                if arguments.last == "--dry-run" { words += ["--new-key-file", client.place.keyFile(1)] }
                let outcome = try Command.outcome(of: words)
                guard outcome.status == 65 else {
                    throw Violation("\(arguments.joined(separator: " ")) of an empty store: exit \(outcome.status).")
                }
            }
        },
    ]

    private static func rotation(
        _ name: String,
        _ body: @escaping @Sendable (Client, Int) throws -> Void
    ) -> Operation {
        Operation(name: name, weights: [.custodian: 1], changesKey: true) { client, step in
            guard let number = step.newKey, number != client.place.currentKey else { return }
            try body(client, number)
            client.place.currentKey = number
        }
    }

    /// By a rename; nobody has the store open, and what it has in a log is in the other file.
    private static func replaceStore(_ place: Place, by path: String) throws {
        for ending in ["-wal", "-shm"] where access(place.store + ending, F_OK) == 0 {
            throw Violation("store.db\(ending) is there although nobody has the store open.")
        }
        // The modes TRUNCATE and PERSIST leave a journal that holds nothing.
        // https://www.sqlite.org/fileformat2.html#the_rollback_journal
        let magic = Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])
        guard FileManager.default.contents(atPath: place.store + "-journal")?.starts(with: magic) != true else {
            throw Violation("store.db has a hot journal although nobody has it open.")
        }
        guard rename(path, place.store) == 0 else { throw Violation("The store cannot be renamed.") }
        try place.syncStoreDirectory()
    }
}
