import Foundation

/// Gives a store a new key while a queue or pool has it in use: the copy is made between the turns of others, who wait only
/// for its verification and the swap.
struct ServiceRotation {
    let newKey: Key
    let progress: ((KeyRotation.Progress) throws -> Void)?
    /// Lends the connection that writes for a moment.
    let turn: ((Database) throws -> Void) throws -> Void
    /// Lends it when no other is open; until the body ends none is opened.
    let alone: ((Database) throws -> KeyRotation.Report) throws -> KeyRotation.Report

    func run() throws -> KeyRotation.Report {
        try requireNoOtherProcess()
        for _ in 0..<3 {
            if let report = try attempt() { return report }
        }
        try confirmNewKey()
        return try finish(with: nil)
    }

    private func confirmNewKey() throws(DatabaseError) {
        do throws(DatabaseError) {
            try newKey.confirm()
        } catch {
            throw error.adding(context: "The rotation failed, and the store is unchanged under the old key")
        }
    }

    /// Told now, not when everything is copied. It takes a while, so nobody is kept waiting for it.
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

    /// `nil` if the connection was closed meanwhile, and what was copied is lost.
    private func attempt() throws -> KeyRotation.Report? {
        var begun: (copy: LiveCopy, state: KeyRotation.Progress)?
        do {
            try turn { db in
                let copy = try db.liveCopy(for: newKey)
                begun = (copy, copy.progress)
            }
        } catch {
            // What the turn says at its end.
            begun?.copy.discard()
            throw error
        }
        let (copy, state) = begun!
        do {
            try ProgressReport.send(state, to: progress)
            while true {
                switch try advance(copy) {
                case .copied(let state): try ProgressReport.send(state, to: progress)
                case .nearlyComplete:
                    // Nobody waits yet, and a source may take its time.
                    try confirmNewKey()
                    return try finish(with: copy)
                case .lost:
                    copy.discard()
                    return nil
                }
            }
        } catch {
            copy.discard()
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
        try alone { db in
            guard let copy, !copy.isLost else {
                copy?.discard()
                return try db.rotateKey(to: newKey, with: nil, progress: progress)
            }
            return try db.rotateKey(to: newKey, with: copy, progress: progress)
        }
    }
}

/// Lets in one rotation at a time.
final class RotationGate: Sendable {
    private let isTaken = Guarded(false)

    /// - Throws: ``DatabaseError/Reason/busy`` if somebody is inside, who could be the caller itself, in its progress closure.
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
