import Foundation

/// How many bytes of a phase are done after how much time, and how much of the whole operation. All forms of progress
/// are made from this.
struct Throughput {
    let completed: Int64
    /// Number of bytes of the phase; 0 if it is not known.
    let total: Int64
    /// Since the phase began.
    let elapsed: Duration
    /// The share of the operation that is done, from 0 to 1, and the time since it began. `nil` if it has one phase only.
    var whole: (fraction: Double, elapsed: Duration)?

    /// From 0 to 1; `nil` if it is not known.
    var fraction: Double? { whole?.fraction ?? (total > 0 ? min(1, Double(completed) / Double(total)) : nil) }

    /// Bytes per second; `nil` as long as there is too little to measure.
    var rate: Double? {
        let seconds = elapsed / .seconds(1)
        return seconds >= 0.1 && completed > 0 ? Double(completed) / seconds : nil
    }

    /// Of the whole operation; `nil` as long as there is too little to estimate it from.
    var secondsLeft: Double? {
        if let whole {
            let seconds = whole.elapsed / .seconds(1)
            return seconds >= 0.1 && whole.fraction >= 0.01 ? seconds * (1 - whole.fraction) / whole.fraction : nil
        }
        guard let rate, total > 0 else { return nil }
        return Double(max(0, total - completed)) / rate
    }

    /// For example " 42%  1.2 GiB of 3.0 GiB  62.0 MiB/s  0:29 left".
    var text: String {
        var text = ""
        if let fraction {
            // As long as several phases are told, work goes on.
            let percent = String(min(Int(fraction * 100), whole == nil ? 100 : 99))
            text += String(repeating: " ", count: 3 - percent.count) + percent + "%  "
        }
        text += ByteText.size(completed)
        if total > 0 { text += " of \(ByteText.size(total))" }
        if let rate { text += "  \(ByteText.size(Int64(rate)))/s" }
        if let secondsLeft { text += "  \(DurationText.clock(secondsLeft)) left" }
        return text
    }
}

enum ByteText {
    /// For example "512 B" or "1.5 MiB".
    static func size(_ bytes: Int64) -> String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = "B"
        for next in ["KiB", "MiB", "GiB", "TiB"] where value >= 1024 {
            value /= 1024
            unit = next
        }
        return String(format: "%.1f ", value) + unit
    }
}

enum DurationText {
    /// For example "0.12 s".
    static func seconds(_ seconds: Double) -> String { "\((seconds * 100).rounded() / 100) s" }

    /// For example "0:29" or "1:02:03".
    static func clock(_ seconds: Double) -> String {
        let whole = seconds.isNaN ? 0 : Int(max(0, min(seconds, 1e9)).rounded(.up))
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        let tail = String(format: "%02d", whole % 60)
        return hours > 0 ? String(format: "%d:%02d:", hours, minutes) + tail : "\(minutes):\(tail)"
    }
}

/// A line of `--progress json`. Fields may be added; existing fields keep their meaning.
struct ProgressRecord: Encodable {
    /// `progress` for one store or file, or `total` for all of them.
    let kind: String
    /// The store; absent if there is only one file to work on.
    var path: String?
    var phase: String?
    let completedBytes: Int64
    /// 0 if it is not known.
    let totalBytes: Int64
    var bytesPerSecond: Int64?
    var secondsLeft: Double?
    /// From 0 to 1, over all phases.
    var fractionCompleted: Double?
    var completedStores: Int?
    var totalStores: Int?

    init(kind: String, path: String? = nil, phase: String? = nil, _ throughput: Throughput) {
        self.kind = kind
        self.path = path
        self.phase = phase
        completedBytes = throughput.completed
        totalBytes = throughput.total
        bytesPerSecond = throughput.rate.map { Int64($0) }
        secondsLeft = throughput.secondsLeft.map { ($0 * 10).rounded() / 10 }
        fractionCompleted = throughput.fraction.map { ($0 * 1000).rounded() / 1000 }
    }

    func write() {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers and texts can always be encoded. If not, only a line of progress is lost.
        guard let line = try? encoder.encode(self) else { return }
        StandardError.write(String(decoding: line, as: UTF8.self) + "\n")
    }
}
