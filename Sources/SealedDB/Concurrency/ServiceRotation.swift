import Foundation

/// Gives a store a new key while a queue or pool uses it. The copy is made meanwhile; callers only wait while what was changed
/// last is copied, and the copy is swapped in.
struct ServiceRotation {
    let newKey: Key
    let progress: ((KeyRotation.Progress) throws -> Void)?
    /// Gives the writer's connection to the body for one turn.
    let turn: ((Database) throws -> Void) throws -> Void
    /// Gives the writer's connection to the body while no other connection is open. None is opened before the body
    /// ends.
    let alone: ((Database) throws -> KeyRotation.Report) throws -> KeyRotation.Report

    func run() throws -> KeyRotation.Report {
        let path = try pathOfStore()
        if let path, KeySlots.exist(beside: path) {
            // Only a slot is replaced: there is nothing to copy, and others may go on using the store.
            try confirmNewKey()
            return try finish(with: nil)
        }
        if let path { try requireNoOtherProcess(path) }
        for _ in 0..<3 {
            if let report = try attempt() { return report }
        }
        try confirmNewKey()
        return try finish(with: nil)
    }

    private func pathOfStore() throws -> String? {
        var path: String?
        try statingWhatIs { try turn { db in path = try db.pathToRotate(for: newKey) } }
        return path
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
    private func requireNoOtherProcess(_ path: String) throws(DatabaseError) {
        guard let store = FileSystem.resolve(path) else { return }
        do throws(DatabaseError) {
            try LockHolders.requireNoOthers(of: store)
        } catch {
            throw error.adding(context: "The rotation did not begin, and the store is unchanged")
        }
    }

    /// Copies the store and finishes the rotation. Returns `nil` if the connection was closed in the meantime, so that
    /// the copy is lost.
    private func attempt() throws -> KeyRotation.Report? {
        var begun: (any ServiceCopy)?
        do {
            var state: KeyRotation.Progress?
            try statingWhatIs {
                try turn { db in
                    begun = try db.liveCopy(for: newKey)
                    state = begun?.progress
                }
            }
            let copy = begun!
            var (isConfirmed, isAsked) = (false, false)
            try ProgressReport.send(state!, to: progress)
            while true {
                switch try advance(copy, isAsked: isAsked) {
                case .copied(let state): try ProgressReport.send(state, to: progress)
                case .advanced: isAsked = false
                case .nearlyComplete:
                    // The source of the key may take long to answer, and callers do not wait yet.
                    guard isConfirmed else {
                        try confirmNewKey()
                        // Much may have been written meanwhile.
                        (isConfirmed, isAsked) = (true, true)
                        continue
                    }
                    do { return try finish(with: copy) } catch is TooMuchIsLeft { continue }
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

    /// What was written at the last moment is copied before others have to wait.
    private struct TooMuchIsLeft: Error {}

    private enum Outcome {
        case copied(KeyRotation.Progress)
        /// What was copied is told already.
        case advanced
        case nearlyComplete
        case lost
    }

    /// - Parameter isAsked: whether the copy is to go on although it was nearly complete.
    private func advance(_ copy: any ServiceCopy, isAsked: Bool) throws -> Outcome {
        guard copy.needsTurns else {
            guard isAsked || !copy.isNearlyComplete else { return .nearlyComplete }
            var stop: DatabaseError?
            do {
                try copy.advance { state in
                    // What the caller throws is told as it is everywhere.
                    do throws(DatabaseError) {
                        try ProgressReport.send(state, to: progress)
                    } catch {
                        stop = error
                        throw error
                    }
                }
                if copy.needsRelief {
                    // If it cannot be done now, the log only grows, and it is tried again.
                    try? turn { db in
                        guard let connection = db.connection, !db.isInTransaction else { return }
                        try copy.relieveLog(connection)
                    }
                }
            } catch {
                if let stop { throw stop }
                try statingWhatIs { throw error }
            }
            return .advanced
        }
        var outcome = Outcome.lost
        try statingWhatIs {
            try turn { db in
                guard !copy.isLost else { return }
                if copy.isNearlyComplete {
                    outcome = .nearlyComplete
                } else {
                    try db.recording { () throws(DatabaseError) in try copy.advance() }
                    outcome = .copied(copy.progress)
                }
            }
        }
        return outcome
    }

    private func finish(with copy: (any ServiceCopy)?) throws -> KeyRotation.Report {
        var hasBegun = false
        func rotate(_ db: Database) throws -> KeyRotation.Report {
            guard let copy, !copy.isLost else {
                hasBegun = true
                copy?.discard()
                return try db.rotateKey(to: newKey, with: nil, progress: progress)
            }
            guard try copy.isCloseEnough() else { throw TooMuchIsLeft() }
            hasBegun = true
            return try db.rotateKey(to: newKey, with: copy, progress: progress)
        }
        // Nobody waits any more while this is done.
        defer {
            copy?.replacedFile?.free()
            copy?.replacedFile = nil
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
