import Foundation

/// Bytes done of bytes in all, since a moment: what progress of any form is made from.
struct Throughput {
    let completed: Int64
    /// 0 when it is not known.
    let total: Int64
    let elapsed: Duration

    /// Bytes in a second; `nil` before there is something to go by.
    var rate: Double? {
        let seconds = elapsed / .seconds(1)
        return seconds >= 0.1 && completed > 0 ? Double(completed) / seconds : nil
    }

    var secondsLeft: Double? {
        guard let rate, total > 0 else { return nil }
        return Double(max(0, total - completed)) / rate
    }

    /// " 42%  1.2 GiB of 3.0 GiB  62.0 MiB/s  0:29 left"
    var text: String {
        var text = ""
        if total > 0 {
            let percent = String(min(100, completed * 100 / total))
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
    /// "512 B", "1.5 MiB".
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
    /// "0.12 s".
    static func seconds(_ seconds: Double) -> String { "\((seconds * 100).rounded() / 100) s" }

    /// "0:29", "1:02:03".
    static func clock(_ seconds: Double) -> String {
        let whole = seconds.isNaN ? 0 : Int(max(0, min(seconds, 1e9)).rounded(.up))
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        let tail = String(format: "%02d", whole % 60)
        return hours > 0 ? String(format: "%d:%02d:", hours, minutes) + tail : "\(minutes):\(tail)"
    }
}

/// A line of `--progress json`. Fields may be added; those that are there keep their meaning.
struct ProgressRecord: Encodable {
    /// `progress` of one store or file, or `total` of all.
    let kind: String
    /// The store; absent where there is just one file to work on.
    var path: String?
    var phase: String?
    let completedBytes: Int64
    /// 0 when it is not known.
    let totalBytes: Int64
    var bytesPerSecond: Int64?
    var secondsLeft: Double?
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
    }

    func write() {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers and texts can always be encoded; without a line of progress nothing is lost.
        guard let line = try? encoder.encode(self) else { return }
        StandardError.write(String(decoding: line, as: UTF8.self) + "\n")
    }
}
