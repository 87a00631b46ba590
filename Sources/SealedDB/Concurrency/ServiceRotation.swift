import Foundation

/// Gives a store a new key while a queue or pool uses it. The copy is made between the turns of other callers, who only
/// wait while the copy is verified and swapped in.
struct ServiceRotation {
    let newKey: Key
    let progress: ((KeyRotation.Progress) throws -> Void)?
    /// Gives the writer's connection to the body for one turn.
    let turn: ((Database) throws -> Void) throws -> Void
    /// Gives the writer's connection to the body while no other connection is open. None is opened before the body
    /// ends.
    let alone: ((Database) throws -> KeyRotation.Report) throws -> KeyRotation.Report

    func run() throws -> KeyRotation.Report {
        if try hasSlots() {
            // Only a slot is replaced: there is nothing to copy, and others may go on using the store.
            try confirmNewKey()
            return try finish(with: nil)
        }
        try statingWhatIs { try requireNoOtherProcess() }
        for _ in 0..<3 {
            if let report = try attempt() { return report }
        }
        try confirmNewKey()
        return try finish(with: nil)
    }

    private func hasSlots() throws -> Bool {
        var path: String?
        try statingWhatIs { try turn { db in path = try db.pathToRotate(for: newKey) } }
        return path.map { KeySlots.exist(beside: $0) } ?? false
    }

    /// Says of the body's errors, all of which come before the swap, that the store is unchanged.
    private func statingWhatIs<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError where !error.message.hasPrefix("The rotation") {
            throw error.adding(context: KeyRotation.changedNothing)
        }
    }

    private func confirmNewKey() throws(DatabaseError) {
        do throws(DatabaseError) {
            try newKey.confirm()
        } catch {
            throw error.adding(context: KeyRotation.changedNothing)
        }
    }

    /// Throws if another process has the store open. This is checked before anything is copied, so that the caller does
    /// not learn it only after the whole copy. It takes a while, so it happens outside of a turn, and nobody waits for
    /// it.
    private func requireNoOtherProcess() throws {
        var path: String?
        try turn { db in path = try db.pathToRotate(for: newKey) }
        guard let store = path.flatMap({ FileSystem.resolve($0) }) else { return }
        do throws(DatabaseError) {
            try LockHolders.requireNoOthers(of: store)
        } catch {
            throw error.adding(context: "The rotation did not begin, and the store is unchanged")
        }
    }

    /// Copies the store and finishes the rotation. Returns `nil` if the connection was closed in the meantime, so that
    /// the copy is lost.
    private func attempt() throws -> KeyRotation.Report? {
        var begun: LiveCopy?
        do {
            var state: KeyRotation.Progress?
            try statingWhatIs {
                try turn { db in
                    begun = try db.liveCopy(for: newKey)
                    state = begun?.progress
                }
            }
            let copy = begun!
            try ProgressReport.send(state!, to: progress)
            while true {
                switch try statingWhatIs({ try advance(copy) }) {
                case .copied(let state): try ProgressReport.send(state, to: progress)
                case .nearlyComplete:
                    // The source of the key may take long to answer, and callers do not wait yet.
                    try confirmNewKey()
                    return try finish(with: copy)
                case .lost:
                    copy.discard()
                    return nil
                }
            }
        } catch {
            // Also what the first turn says at its end, when the copy has begun.
            begun?.discard()
            throw error
        }
    }

    private enum Outcome {
        case copied(KeyRotation.Progress)
        case nearlyComplete
        case lost
    }

    private func advance(_ copy: LiveCopy) throws -> Outcome {
        var outcome = Outcome.lost
        try turn { db in
            guard !copy.isLost else { return }
            if copy.isNearlyComplete {
                outcome = .nearlyComplete
            } else {
                try db.recording { () throws(DatabaseError) in try copy.advance() }
                outcome = .copied(copy.progress)
            }
        }
        return outcome
    }

    private func finish(with copy: LiveCopy?) throws -> KeyRotation.Report {
        var hasBegun = false
        func rotate(_ db: Database) throws -> KeyRotation.Report {
            hasBegun = true
            guard let copy, !copy.isLost else {
                copy?.discard()
                return try db.rotateKey(to: newKey, with: nil, progress: progress)
            }
            return try db.rotateKey(to: newKey, with: copy, progress: progress)
        }
        do {
            return try alone(rotate)
        } catch  where !hasBegun {
            return try statingWhatIs { throw error }
        }
    }
}

/// Lets one rotation run at a time.
final class RotationGate: Sendable {
    private let isTaken = Guarded(false)

    /// - Throws: ``DatabaseError/Reason/busy`` if a rotation is running. That may be the caller's own rotation, if the
    ///   call comes from its progress closure.
    func enter<T>(_ body: () throws -> T) throws -> T {
        let isFree = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
        guard isFree else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: "The key is being changed already. This call changed nothing; try again when that has ended."
            )
        }
        defer { isTaken.withLock { $0 = false } }
        return try body()
    }
}
