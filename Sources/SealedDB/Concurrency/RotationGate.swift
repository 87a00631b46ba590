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
