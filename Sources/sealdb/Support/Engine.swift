import SealedDB

enum Engine {
    /// Fails if the engine cannot encrypt. Call it before a key is read or asked for, or a file is made.
    static func requireEncryption() throws(Failure) {
        let engine = EngineInfo.current()
        let failed = engine.checks.filter { !$0.passed }
        guard failed.isEmpty else {
            throw Failure(
                .configuration,
                "The SQLite library in this process is not a SQLCipher that sealdb can use "
                    + "(\(failed.map { "\($0.name): \($0.detail)" }.joined(separator: "; "))). Keys are refused, "
                    + "because data would be written in plaintext. Nothing was done. Keep libsqlite3 out of LD_PRELOAD, "
                    + "and install libsqlcipher 4.5 or later. See: sealdb doctor"
            )
        }
        guard engine.isEncrypting else {
            throw Failure(
                .configuration,
                "This build of sealdb has no encryption (trait PlainSQLite), so it takes no key. Nothing was done."
            )
        }
    }
}
