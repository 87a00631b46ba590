import Foundation

/// A mistake that the program could have, made for it by the interposer. If the harness does not find it, the harness
/// proves nothing.
struct Mutant: Sendable {
    let name: String
    /// The operation that has it.
    let operation: String
    /// What the interposer does.
    let plan: String
    /// Whether it must succeed where nothing else disturbs it.
    var mustSucceed = true

    static let all: [Mutant] = [
        .init(name: "the copy is not synced", operation: "rotate/delete", plan: "drop-sync=.db.sealdb-"),
        .init(name: "the copy is renamed before it is synced", operation: "rotate/wal", plan: "late-sync=.db.sealdb-"),
        .init(name: "the directory is not synced", operation: "rotate/delete", plan: "drop-sync=."),
        .init(name: "the old log stays beside the new file", operation: "rotate/wal-hot", plan: "drop-unlink==db-wal"),
        .init(name: "the store is removed before the rename", operation: "rotate/delete", plan: "split-rename==db"),
        .init(name: "the new key is not synced", operation: "rotate/delete", plan: "drop-sync==new.key"),
        .init(name: "the new key is not synced", operation: "rotate/batch", plan: "drop-sync==new.key"),
        .init(name: "the new key is not synced", operation: "commit-rotate/wal", plan: "drop-sync==new.key"),
        .init(name: "the ring is not synced", operation: "rotate/ring", plan: "drop-sync==app.ring"),
        .init(name: "the key is not synced", operation: "create/delete", plan: "drop-sync==old.key"),
        .init(name: "the key is not synced", operation: "encrypt/wal", plan: "drop-sync==old.key"),
        .init(name: "the backup's key is not synced", operation: "backup/delete", plan: "drop-sync==new.key"),
        .init(name: "the copy is not synced", operation: "backup/delete-same-key", plan: "drop-sync=.copy.sealdb-"),
        .init(name: "the rename is forgotten", operation: "rotate/wal", plan: "drop-rename==db"),
        .init(name: "the journal is not synced", operation: "rekey/delete", plan: "drop-sync=db-journal"),
        .init(name: "the file is not synced", operation: "rekey/wal", plan: "drop-sync=db"),
        .init(name: "the copy is not synced", operation: "encrypt/delete", plan: "drop-sync=.db.sealdb-"),
        .init(name: "the directory is not synced", operation: "encrypt/delete", plan: "drop-sync=."),
        .init(
            name: "what a failed run made stays",
            operation: "encrypt/delete",
            plan: "drop-unlink=.db.sealdb- space=8192",
            mustSucceed: false
        ),
        .init(name: "the journal is not synced", operation: "exec/delete", plan: "drop-sync=db-journal"),
        .init(name: "the journal stays", operation: "exec/delete", plan: "drop-unlink=db-journal"),
        .init(name: "the log is not synced", operation: "commit/wal", plan: "drop-sync=db-wal"),
        .init(name: "nothing is synced", operation: "commit/delete", plan: "drop-sync=db"),
        .init(name: "the key is not synced", operation: "keygen/file", plan: "drop-sync=.key"),
        .init(name: "the ring is renamed before it is synced", operation: "keyring/add", plan: "late-sync=.app.ring"),
        .init(name: "the slots are not synced", operation: "slots/add", plan: "drop-sync=.db.slots"),
        .init(name: "the directory is not synced", operation: "slots/rotate", plan: "drop-sync=."),
        .init(name: "objects are not synced", operation: "replicate/first", plan: "drop-sync=/.sealdb-"),
        .init(name: "directories are not synced", operation: "replicate/once", plan: "drop-sync=generations"),
        .init(name: "the new key is written before the file", operation: "key-first/delete", plan: ""),
    ]

    /// How the harness finds it: the first problem that it sees.
    func firstProblem(_ operation: Operation, on worker: Worker, seed: UInt64) throws -> TrialResult? {
        let plain = Trial(kind: .fault, operation: operation, name: "mutant", plan: plan, mustSucceed: mustSucceed)
        let result = try worker.perform(plain)
        if !result.problems.isEmpty { return result }
        let states = PowerLoss(operation: operation, plan: plan, count: 1000, seed: seed)
        let lost = try states.run(on: worker, stopsAtFirstProblem: true).first { !$0.problems.isEmpty }
        if let lost { return lost }
        try worker.reset(to: operation.files)
        let calls = try worker.run(operation, plan).calls
        for index in 1...calls {
            let kill = Trial(kind: .kill, operation: operation, name: "kill-\(index)", plan: "kill=\(index) \(plan)")
            let result = try worker.perform(kill)
            if !result.problems.isEmpty { return result }
        }
        return nil
    }
}
