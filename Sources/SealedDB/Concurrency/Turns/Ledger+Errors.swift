// The errors of calls that the ledger refuses.

extension Ledger.Desk {
    var name: String {
        switch self {
        case .writer: "the connection that writes"
        case .readers: "a connection that reads"
        case .lent: "a further connection"
        }
    }
}

extension DatabaseError {
    static func waitedTooLong<T>(_ request: Ledger<T>.Request) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: """
                Others had \(request.desk.name) for \(request.limit ?? 0) s, and \(request.call) waits no longer. The \
                block was not called; try again.
                """
        )
    }

    static func circle<T>(
        _ request: Ledger<T>.Request,
        other: (call: StaticString, waitsFor: String)?
    ) -> DatabaseError {
        let who =
            other.map { "a block of \($0.call), which waits for \($0.waitsFor)" } ?? "nobody who could give it back"
        return DatabaseError(
            extendedCode: SQLITE_MISUSE,
            reason: .misuse,
            message: """
                \(request.call) within a block would wait for ever: \(request.desk.name) is held by \(who), and that \
                waits for what this thread holds. The block was not called. Use the Database that the outer block was \
                given, or raise the limits.
                """
        )
    }

    static let shutDown = DatabaseError(
        extendedCode: SQLITE_MISUSE,
        reason: .shutDown,
        message: "The queue or pool was shut down. The block was not called."
    )
}
