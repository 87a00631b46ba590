import SealedDB

extension RetentionPolicy {
    /// Which of these are kept.
    /// - Parameter times: those of the snapshots, the newest first.
    func keeps(_ times: [RepositoryTime]) -> [Bool] {
        reasons(times.map { BackupStamp(seconds: $0.seconds) }).map { !$0.isEmpty }
    }
}
