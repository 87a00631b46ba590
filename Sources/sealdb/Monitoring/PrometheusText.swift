import Foundation

/// The state of stores in the text format of Prometheus.
struct PrometheusText {
    let text: String

    /// - Parameter states: the path of each store, and its status; `nil` if it could not be found out.
    init(_ states: [(path: String, status: StoreStatus?)], time: Date) {
        var text = ""
        func add(_ name: String, _ help: String, _ value: (StoreStatus?) -> Double?) {
            let samples = states.compactMap { path, status in value(status).map { (path, $0) } }
            guard !samples.isEmpty else { return }
            text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
            for (path, value) in samples {
                text += "\(name){store=\"\(PrometheusText.escaped(path))\"} \(PrometheusText.number(value))\n"
            }
        }
        func flag(_ value: Bool?) -> Double? { value.map { $0 ? 1 : 0 } }
        func seconds(_ date: Date?) -> Double? { date?.timeIntervalSince1970 }
        add("sealdb_store_up", "Whether the store opens with its key.") { $0 == nil ? 0 : 1 }
        add("sealdb_store_key_changed_timestamp_seconds", "When the store got its key, or its key file was written.") {
            seconds($0?.times.key)
        }
        add("sealdb_store_key_age_is_recorded", "Whether sealdb noted that time, and it is not that of a key file.") {
            flag($0?.keyAgeSource.map { $0 == .record })
        }
        add("sealdb_store_rotation_needed", "Whether another key is active, or the key is too old.") {
            flag($0?.needsRotation)
        }
        add("sealdb_store_verified_timestamp_seconds", "When the store was last verified.") {
            seconds($0?.times.verification)
        }
        add("sealdb_store_sound", "Whether the last verification found nothing wrong.") { flag($0?.isSound) }
        add("sealdb_store_backup_timestamp_seconds", "When the store was last backed up.") { seconds($0?.times.backup) }
        add("sealdb_store_verification_due", "Whether the last verification is too long ago, or found damage.") {
            flag($0?.due.contains("verification"))
        }
        add("sealdb_store_backup_due", "Whether the last backup is too long ago.") { flag($0?.due.contains("backup")) }
        text += "# HELP sealdb_status_timestamp_seconds When this was found out.\n"
        text += "# TYPE sealdb_status_timestamp_seconds gauge\n"
        text += "sealdb_status_timestamp_seconds \(PrometheusText.number(time.timeIntervalSince1970))\n"
        self.text = text
    }

    /// Refuses to replace a file that is something else, such as a store.
    static func requireReplaceable(_ path: String) throws(Failure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFREG {
            var start = [UInt8](repeating: 0, count: beginning.utf8.count)
            let count = try InputFile(path: path).read(into: &start)
            if count == 0 || start[..<count].elementsEqual(beginning.utf8) { return }
        }
        throw Failure(
            .cannotCreate,
            "\(path) exists, and is not a file that sealdb status has written. It was not changed. Name another one."
        )
    }

    private static let beginning = "# HELP sealdb_"

    private static func number(_ value: Double) -> String { String(Int64(value)) }

    /// In the value of a label, these three have escapes, and nothing else has.
    private static func escaped(_ value: String) -> String {
        value.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
