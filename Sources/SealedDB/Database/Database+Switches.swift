internal import Logging

/// FMDB's switches, which may be set before or after opening.
extension Database {
    /// Logs the text of each statement that is executed, to the configuration's logger or to one named `SealedDB`.
    /// Never the values bound to it. Default false.
    public var traceExecution: Bool {
        get { switches.tracesExecution }
        set { switches.tracesExecution = newValue }
    }

    /// Logs failures to the configuration's logger, if it has one; never statements or values. Default true.
    public var logsErrors: Bool {
        get { switches.logsErrors }
        set { switches.logsErrors = newValue }
    }

    /// Ends the process with a message when a call fails. For debugging. Default false.
    public var crashOnErrors: Bool {
        get { switches.crashesOnErrors }
        set { switches.crashesOnErrors = newValue }
    }

    /// Whether prepared statements are kept for their next use, as many as
    /// ``Configuration/statementCacheCapacity`` says. Default true, unless that is 0; in FMDB it is false.
    public var shouldCacheStatements: Bool {
        get { configuration.statementCacheCapacity > 0 }
        set {
            configuration.statementCacheCapacity = newValue ? max(64, configuration.statementCacheCapacity) : 0
            connection?.setCacheCapacity(configuration.statementCacheCapacity)
        }
    }

    /// Finalises the statements that are kept; those in use go on, unlike FMDB's.
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
        self.init(timeLimit: configuration.statementTimeout, isWatching: isOfSharedUse || isTimed)
        guard let threshold = configuration.slowStatementThreshold else { return }
        let logger = configuration.logger ?? Logger(label: "SealedDB")
        slowStatements = SlowStatements(threshold: threshold) { sql, seconds in
            logger.warning(
                "slow statement",
                metadata: ["sql": "\(sql ?? "(a statement that holds a key)")", "seconds": "\(seconds)"]
            )
        }
    }
}
