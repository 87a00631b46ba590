/// What a queue or pool and its shipper have to do with each other.
extension Shipper {
    /// How many seconds what is there may take to be shipped when a queue or pool is closed, unless there is a limit.
    static let patience = 30.0
    /// How many seconds it waits for a turn in which the log can begin anew. If there is none, it tries again.
    private static let patienceForTurn = 1.0

    /// - Returns: `nil` without a replication. What cannot be replicated is refused when it is opened.
    static func of(_ path: String?, _ configuration: Configuration, _ instruments: Instruments) -> Shipper? {
        guard let replication = configuration.replication, let path, Database.isFile(path) else { return nil }
        return Shipper(
            replication.absolute,
            path: FileSystem.absolute(path),
            settings: configuration.cipherSettings,
            busyTimeout: configuration.busyTimeout,
            acceptsOlderSlots: configuration.acceptsOlderSlots,
            logger: configuration.logger
        ) { status, hasFailed in
            instruments.replicated(status, failed: hasFailed)
        }
    }

    /// Lets the log begin anew in turns of this writer, so that there is one checkpoint at a time.
    func takeTurns(of writer: Writer) {
        turn.withLock { turn in
            turn = { [weak writer] body in
                writer?.inTurn(within: Shipper.patienceForTurn, body) ?? false
            }
        }
    }

    /// Ships what is there, has the connections closed, and ends. If the task is cancelled, it stops shipping at once.
    /// - Parameters:
    ///   - began: when the shutdown began.
    ///   - grace: how long that may take from then on; `nil` for no limit.
    func shutDown(
        since began: UInt64,
        within grace: Duration?,
        _ closeConnections: @escaping @Sendable () -> Void
    ) async {
        let elapsed = Double(Shipper.now - began) / 1e9
        let seconds = grace.map { max(0, $0.seconds - elapsed) } ?? .infinity
        await withTaskCancellationHandler {
            await onOtherThread { [self] in
                close(within: seconds, closeConnections)
                end()
            }
        } onCancel: {
            hurry()
        }
    }
}
