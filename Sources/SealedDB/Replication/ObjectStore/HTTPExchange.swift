#if ObjectStores
    internal import CCurl
    import Foundation

    /// A request to an object store.
    struct ObjectStoreRequest {
        enum Method: String { case get = "GET", head = "HEAD", put = "PUT", delete = "DELETE" }

        var method: Method
        /// The bucket and the name of the object, of signs that need no encoding.
        var path: String
        /// Encoded, and in the order in which it is signed: by name.
        var query: [(name: String, value: String)] = []
        var headers: [String] = []
        var body: [UInt8] = []
        /// More bytes are not taken.
        var mostBytes = 1 << 20
        /// Whether it is enough to have the first bytes.
        var mayCutOff = false
    }

    /// What was answered, whole.
    struct ObjectStoreAnswer {
        var status = 0
        /// By names in small letters.
        var headers: [String: String] = [:]
        var body: [UInt8] = []

        var isSuccess: Bool { (200..<300).contains(status) }

        /// The word for the error that the store gives. Nothing else of its text is looked at, or told: it may have parts
        /// of the request.
        var errorCode: String { ObjectStoreErrorText.code(in: body) ?? "" }
    }

    /// One request and its answer, by libcurl. It is what libcurl's calls get as their context, and is used by one thread.
    final class HTTPExchange {
        /// What is the same for all requests.
        struct Setup {
            let settings: ObjectStoreSettings
            let bytesPerSecond: Int64?
            let isEnding: @Sendable () -> Bool
            var connectTimeout = 15
            /// So long it may be slower than `slowest`.
            var patience = 30
            /// How long what goes on may go on when the caller wants to end.
            var grace: Duration = .seconds(10)

            static let slowest = 512
        }

        private let request: ObjectStoreRequest
        private let setup: Setup
        private(set) var answer = ObjectStoreAnswer()
        private var sent = 0
        /// When the caller was first seen to want to end.
        private var ending: ContinuousClock.Instant?
        private(set) var wasTooLong = false
        private(set) var mayBeCutOff = false
        private(set) var wasEnded = false
        private var headerBytes = 0
        private static let mostHeaderBytes = 1 << 16
        /// What an answer that refuses says for it, however few bytes of an object are wanted.
        private static let mostRefusalBytes = 1 << 16
        private var isRefusal = false

        /// How it went wrong before there was an answer.
        struct Failure: Error {
            let code: CURLcode
            var text: String { String(cString: curl_easy_strerror(code)) }

            /// Whether another attempt may go better.
            var mayPass: Bool {
                [
                    CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
                    CURLE_OPERATION_TIMEDOUT, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
                    CURLE_SSL_CONNECT_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_WEIRD_SERVER_REPLY,
                    CURLE_SEND_FAIL_REWIND, CURLE_UPLOAD_FAILED,
                ].contains(code)
            }
        }

        /// - Parameter setup: the same for all.
        init(_ request: ObjectStoreRequest, _ setup: Setup) {
            (self.request, self.setup) = (request, setup)
        }

        /// - Parameters:
        ///   - curl: used by nobody else meanwhile. Its connections are kept.
        ///   - digest: the SHA-256 of the body.
        func run(_ curl: UnsafeMutableRawPointer, digest: String) throws(Failure) {
            curl_easy_reset(curl)
            var list: UnsafeMutablePointer<curl_slist>?
            defer { curl_slist_free_all(list) }
            var headers = request.headers + ["x-amz-content-sha256: \(digest)"]
            if let token = setup.settings.credentials.sessionToken { headers.append("x-amz-security-token: \(token)") }
            // Without a type that libcurl would make up.
            if request.method == .put { headers.append("Content-Type: application/octet-stream") }
            for header in headers {
                guard let longer = curl_slist_append(list, header) else { throw Failure(code: CURLE_OUT_OF_MEMORY) }
                list = longer
            }
            let context = Unmanaged.passUnretained(self).toOpaque()
            try set(curl, context, list)
            // The context is an address of this object, which is alive for as long as this call takes.
            let code = withExtendedLifetime(self) { curl_easy_perform(curl) }
            // 0 if nothing was answered.
            var status = 0
            try check(sealeddb_curl_number(curl, CURLINFO_RESPONSE_CODE, &status))
            answer.status = status
            try check(code)
            try requireWhole()
        }

        /// An answer that says how long it is must be so long; and one that does not must say how it ends.
        private func requireWhole() throws(Failure) {
            if request.method == .head || answer.status == 204 || answer.status == 304 { return }
            guard let length = answer.headers["content-length"] else {
                guard answer.headers["transfer-encoding"]?.lowercased() == "chunked" || isMultiplexed else {
                    throw Failure(code: CURLE_PARTIAL_FILE)
                }
                return
            }
            guard Int64(length) == Int64(answer.body.count) else { throw Failure(code: CURLE_PARTIAL_FILE) }
        }

        /// HTTP/2 marks the end of each answer.
        private var isMultiplexed = false

        private func check(_ code: CURLcode) throws(Failure) {
            guard code == CURLE_OK else { throw Failure(code: code) }
        }

        private func set(
            _ curl: UnsafeMutableRawPointer,
            _ context: UnsafeMutableRawPointer,
            _ list: UnsafeMutablePointer<curl_slist>?
        ) throws(Failure) {
            let settings = setup.settings
            var texts: [(CURLoption, String)] = [
                (CURLOPT_URL, url),
                (CURLOPT_USERNAME, settings.credentials.accessKey),
                (CURLOPT_PASSWORD, settings.credentials.secretKey),
                (CURLOPT_AWS_SIGV4, "aws:amz:\(settings.region):s3"),
                (CURLOPT_PROTOCOLS_STR, settings.isPlain ? "http" : "https"),
                (CURLOPT_USERAGENT, "SealedDB"),
            ]
            // What is on this machine stays on it, whatever proxy others use.
            if settings.isLoopback { texts.append((CURLOPT_PROXY, "")) }
            if let file = settings.certificates { texts.append((CURLOPT_CAINFO, file)) }
            var numbers: [(CURLoption, Int)] = [
                (CURLOPT_NOSIGNAL, 1),
                (CURLOPT_FOLLOWLOCATION, 0),
                (CURLOPT_PATH_AS_IS, 1),
                (CURLOPT_SSL_VERIFYPEER, 1),
                (CURLOPT_SSL_VERIFYHOST, 2),
                (CURLOPT_SSLVERSION, sealeddb_curl_tls_1_2),
                (CURLOPT_CONNECTTIMEOUT, setup.connectTimeout),
                (CURLOPT_LOW_SPEED_LIMIT, min(HTTPExchange.Setup.slowest, Int(setup.bytesPerSecond ?? .max) / 4)),
                (CURLOPT_LOW_SPEED_TIME, setup.patience),
                (CURLOPT_NOPROGRESS, 0),
            ]
            switch request.method {
            case .get: numbers.append((CURLOPT_HTTPGET, 1))
            case .head: numbers.append((CURLOPT_NOBODY, 1))
            case .put: numbers.append((CURLOPT_UPLOAD, 1))
            case .delete: texts.append((CURLOPT_CUSTOMREQUEST, request.method.rawValue))
            }
            for (option, text) in texts { try check(sealeddb_curl_set_text(curl, option, text)) }
            for (option, number) in numbers { try check(sealeddb_curl_set_number(curl, option, number)) }
            try check(sealeddb_curl_set_list(curl, CURLOPT_HTTPHEADER, list))
            if request.method == .put {
                try check(sealeddb_curl_set_size(curl, CURLOPT_INFILESIZE_LARGE, Int64(request.body.count)))
            }
            if let limit = setup.bytesPerSecond {
                try check(sealeddb_curl_set_size(curl, CURLOPT_MAX_SEND_SPEED_LARGE, limit))
                try check(sealeddb_curl_set_size(curl, CURLOPT_MAX_RECV_SPEED_LARGE, limit))
            }
            for option in [
                CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_XFERINFODATA,
            ] { try check(sealeddb_curl_set_pointer(curl, option, context)) }
            try check(
                sealeddb_curl_set_transfer(curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                    HTTPExchange.of(context).take(bytes, size * count)
                }
            )
            try check(
                sealeddb_curl_set_transfer(curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
                    HTTPExchange.of(context).takeHeader(bytes, size * count)
                }
            )
            try check(
                sealeddb_curl_set_transfer(curl, CURLOPT_READFUNCTION) { bytes, size, count, context in
                    HTTPExchange.of(context).give(bytes, size * count)
                }
            )
            try check(
                sealeddb_curl_set_seek(curl, CURLOPT_SEEKFUNCTION) { context, offset, origin in
                    HTTPExchange.of(context).seek(offset, origin)
                }
            )
            try check(
                sealeddb_curl_set_progress(curl, CURLOPT_XFERINFOFUNCTION) { context, _, _, _, _ in
                    HTTPExchange.of(context).mustEnd() ? 1 : 0
                }
            )
        }

        private var url: String {
            var url = "\(setup.settings.endpoint)/\(request.path)"
            var sign = "?"
            for (name, value) in request.query {
                url += "\(sign)\(name)=\(value)"
                sign = "&"
            }
            return url
        }

        // MARK: Calls of libcurl

        private static func of(_ context: UnsafeMutableRawPointer?) -> HTTPExchange {
            Unmanaged<HTTPExchange>.fromOpaque(context!).takeUnretainedValue()
        }

        private func take(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
            let most = isRefusal ? HTTPExchange.mostRefusalBytes : request.mostBytes
            let room = most - answer.body.count
            guard count <= room else {
                wasTooLong = true
                mayBeCutOff = isRefusal || request.mayCutOff
                if mayBeCutOff { append(bytes, room) }
                return 0
            }
            append(bytes, count)
            return count
        }

        private func append(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) {
            guard let bytes else { return }
            // These bytes are libcurl's until the call returns.
            answer.body += UnsafeRawBufferPointer(start: bytes, count: count)
        }

        private func takeHeader(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
            guard let bytes else { return count }
            headerBytes += count
            guard headerBytes <= HTTPExchange.mostHeaderBytes else { return 0 }
            // As above.
            let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
            if line.hasPrefix("HTTP/") {
                // What came before belongs to an answer that only asks for the body.
                answer.headers = [:]
                isMultiplexed = !line.hasPrefix("HTTP/1")
                isRefusal = line.split(separator: " ").dropFirst().first?.hasPrefix("2") != true
                return count
            }
            guard let colon = line.firstIndex(of: ":") else { return count }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespacesAndNewlines)
            answer.headers[line[..<colon].lowercased()] = value
            return count
        }

        private func give(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
            guard let bytes else { return 0 }
            let part = min(count, request.body.count - sent)
            // There is room for `count` bytes.
            request.body.withUnsafeBytes { body in
                UnsafeMutableRawBufferPointer(start: bytes, count: part).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: body[sent..<(sent + part)])
                )
            }
            sent += part
            return part
        }

        private func seek(_ offset: Int64, _ origin: Int32) -> Int32 {
            guard origin == SEEK_SET, offset >= 0, offset <= Int64(request.body.count) else { return 1 }
            sent = Int(offset)
            return 0
        }

        private func mustEnd() -> Bool {
            guard setup.isEnding() else { return false }
            let now = ContinuousClock.now
            let begin = ending ?? now
            ending = begin
            wasEnded = now - begin >= setup.grace
            return wasEnded
        }
    }
#endif
