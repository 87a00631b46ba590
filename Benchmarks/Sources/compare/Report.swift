import Foundation
import Wire

/// Everything that a comparison found; the form of `report.json`.
struct Report: Codable {
    /// ISO 8601, UTC.
    var date: String
    var isQuick: Bool
    var rounds: Int
    var samplesPerRound: Int
    var sampleMilliseconds: Double
    var seconds: Double
    var filters: [String]
    var machine: Machine
    /// `nil` if it was left out.
    var plain: EngineInfo?
    var encrypted: EngineInfo?
    var opensslSpeed: [OpenSSLSpeed]
    /// Where the package index came from, and how many packages it has.
    var packageIndex: String
    var goals: [GoalResult]
    var rows: [Row]

    /// What was wanted, and what was measured.
    struct GoalResult: Codable {
        var title: String
        var limit: Goal.Limit
        var bound: Double
        var spread: Spread

        var wanted: String {
            guard bound > 0 else { return "none" }
            return (limit == .atMost ? "≤ " : "≥ ") + Format.tick(bound)
        }

        var isMet: Bool { limit == .atMost ? spread.median <= bound : spread.median >= bound }
    }

    struct Row: Codable {
        var info: CaseInfo
        var series: [Series]
        var ratios: [Ratio]

        func series(_ engine: EngineKind, _ subject: Subject) -> Series? {
            series.first { $0.engine == engine && $0.subject == subject }
        }

        /// Of the encrypted SealedDB, or of C; `nil` where other threads do the work, which are not counted.
        var allocations: Double? {
            guard info.group != "Concurrency" else { return nil }
            return series(.encrypted, info.isForCAlone ? .c : .sealed)?.allocations
        }

        func ratio(_ kind: RatioKind) -> Spread? { ratios.first { $0.kind == kind }?.spread }
    }

    struct Series: Codable {
        var engine: EngineKind
        var subject: Subject
        /// For a unit of work.
        var nanoseconds: Spread
        /// For a unit of work, on the measuring thread.
        var allocations: Double
    }

    struct Ratio: Codable {
        var kind: RatioKind
        var spread: Spread
    }

    func row(_ id: String) -> Row? { rows.first { $0.info.id == id } }
}

extension Report {
    /// Reads a `report.json`.
    init(_ path: String) throws {
        self = try JSONDecoder().decode(Report.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    }
}

enum EngineKind: String, Codable, CaseIterable { case plain, encrypted }

/// What is held against what. The first is divided by the second: below 1, the first is faster.
enum RatioKind: String, Codable, CaseIterable {
    /// SealedDB encrypted against SealedDB in the clear: what encryption costs.
    case encryption
    /// C encrypted against C in the clear.
    case encryptionInC
    /// SealedDB against C, both encrypted: what the wrapper costs.
    case wrapper
    /// SealedDB against C, both in the clear.
    case wrapperPlain
    /// SealedDB against GRDB, both in the clear.
    case peer
    /// GRDB against C, both in the clear.
    case peerInC
    /// SealedDB encrypted against GRDB in the clear.
    case encryptedAgainstPeer

    typealias Side = (engine: EngineKind, subject: Subject)

    var sides: (Side, Side) {
        switch self {
        case .encryption: ((.encrypted, .sealed), (.plain, .sealed))
        case .encryptionInC: ((.encrypted, .c), (.plain, .c))
        case .wrapper: ((.encrypted, .sealed), (.encrypted, .c))
        case .wrapperPlain: ((.plain, .sealed), (.plain, .c))
        case .peer: ((.plain, .sealed), (.plain, .grdb))
        case .peerInC: ((.plain, .grdb), (.plain, .c))
        case .encryptedAgainstPeer: ((.encrypted, .sealed), (.plain, .grdb))
        }
    }
}

/// The median of all rounds, and the lowest and the highest round.
struct Spread: Codable {
    var median: Double
    var low: Double
    var high: Double
    var rounds: [Double]

    init(_ rounds: [Double]) {
        let rounds = rounds.map { $0.rounded(significantDigits: 4) }
        median = rounds.median.rounded(significantDigits: 4)
        low = rounds.min() ?? .nan
        high = rounds.max() ?? .nan
        self.rounds = rounds
    }
}

extension [Double] {
    var median: Double {
        guard !isEmpty else { return .nan }
        let ordered = sorted()
        let middle = count / 2
        return count.isMultiple(of: 2) ? (ordered[middle - 1] + ordered[middle]) / 2 : ordered[middle]
    }
}

extension Double {
    func rounded(significantDigits: Int) -> Double {
        guard self != 0, isFinite else { return self }
        let scale = pow(10, Double(significantDigits) - 1 - log10(abs(self)).rounded(.down))
        return (self * scale).rounded() / scale
    }
}
