internal import Logging

/// FMDB's switches. Set them before or after opening.
extension Database {
    /// Whether to log the text of each statement that is executed, to the configuration's logger or to one named
    /// `SealedDB`. Bound values are never logged. Default false.
    public var traceExecution: Bool {
        get { switches.tracesExecution }
        set { switches.tracesExecution = newValue }
    }

    /// Whether to log failures to the configuration's logger, if it has one. Statements and values are never logged
    /// with them. Default true.
    public var logsErrors: Bool {
        get { switches.logsErrors }
        set { switches.logsErrors = newValue }
    }

    /// Whether to end the process with a message when a call fails. For debugging. Default false.
    public var crashOnErrors: Bool {
        get { switches.crashesOnErrors }
        set { switches.crashesOnErrors = newValue }
    }

    /// Whether prepared statements are kept for their next use, as many as ``Configuration/statementCacheCapacity``.
    /// Default true unless that is 0; in FMDB, the default is false.
    public var shouldCacheStatements: Bool {
        get { configuration.statementCacheCapacity > 0 }
        set {
            configuration.statementCacheCapacity = newValue ? max(64, configuration.statementCacheCapacity) : 0
            connection?.setCacheCapacity(configuration.statementCacheCapacity)
        }
    }

    /// Finalizes the statements that are kept. Unlike in FMDB, statements in use are not affected.
    public func clearCachedStatements() { connection?.clearCache() }

    struct Switches {
        var tracesExecution = false
        var logsErrors = true
        var crashesOnErrors = false
    }

    func trace(_ statement: Statement) {
        guard traceExecution else { return }
        let logger = configuration.logger ?? Logger(label: "SealedDB")
        logger.info("execute", metadata: ["sql": "\(statement.sql ?? "(a statement that holds a key)")"])
    }
}

extension Supervision {
    convenience init(_ configuration: Configuration, isOfSharedUse: Bool) {
        let isTimed = configuration.statementTimeout != nil || configuration.slowStatementThreshold != nil
        self.init(timeLimit: configuration.statementTimeout?.seconds, isWatching: isOfSharedUse || isTimed)
        guard let threshold = configuration.slowStatementThreshold else { return }
        let logger = configuration.logger ?? Logger(label: "SealedDB")
        slowStatements = SlowStatements(threshold: threshold.seconds) { sql, seconds in
            logger.warning(
                "slow statement",
                metadata: ["sql": "\(sql ?? "(a statement that holds a key)")", "seconds": "\(seconds)"]
            )
        }
    }
}
