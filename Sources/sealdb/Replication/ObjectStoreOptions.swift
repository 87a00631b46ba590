import ArgumentParser
import SealedDB

/// How a repository is reached.
struct ObjectStoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Write and read no more there in a second. Default: as much as will go.", valueName: "KiB")
    )
    var bandwidthLimit: Int64?

    @Flag(help: "Reach an endpoint on another machine without TLS.")
    var plainHttp = false

    static let discussion = """
        Object stores are those with the interface of Amazon's S3. They are found by the variables and files of AWS's own tools: \
        AWS_ENDPOINT_URL_S3 (for those that are not Amazon's), AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and \
        AWS_SESSION_TOKEN, or AWS_PROFILE with ~/.aws/credentials and ~/.aws/config. What fails for a moment is tried again, \
        five times with growing pauses. They need a build with the trait ObjectStores.
        """

    func validate() throws {
        if let bandwidthLimit, !(1...1 << 30).contains(bandwidthLimit) {
            throw ValidationError("--bandwidth-limit takes a number of KiB, from 1 on.")
        }
    }

    /// Refuses addresses that are none, and what is for object stores alone.
    /// - Parameter repository: `nil` if there is none.
    func validate(for repository: String?) throws {
        do throws(DatabaseError) {
            if let repository, try ObjectStoreAddress(repository) != nil { return }
        } catch {
            throw ValidationError(error.message)
        }
        guard plainHttp else { return }
        throw ValidationError("--plain-http is for repositories in object stores (s3://…).")
    }

    var access: RepositoryAccess {
        var access = RepositoryAccess()
        access.bytesPerSecond = bandwidthLimit.map { $0 << 10 }
        access.allowsPlainHTTP = plainHttp
        access.isEnding = { SignalWatch.wasInterrupted }
        return access
    }
}
