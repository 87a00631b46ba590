/// How a repository is reached.
package struct RepositoryAccess: Sendable {
    /// No more bytes are written or read in a second; `nil` for as many as will go.
    package var bytesPerSecond: Int64?
    /// Whether an object store on another machine may be reached without TLS.
    package var allowsPlainHTTP = false
    /// Whether the caller wants to end. Then nothing is tried again in an object store, and what goes on has a few seconds; a
    /// directory gets the rest as fast as it will go.
    package var isEnding: @Sendable () -> Bool = { false }

    package init() {}

    /// Opens a repository.
    /// - Parameters:
    ///   - place: the path of a directory, or `s3://bucket/prefix`.
    ///   - creates: whether the directory is made if only its last part is missing. A bucket is never made.
    func open(_ place: String, creates: Bool) throws(DatabaseError) -> any RepositoryStorage {
        guard let address = try ObjectStoreAddress(place) else {
            let pace = bytesPerSecond.map { TransferPace(bytesPerSecond: $0, isEnding: isEnding) }
            return try DirectoryStorage(place, creates: creates, pace: pace)
        }
        #if ObjectStores
            return try ObjectStoreStorage(address, self)
        #else
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: """
                    \(address) is in an object store, and this build has no access to such. Build it with the trait \
                    ObjectStores, which needs libcurl: swift build --traits SQLCipher,ObjectStores.
                    """
            )
        #endif
    }
}
