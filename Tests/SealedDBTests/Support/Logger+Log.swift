import Logging

extension Logger {
    /// Keeps what it is told: the level, the message and the metadata.
    init(to log: Log<String>) {
        self.init(label: "") { _ in KeepingHandler(log: log) }
    }

    private struct KeepingHandler: LogHandler {
        let log: Log<String>
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { log.add("\(event.level) \(event.message) \(event.metadata ?? [:])") }
    }
}
