/// What the comparison asks of a worker, one JSON object on a line of its standard input.
public enum Request: Codable, Sendable {
    /// Answered with ``Reply/cases(_:)``.
    case list
    /// Answered with ``Reply/engine(_:)``.
    case describeEngine
    /// Makes the subjects of a case ready, beside those that are ready already, and finds out how many passes make a
    /// sample of about this length. Answered with ``Reply/ready(subjects:)``.
    case begin(id: String, sampleNanoseconds: Double)
    /// Answered with ``Reply/sample(_:)``.
    case sample(id: String, subject: Subject)
    /// Closes what was begun. Answered with ``Reply/done``.
    case end
}

/// A worker's answer, one JSON object on a line of its standard output.
public enum Reply: Codable, Sendable {
    case cases([CaseInfo])
    case engine(EngineInfo)
    case ready(subjects: [Subject])
    case sample(Sample)
    case done
    case failure(String)
}

/// Who does the work.
public enum Subject: String, Codable, Sendable, CaseIterable {
    case c = "C"
    case sealed = "SealedDB"
    case grdb = "GRDB"
}

/// One sample of one subject.
public struct Sample: Codable, Sendable {
    /// Wall-clock time for a unit of work.
    public var nanoseconds: Double
    /// Allocations of the measuring thread for a unit of work.
    public var allocations: Double

    public init(nanoseconds: Double, allocations: Double) {
        self.nanoseconds = nanoseconds
        self.allocations = allocations
    }
}

/// A line of the table.
public struct CaseInfo: Codable, Sendable, Hashable {
    /// Dotted, such as `bind.integer.prepared`; stays the same from report to report.
    public var id: String
    public var group: String
    public var title: String
    /// What the time of a sample is for: `row`, `query`, `page` …
    public var unit: String
    /// Bytes in a unit, where throughput in MB/s says more than time; 0 otherwise.
    public var bytes: Double
    /// Whether it needs a process whose SQLCipher locks and wipes its memory, which cannot be undone.
    public var needsMemorySecurity: Bool
    /// Cases of the same name are measured together, sample by sample, so that they can be held against each other;
    /// empty for those that are measured alone.
    public var set: String
    /// Who takes part, in the worker that was asked.
    public var subjects: [Subject] = []

    public init(
        id: String,
        group: String,
        title: String,
        unit: String,
        bytes: Double = 0,
        needsMemorySecurity: Bool = false,
        set: String = ""
    ) {
        self.id = id
        self.group = group
        self.title = title
        self.unit = unit
        self.bytes = bytes
        self.needsMemorySecurity = needsMemorySecurity
        self.set = set
    }
}

/// The engine in a worker's process.
public struct EngineInfo: Codable, Sendable {
    public var sqliteVersion: String
    /// Empty in the plain build.
    public var cipherVersion: String
    public var cipherProvider: String
    /// Empty in the encrypted build, which has no GRDB.
    public var grdbVersion: String
    public var cryptoVersion: String
    public var compileOptions: [String]

    public init(
        sqliteVersion: String,
        cipherVersion: String,
        cipherProvider: String,
        grdbVersion: String,
        cryptoVersion: String,
        compileOptions: [String]
    ) {
        self.sqliteVersion = sqliteVersion
        self.cipherVersion = cipherVersion
        self.cipherProvider = cipherProvider
        self.grdbVersion = grdbVersion
        self.cryptoVersion = cryptoVersion
        self.compileOptions = compileOptions
    }
}
