/// A change that must not lose anything, whatever disturbs it: one entry of the harness's table.
struct Operation: Sendable {
    /// Such as `rotate`.
    let name: String
    /// What it starts from, such as `wal`.
    let variant: String
    /// The program and its arguments. Names of files are relative to the directory of the trial.
    let arguments: [String]
    /// What the directory holds before, by name.
    let files: [String: Files.Bytes]
    /// Of these, what was written right before, and not synced: a power failure may take it away, as long as nothing depends
    /// on it. Once the operation has come to pass, it must be whole.
    var unsynced: Set<String> = []
    /// What the operation may change, before and after.
    var targets: [Target]
    var failure = Failure.before
    /// What standard error says when the change took place although the exit code is not 0.
    var saysAfter: [String] = []
    /// What it says when it cannot tell whether the change took place.
    var saysUnknown: [String] = []
    /// The program acknowledges batches of rows on standard output.
    var load: Load?
    /// Files that hold plaintext or keys by right.
    var openFiles: Set<String> = []
    /// Beginnings of the names of files that a killed run may leave, and the next must remove.
    var temporaries: [String] = [".db.sealdb-"]
    /// Directories in which files may appear.
    var folders: Set<String> = []
    /// What was there before and is kept under a name of its own.
    var keeps: Kept?
    /// The files of the old and the new key, if the operation exchanges these too.
    var keyPlaces: KeyPlaces?
    /// Whether `db` is a store that can be rotated once the operation is done, which also clears up.
    var leavesStore = true

    /// Tells it from all others, on the command line too.
    var id: String { "\(name)/\(variant)" }
    var isOfSealdb: Bool { arguments.first == Program.sealdb }

    /// A file, and what is right in it.
    struct Target: Sendable {
        let file: String
        let before: State
        let after: State
    }

    enum State: Sendable, Equatable {
        case absent
        /// Whatever there is.
        case anything
        /// A store under a key, or a database in the clear, that holds this (see ``Contents``).
        case store(TestKey?, settings: [String] = [], digest: UInt64)
        /// A store with slots, which all of these keys open and none of those, and which holds this.
        case slots(all: Set<TestKey>, none: Set<TestKey>, digest: UInt64)
        /// A repository whose newest moment is a store of this key that holds this; without a digest, nothing that could be
        /// restored.
        case repository(TestKey, digest: UInt64?)
        /// 64 hex digits and a newline.
        case keyFile
        /// This key and no other.
        case key(TestKey)
        /// A key ring of exactly these keys; those that are named after test keys are these.
        case ring(active: String, ids: [String])
    }

    struct Kept: Sendable {
        let prefix: String
        let state: State
        /// Whether it may be there without the store, for a moment before the new one takes its place.
        var mayBeAlone = false
    }

    /// Key files of which one takes the place of another. Each key must be in one of its files at any time.
    struct KeyPlaces: Sendable {
        /// Holds the old key before, and the new one after.
        let file: String
        /// Holds the old key after.
        let former: String
        /// Holds the new key before.
        let new: String

        var all: [String] { [file, former, new] }
    }

    /// What an exit code other than 0 says about the targets.
    enum Failure: Sendable {
        case before, either
    }

    struct Load: Sendable {
        /// The batches that a whole run commits.
        let batches: Int
        /// Whether the writers are one, so that a batch is there only if all before it are.
        var isOrdered = true
    }
}

/// Raw keys, which need no derivation.
enum TestKey: UInt8, Sendable, CaseIterable {
    case old = 0x51
    case new = 0xa7
    case third = 0x3c

    var bytes: [UInt8] { (0..<32).map { rawValue &+ $0 &* 37 } }
    var hexadecimal: String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
    /// As `sqlite3_key` takes it.
    var specification: String { "x'\(hexadecimal)'" }
    var file: String { "\(self).key" }
    var fileContents: Files.Bytes { Array((hexadecimal + "\n").utf8) }

    static var files: [String: Files.Bytes] {
        Dictionary(uniqueKeysWithValues: allCases.map { ($0.file, $0.fileContents) })
    }
}
