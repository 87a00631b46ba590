/// How a ``DatabaseQueue`` or ``DatabasePool`` ships its store to a repository while it is open, as `sealdb replicate` does
/// beside it; see <doc:Replicating>.
///
/// ```swift
/// var configuration = Configuration(key: key, replication: Replication(to: "/mnt/backup/app"))
/// let queue = try DatabaseQueue(path: "app.db", configuration: configuration)
/// ```
/// One thread ships what is committed, encrypted as it stands in the write-ahead log. No call of the queue or pool waits for
/// it, but `replicate()`, which asks for it.
///
/// A failure is logged as a warning, and stands in ``ReplicationStatus/lastError``. It is tried again after the next
/// ``interval``, and the store's log waits for that, and grows, up to ``maximumUnshippedBytes``. If somebody has to do something
/// first, as where the repository is another store's, nothing is shipped any more until the queue or pool was closed and is
/// used again.
///
/// A relative path counts from the working directory in which the queue or pool was made.
///
/// The store must be an encrypted file in WAL mode that is opened for writing. Others are refused when they are opened, and so
/// is a ``Database`` that belongs to no queue or pool.
public struct Replication: Sendable {
    /// The directory of the repository, or `s3://bucket/prefix`. A directory is made if only its last part is missing, and it
    /// was not there before: one that has gone may be that of a disk that is not mounted, and is waited for.
    public var repository: String
    /// How often what was committed is shipped. Default 1 s.
    public var interval = Duration.seconds(1)
    /// How often another snapshot is made, so that a restore has less of the log to read; `nil` for none but those that begin
    /// a generation. Default a day.
    public var snapshotInterval: Duration? = .seconds(86_400)
    /// How many snapshots are kept. Older ones are removed after a new one was made, with what follows them up to the next.
    /// `nil`, the default, keeps all.
    public var maximumSnapshotCount: Int?
    /// How many bytes a second are written to the repository and read from it, 1 or more; `nil`, the default, for no limit.
    public var maximumBytesPerSecond: Int64?
    /// How many bytes of the store's log are kept for the repository while they cannot be shipped. Beyond that the log may
    /// begin anew, which is logged as an error, and the next time something is shipped it begins a generation: what was
    /// committed is in its snapshot, but the moments in between cannot be restored. Default 1 GiB; `nil` for no limit, and
    /// then the log grows until the disk is full.
    public var maximumUnshippedBytes: Int64? = 1 << 30
    /// Whether the store may have another path than the one that was shipped to the repository before. Default false.
    public var acceptsMovedStore = false
    /// Whether an object store on another machine may be reached without TLS. Default false.
    public var allowsPlainHTTP = false
    /// Whether the store is only opened if it can be shipped. The opening then waits until the first call has shipped all that
    /// is there, which is the whole store if the repository is empty, and throws its error. Default false: the store is opened
    /// in any case, and a failure is told as any later one.
    public var isRequiredForOpening = false
    /// Called after an attempt that failed, with its error, on a thread of its own, so that it may use the queue or pool; but
    /// `replicate()` is refused there. While it runs, it is not called again: then it gets the last of the errors. `nil`, the
    /// default: failures are in the log and in `replicationStatus` alone.
    public var didFail: (@Sendable (DatabaseError) -> Void)?

    /// Ships to a repository, with the defaults.
    public init(to repository: String) {
        self.repository = repository
    }

    /// The same, with the absolute path of a directory: the process may change its working directory.
    var absolute: Replication {
        var result = self
        guard !repository.isEmpty else { return result }
        do throws(DatabaseError) {
            if try ObjectStoreAddress(repository) == nil { result.repository = FileSystem.absolute(repository) }
            return result
        } catch {
            // What is no address, although it begins like one, is told by the first attempt.
            return self
        }
    }

    /// The values that no limit has any use for are taken for the nearest that one has.
    var pause: Double { min(max(interval.seconds, 0.01), 86_400) }
}
