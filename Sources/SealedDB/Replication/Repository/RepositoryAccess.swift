import Foundation

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
        try FileSystem.requireNoNUL(place)
        if let bytesPerSecond, bytesPerSecond <= 0 {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: """
                    \(bytesPerSecond) bytes a second are no limit that lets anything through. Nothing was read or written. Give 1 \
                    or more, or no limit.
                    """
            )
        }
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

/// Limits what is written to a directory and read from it to a number of bytes a second.
///
/// Not for several threads at once.
final class TransferPace {
    private let bytesPerSecond: Double
    private let isEnding: () -> Bool
    /// The time at which all bytes so far are within the limit.
    private var paidUntil = ContinuousClock.now

    /// So many bytes are written at once.
    let bytesAtOnce: Int
    private static let pauses = 10.0

    /// - Parameter isEnding: whether nobody waits any more.
    init(bytesPerSecond: Int64, isEnding: @escaping () -> Bool) {
        self.bytesPerSecond = Double(max(1, bytesPerSecond))
        self.isEnding = isEnding
        bytesAtOnce = min(max(4096, Int(self.bytesPerSecond / TransferPace.pauses)), 1 << 20)
    }

    /// Waits for these bytes.
    func pay(_ count: Int) {
        paidUntil = max(paidUntil, .now) + .seconds(Double(count) / bytesPerSecond)
        while !isEnding() {
            let left = paidUntil - .now
            guard left > .zero else { return }
            // A signal may end the pause early.
            usleep(UInt32(min(left / .microseconds(1), 100_000)))
        }
        paidUntil = .now
    }
}
