#if ObjectStores
    internal import CCurl
    import Foundation

    /// Asks an object store, again if that may help, and says what is the matter if it does not.
    ///
    /// Not for several threads at once.
    final class ObjectStoreClient {
        private let address: ObjectStoreAddress
        private let setup: HTTPExchange.Setup
        private let curl: UnsafeMutableRawPointer
        private let retries: Retries

        /// How often and when something is tried again.
        struct Retries: Sendable {
            var attempts = 5
            /// Before the second attempt. The next ones are twice as long as the one before.
            var pause: Duration = .milliseconds(500)
        }

        /// libcurl begins once in a process, and after OpenSSL was told how to end.
        private static let hasBegun: Bool = {
            Engine.start()
            return sealeddb_curl_begin() == CURLE_OK
        }()

        init(
            _ address: ObjectStoreAddress,
            _ settings: ObjectStoreSettings,
            _ access: RepositoryAccess,
            retries: Retries = .init(),
            patience: Int? = nil
        ) throws(DatabaseError) {
            guard ObjectStoreClient.hasBegun, let curl = curl_easy_init() else {
                throw DatabaseError(
                    extendedCode: SQLITE_NOMEM,
                    reason: .ioError,
                    message: "libcurl does not begin. Nothing was sent."
                )
            }
            self.curl = curl
            self.address = address
            self.retries = retries
            var setup = HTTPExchange.Setup(
                settings: settings,
                bytesPerSecond: access.bytesPerSecond,
                isEnding: access.isEnding
            )
            if let patience { setup.patience = patience }
            self.setup = setup
        }

        deinit {
            curl_easy_cleanup(curl)
        }

        /// Sends a request.
        /// - Parameters:
        ///   - doing: for messages: what is being done.
        ///   - accepted: the other answers, by their status, that the caller understands.
        ///   - attempts: how often it is tried at most; `nil` as usual.
        /// - Throws: what went wrong. A request that writes may have been done nevertheless.
        func send(
            _ request: ObjectStoreRequest,
            _ doing: String,
            accepted: Set<Int> = [],
            attempts: Int? = nil
        ) throws(DatabaseError) -> ObjectStoreAnswer {
            let digest = try ObjectDigest.of(request.body)
            var pause = retries.pause
            var attempt = 1
            while true {
                let problem: DatabaseError
                switch try exchange(request, digest) {
                case .success(let answer):
                    if answer.isSuccess || accepted.contains(answer.status) { return answer }
                    problem = refusal(answer, doing)
                    guard ObjectStoreClient.mayPass(answer) else { throw problem }
                case .failure(let failure):
                    problem = unreachable(failure, doing)
                    guard failure.mayPass else { throw problem }
                }
                guard attempt < attempts ?? retries.attempts, wait(pause) else { throw problem }
                attempt += 1
                pause *= 2
            }
        }

        private func exchange(
            _ request: ObjectStoreRequest,
            _ digest: String
        ) throws(DatabaseError) -> Result<ObjectStoreAnswer, HTTPExchange.Failure> {
            let exchange = HTTPExchange(request, setup)
            do throws(HTTPExchange.Failure) {
                try exchange.run(curl, digest: digest)
                return .success(exchange.answer)
            } catch {
                if exchange.wasEnded {
                    throw DatabaseError(
                        extendedCode: SQLITE_INTERRUPT,
                        reason: .interrupted,
                        message: "Ended while \(address) was waited for. What was reported before as shipped is there."
                    )
                }
                guard exchange.wasTooLong else { return .failure(error) }
                guard exchange.mayBeCutOff else {
                    throw .damagedObject(address.description, "its answer to a request is longer than it can be")
                }
                return .success(exchange.answer)
            }
        }

        /// - Returns: false if the caller wants to end.
        private func wait(_ pause: Duration) -> Bool {
            // Not all at the same time, if a store has many clients.
            let end = ContinuousClock.now + pause * Double.random(in: 0.5...1)
            while !setup.isEnding() {
                let left = end - .now
                guard left > .zero else { return true }
                // A signal may end the pause early.
                usleep(UInt32(min(max(left / .microseconds(1), 1), 50_000)))
            }
            return false
        }

        private static func mayPass(_ answer: ObjectStoreAnswer) -> Bool {
            switch answer.status {
            case 500, 502, 503, 504, 408, 409, 429: true
            // The body was changed or cut off on the way. What has no body does not say.
            case 400:
                ["", "BadDigest", "RequestTimeout", "IncompleteBody", "XAmzContentSHA256Mismatch"].contains(
                    answer.errorCode
                )
            default: false
            }
        }

        // MARK: Messages

        private func unreachable(_ failure: HTTPExchange.Failure, _ doing: String) -> DatabaseError {
            var help = ""
            if failure.code == CURLE_PEER_FAILED_VERIFICATION || failure.code == CURLE_SSL_CACERT_BADFILE {
                help = " If its certificate is signed by an authority of your own, name that in AWS_CA_BUNDLE."
            }
            return DatabaseError(
                extendedCode: SQLITE_IOERR,
                reason: .ioError,
                message: """
                    Cannot \(doing): \(setup.settings.endpoint): \(failure.text). What was reported before as shipped is \
                    there.\(help)
                    """
            )
        }

        private func refusal(_ answer: ObjectStoreAnswer, _ doing: String) -> DatabaseError {
            let code = answer.errorCode
            let said = code.isEmpty ? "\(answer.status)" : "\(answer.status) \(code)"
            var (result, reason, help) = (SQLITE_IOERR, DatabaseError.Reason.ioError, "")
            switch (answer.status, code) {
            case (_, "RequestTimeTooSkewed"), (_, "RequestExpired"):
                help = " The clock of this machine is wrong."
            case (_, "NoSuchBucket"):
                (result, reason) = (SQLITE_CANTOPEN, .noSuchFile)
                help = " Make the bucket first; it is never made here."
            case (_, "SignatureDoesNotMatch"):
                (result, reason) = (SQLITE_CANTOPEN, .notPermitted)
                help = " The secret key does not belong to the access key, or AWS_REGION is not what the store has."
            case (507, _), (_, "QuotaExceeded"), (_, "XMinioStorageFull"), (_, "InsufficientCapacity"):
                (result, reason) = (SQLITE_FULL, .noSpace)
                help = " The object store is full."
            case (401, _), (403, _):
                (result, reason) = (SQLITE_CANTOPEN, .notPermitted)
                help = """
                     Look at the credentials (AWS_ACCESS_KEY_ID or AWS_PROFILE), and whether they may list the bucket, and \
                    read, write and remove objects in it.
                    """
            case (404, _):
                (result, reason) = (SQLITE_CANTOPEN, .noSuchFile)
                help = " Is AWS_ENDPOINT_URL_S3 the address of an object store, and the bucket right?"
            case (300..<400, _):
                let region = answer.headers["x-amz-bucket-region"].flatMap {
                    ObjectStoreSettings.isRegion($0) ? $0 : nil
                }
                (result, reason) = (SQLITE_CANTOPEN, .unusableSettings)
                help = " The bucket is elsewhere: set AWS_REGION\(region.map { " to \($0)" } ?? "")."
            default: break
            }
            return DatabaseError(
                extendedCode: result,
                reason: reason,
                message: """
                    Cannot \(doing): \(setup.settings.endpoint) answered \(said). What was reported before as shipped is \
                    there.\(help)
                    """
            )
        }
    }
#endif
