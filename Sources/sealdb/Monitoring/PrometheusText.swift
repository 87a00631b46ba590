import CSealedDBSystem
import Foundation

/// The state of stores in the text format of Prometheus.
struct PrometheusText {
    let text: String

    /// - Parameter states: the path of each store, and its status; `nil` if it could not be found out.
    /// - Parameter unseen: how many places could not be searched for stores.
    init(_ states: [(path: String, status: StoreStatus?)], unseen: Int = 0, time: Date) {
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
        text += "# HELP sealdb_status_unseen_places Places that could not be searched for stores.\n"
        text += "# TYPE sealdb_status_unseen_places gauge\nsealdb_status_unseen_places \(unseen)\n"
        text += "# HELP sealdb_status_timestamp_seconds When this was found out.\n"
        text += "# TYPE sealdb_status_timestamp_seconds gauge\n"
        text += "sealdb_status_timestamp_seconds \(PrometheusText.number(time.timeIntervalSince1970))\n"
        self.text = text
    }

    /// Refuses to replace a file that is something else, such as a store.
    /// - Returns: what may be replaced.
    static func requireReplaceable(_ path: String) throws(Failure) -> ReplacedFile.Former {
        let descriptor = sealeddb_open(path, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT { return .nothing }
            throw foreign(path, number == ELOOP ? "" : ": \(String(cString: strerror(number)))")
        }
        // The result does not matter: nothing was written through this descriptor.
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw foreign(path, ": \(String(cString: strerror(errno)))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw foreign(path) }
        var start = [UInt8](repeating: 0, count: beginning.utf8.count)
        let count = try InputFile(descriptor: descriptor, name: path).read(into: &start)
        guard count == 0 || start[..<count].elementsEqual(beginning.utf8) else { throw foreign(path) }
        return .file(status)
    }

    private static func foreign(_ path: String, _ reason: String = "") -> Failure {
        Failure(
            .cannotCreate,
            "\(path) exists, and is not a file that sealdb status has written\(reason). It was not changed. Name another one."
        )
    }

    private static let beginning = "# HELP sealdb_"

    private static func number(_ value: Double) -> String {
        // Of numbers that an Int64 does not hold, the nearest.
        if let number = Int64(exactly: value.rounded(.towardZero)) { return String(number) }
        return String(value > 0 ? Int64.max : Int64.min)
    }

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
