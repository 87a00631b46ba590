#if ObjectStores
    import Foundation
    import Testing

    @testable import SealedDB

    /// An object store in this process, on the loopback address, that fails as it is told. It checks digests; that signatures
    /// are right is seen at a real server.
    ///
    /// All that changes is used under the lock; that makes it sendable.
    final class ObjectStoreDouble: @unchecked Sendable {
        enum Fault: Sendable, Hashable {
            /// This answer, and nothing is done.
            case answer(Int, String)
            /// The request is done, and this answered.
            case answerAfter(Int)
            /// The connection ends in the middle of the request.
            case cutRequest
            /// The request is done, and the connection ends without an answer.
            case cutBefore
            /// The connection ends in the middle of the answer.
            case cutAnswer
            /// No answer comes.
            case silence
        }

        /// What is made of `If-None-Match` and `If-Match`.
        enum Conditions: CaseIterable, Sendable { case heeded, ignored, refused }

        struct Call: Sendable {
            let method: String
            let name: String
            let headers: [String: String]
        }

        private struct Stored {
            var bytes: [UInt8]
            var tag: String
            var age = 0
        }

        private let lock = NSLock()
        private let listener: Int32
        let port: UInt16
        private var objects: [String: Stored] = [:]
        private var frozen: [String: Stored]?
        private var connections: Set<Int32> = []
        private var storedCalls: [Call] = []
        private var tagCount = 0
        private var isStopped = false
        private var plan: @Sendable (Call, Int) -> Fault? = { _, _ in nil }
        private let conditions: Conditions
        /// So many names are in a part of a list.
        private let namesInList: Int
        static let (accessKey, secretKey) = ("AKIDOFTESTS", "secret/of+tests")
        static let bucket = "bucket"

        init(_ conditions: Conditions = .heeded, namesInList: Int = 1000) throws {
            (self.conditions, self.namesInList) = (conditions, namesInList)
            // Programs that other tests start must not keep these open.
            listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = listener
            let isBound = withUnsafeMutablePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(descriptor, address, size) == 0 && listen(descriptor, 16) == 0
                        && getsockname(descriptor, address, &size) == 0
                }
            }
            try #require(isBound)
            port = UInt16(bigEndian: address.sin_port)
            Thread.detachNewThread { [weak self] in
                // Here, where its number is used last: another test may get the number.
                defer { close(descriptor) }
                while true {
                    let connection = accept(descriptor, nil, nil)
                    // A program that is started in between only keeps the connection open for as long as it runs.
                    if connection >= 0 { _ = fcntl(connection, F_SETFD, FD_CLOEXEC) }
                    guard let self, self.takes(connection) else {
                        if connection >= 0 { close(connection) }
                        return
                    }
                    if connection >= 0 { Thread.detachNewThread { self.serve(connection) } }
                }
            }
        }

        private func takes(_ connection: Int32) -> Bool {
            lock.withLock {
                if connection >= 0, !isStopped { connections.insert(connection) }
                return !isStopped
            }
        }

        /// Ends all of it.
        func stop() {
            lock.withLock {
                isStopped = true
                // Ends the wait for the next one, too.
                for descriptor in connections.union([listener]) { shutdown(descriptor, Int32(SHUT_RDWR)) }
            }
        }

        // MARK: What tests look at

        var calls: [Call] { lock.withLock { storedCalls } }
        var names: [String] { lock.withLock { objects.keys.sorted() } }

        subscript(_ name: String) -> [UInt8]? {
            get { lock.withLock { objects[name]?.bytes } }
            set {
                lock.withLock {
                    tagCount += 1
                    objects[name] = newValue.map { Stored(bytes: $0, tag: "\"tag-\(tagCount)\"") }
                }
            }
        }

        /// - Parameter plan: gets each request and its number since this call.
        func fail(_ plan: @escaping @Sendable (Call, Int) -> Fault?) {
            lock.withLock {
                storedCalls = []
                self.plan = plan
            }
        }

        /// From now on lists are as they would be now.
        func freezeLists() { lock.withLock { frozen = objects } }

        /// Makes an object so many seconds older.
        func age(_ name: String, by seconds: Int) { lock.withLock { objects[name]?.age += seconds } }

        func storage(
            _ prefix: String = "store",
            attempts: Int = 3,
            patience: Int = 60,
            token: String? = nil,
            isEnding: @escaping @Sendable () -> Bool = { false }
        ) throws -> ObjectStoreStorage {
            let address = try #require(try ObjectStoreAddress("s3://\(ObjectStoreDouble.bucket)/\(prefix)"))
            let environment = [
                "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:\(port)", "AWS_ACCESS_KEY_ID": ObjectStoreDouble.accessKey,
                "AWS_SECRET_ACCESS_KEY": ObjectStoreDouble.secretKey, "AWS_SESSION_TOKEN": token ?? "",
            ]
            var access = RepositoryAccess()
            access.isEnding = isEnding
            let settings = try ObjectStoreSettings(environment, for: address, allowsPlainHTTP: false)
            let retries = ObjectStoreClient.Retries(attempts: attempts, pause: .milliseconds(1))
            let client = try ObjectStoreClient(address, settings, access, retries: retries, patience: patience)
            return ObjectStoreStorage(address, client)
        }

        // MARK: Serving

        private func serve(_ connection: Int32) {
            defer {
                lock.withLock { _ = connections.remove(connection) }
                close(connection)
            }
            var rest: [UInt8] = []
            while let (call, query, body) = request(connection, &rest) {
                let (number, fault) = lock.withLock {
                    storedCalls.append(call)
                    return (storedCalls.count - 1, plan)
                }
                switch fault(call, number) {
                case .answer(let status, let code)?:
                    guard reply(connection, status, error(code), call) else { return }
                case .cutRequest?: return
                case .cutBefore?:
                    _ = answer(call, query, body)
                    return
                case .answerAfter(let status)?:
                    _ = answer(call, query, body)
                    guard reply(connection, status, error("InternalError"), call) else { return }
                case .silence?:
                    var byte: UInt8 = 0
                    // Until the client gives up.
                    while read(connection, &byte, 1) > 0 {}
                    return
                case .cutAnswer?:
                    let (status, headers, bytes) = answer(call, query, body)
                    _ = reply(connection, status, bytes, headers: headers, call, count: bytes.count / 2)
                    return
                case nil:
                    let (status, headers, bytes) = answer(call, query, body)
                    guard reply(connection, status, bytes, headers: headers, call) else { return }
                }
            }
        }

        private func request(_ connection: Int32, _ rest: inout [UInt8]) -> (Call, [String: String], [UInt8])? {
            let end = Array("\r\n\r\n".utf8)
            func more() -> Bool {
                var part = [UInt8](repeating: 0, count: 1 << 16)
                let count = read(connection, &part, part.count)
                if count > 0 { rest += part.prefix(count) }
                return count > 0
            }
            var headerEnd: Int?
            while headerEnd == nil {
                headerEnd = rest.indices.first { rest[$0...].starts(with: end) }
                if headerEnd == nil, !more() { return nil }
            }
            let lines = String(decoding: rest[..<headerEnd!], as: UTF8.self).components(separatedBy: "\r\n")
            rest.removeFirst(headerEnd! + end.count)
            var headers: [String: String] = [:]
            for line in lines.dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                    in: .whitespaces
                )
            }
            let words = lines[0].split(separator: " ").map(String.init)
            let parts = words[1].split(separator: "?", maxSplits: 1).map(String.init)
            var query: [String: String] = [:]
            for item in parts.count > 1 ? parts[1].split(separator: "&") : [] {
                let sides = item.split(separator: "=", maxSplits: 1).map { String($0).removingPercentEncoding ?? "" }
                query[sides[0]] = sides.count > 1 ? sides[1] : ""
            }
            let length = Int(headers["content-length"] ?? "0") ?? 0
            let call = Call(
                method: words[0],
                name: String(parts[0].dropFirst(ObjectStoreDouble.bucket.count + 2)),
                headers: headers
            )
            if headers["expect"] != nil { _ = write(connection, "HTTP/1.1 100 Continue\r\n\r\n") }
            // In the middle of its body, if it has one.
            let (number, fault) = lock.withLock { (storedCalls.count, plan) }
            if length > 0, fault(call, number) == .cutRequest {
                while rest.isEmpty { guard more() else { break } }
                lock.withLock { storedCalls.append(call) }
                return nil
            }
            while rest.count < length { guard more() else { return nil } }
            let body = Array(rest.prefix(length))
            rest.removeFirst(length)
            return (call, query, body)
        }

        private func write(_ connection: Int32, _ text: String) -> Bool { write(connection, Array(text.utf8)) }

        private func write(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBytes {
                    send(
                        connection,
                        $0.baseAddress! + done,
                        bytes.count - done,
                        Int32(MSG_NOSIGNAL)
                    )
                }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }

        private func error(_ code: String) -> [UInt8] {
            let secret = "\(ObjectStoreDouble.accessKey) \(ObjectStoreDouble.secretKey)"
            return Array("<Error><Code>\(code)</Code><Message>\(secret)</Message></Error>".utf8)
        }

        private static func date(_ age: Int = 0) -> String {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(secondsFromGMT: 0)
            formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            return formatter.string(from: Date(timeIntervalSinceNow: -Double(age)))
        }

        private func reply(
            _ connection: Int32,
            _ status: Int,
            _ bytes: [UInt8],
            headers: [String] = [],
            _ call: Call,
            count: Int = .max
        ) -> Bool {
            var lines = ["HTTP/1.1 \(status) Answer", "Date: \(ObjectStoreDouble.date())"] + headers
            if !headers.contains(where: { $0.hasPrefix("Content-Length") }) {
                lines.append("Content-Length: \(bytes.count)")
            }
            let body = call.method == "HEAD" ? [] : Array(bytes.prefix(count))
            return write(connection, Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
        }

        private func answer(
            _ call: Call,
            _ query: [String: String],
            _ body: [UInt8]
        ) -> (Int, headers: [String], bytes: [UInt8]) {
            let digest = try? ObjectDigest.of(body)
            let signed = "AWS4-HMAC-SHA256 Credential=\(ObjectStoreDouble.accessKey)/"
            guard call.headers["authorization"]?.hasPrefix(signed) == true else {
                return (403, [], error("AccessDenied"))
            }
            guard call.headers["x-amz-content-sha256"] == digest else {
                return (400, [], error("XAmzContentSHA256Mismatch"))
            }
            return lock.withLock {
                let old = objects[call.name]
                switch call.method {
                case "PUT":
                    let asked = [call.headers["if-none-match"], call.headers["if-match"]]
                    if conditions == .refused, asked != [nil, nil] { return (501, [], error("NotImplemented")) }
                    if conditions == .heeded {
                        if asked[0] != nil, old != nil { return (412, [], error("PreconditionFailed")) }
                        if let tag = asked[1], tag != old?.tag { return (412, [], error("PreconditionFailed")) }
                    }
                    tagCount += 1
                    let new = Stored(bytes: body, tag: "\"tag-\(tagCount)\"")
                    objects[call.name] = new
                    return (200, ["ETag: \(new.tag)"], [])
                case "DELETE":
                    objects[call.name] = nil
                    return (204, [], [])
                case _ where call.name.isEmpty: return (200, [], list(query))
                default:
                    guard let old else { return (404, [], error("NoSuchKey")) }
                    var bytes = old.bytes
                    var headers = ["ETag: \(old.tag)", "Last-Modified: \(ObjectStoreDouble.date(old.age))"]
                    if call.method == "HEAD" { headers.append("Content-Length: \(bytes.count)") }
                    guard let range = call.headers["range"], let last = Int(range.split(separator: "-").last ?? "")
                    else {
                        return (200, headers, bytes)
                    }
                    bytes = Array(bytes.prefix(last + 1))
                    return (206, headers, bytes)
                }
            }
        }

        private func list(_ query: [String: String]) -> [UInt8] {
            let objects = frozen ?? self.objects
            let prefix = query["prefix"] ?? ""
            let names = objects.keys.filter { $0.hasPrefix(prefix) && $0 > (query["continuation-token"] ?? "") }
                .sorted()
            let part = names.prefix(namesInList)
            var text = "<?xml version=\"1.0\"?><ListBucketResult><Name>bucket</Name>"
            text += "<IsTruncated>\(names.count > part.count)</IsTruncated>"
            if names.count > part.count { text += "<NextContinuationToken>\(part.last!)</NextContinuationToken>" }
            for name in part {
                text += "<Contents><Key>\(name)</Key><Size>\(objects[name]!.bytes.count)</Size></Contents>"
            }
            return Array((text + "</ListBucketResult>").utf8)
        }
    }
#endif
