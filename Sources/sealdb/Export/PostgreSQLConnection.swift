import Foundation
import SealedDB

// The one file that needs libpq, and that the trait chooses.
#if PostgreSQL
    import CPostgreSQL

    extension ExportAddress {
        static func requireSupport() throws(Failure) {}

        func connect() throws -> any ExportTarget { try PostgreSQLConnection(self) }
    }

    /// A session of PostgreSQL, by libpq. Nothing here blocks for longer than a moment, so that a signal always ends the work.
    private final class PostgreSQLConnection: ExportTarget {
        private var connection: OpaquePointer
        private(set) var name = ""
        private var password: String?
        private var isCancelled = false

        init(_ address: ExportAddress) throws {
            try PostgreSQLConnection.requireWellFormed(address.text)
            connection = try PostgreSQLConnection.start(address.text, insisting: false)
            do {
                var options = PostgreSQLConnection.options(of: connection)
                if try options.mustInsist(address) {
                    PQfinish(connection)
                    connection = try PostgreSQLConnection.start(address.text, insisting: true)
                    options = PostgreSQLConnection.options(of: connection)
                }
                password = options["password"]
                try complete(limit: options["connect_timeout"].flatMap { Double($0) } ?? 0)
                name = PostgreSQLConnection.name(of: connection)
                try requireEncryption(address)
                try prepare()
            } catch {
                PQfinish(connection)
                throw error
            }
        }

        // MARK: Connecting

        /// libpq's own message about a malformed URL repeats it, with the password.
        private static func requireWellFormed(_ text: String) throws(Failure) {
            let failure = Failure(
                .usage,
                """
                --to takes a URL, postgresql://USER@HOST:PORT/DATABASE, or "host=… dbname=…". This is neither, or has a character that \
                must be escaped in a URL, such as %40 for @. It is not shown, as it may have a password. Nothing was done.
                """
            )
            var message: UnsafeMutablePointer<CChar>?
            guard !text.isEmpty, let options = PQconninfoParse(text, &message) else {
                PQfreemem(message)
                throw failure
            }
            defer { PQconninfoFree(options) }
            let given = values(options)
            // A password with characters that should have been escaped ends up in these, from where messages would show it.
            let hosts = (given["host"] ?? "").parts(between: ",")
            guard hosts.allSatisfy({ !String($0.utf8.dropFirst())!.has("@") }), !(given["dbname"] ?? "").has("@"),
                !(given["dbname"] ?? "").has("/"),
                (given["port"] ?? "").utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ",") })
            else { throw failure }
        }

        private static func values(_ options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
            var values: [String: String] = [:]
            var option = options
            while let keyword = option.pointee.keyword {
                if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
                option += 1
            }
            return values
        }

        private struct Options {
            let values: [String: String]

            subscript(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

            /// Whether the other side is this machine: by a socket of its file system, or by the loopback device.
            private var isLocal: Bool {
                if let addresses = self["hostaddr"] {
                    return addresses.parts(between: ",").allSatisfy { Self.isLoopback(String($0)) }
                }
                return (self["host"] ?? "").parts(between: ",").allSatisfy { host in
                    host.isEmpty || host.begins(with: "/") || host.begins(with: "@") || host == "localhost"
                        || Self.isLoopback(String(host))
                }
            }

            private static func isLoopback(_ text: String) -> Bool {
                var four = in_addr()
                if inet_pton(AF_INET, text, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
                return text == "::1"
            }

            /// Whether libpq would go on without TLS where it should not.
            /// - Throws: ``Failure`` if it was told to.
            func mustInsist(_ address: ExportAddress) throws(Failure) -> Bool {
                guard !isLocal, !address.allowsUnencrypted else { return false }
                switch self["sslmode"] ?? "prefer" {
                case "require", "verify-ca", "verify-full": return false
                case "prefer": return true
                default:
                    throw Failure(
                        .usage,
                        """
                        With this sslmode, rows would go through the network in plaintext. Ask for sslmode=verify-full, or give \
                        --allow-unencrypted. Nothing was done.
                        """
                    )
                }
            }
        }

        private static func options(of connection: OpaquePointer) -> Options {
            guard let options = PQconninfo(connection) else { return Options(values: [:]) }
            defer { PQconninfoFree(options) }
            return Options(values: values(options))
        }

        /// - Parameter insists: whether there is to be TLS, or no connection.
        private static func start(_ text: String, insisting insists: Bool) throws(Failure) -> OpaquePointer {
            let names = ["fallback_application_name", "dbname"] + (insists ? ["sslmode"] : [])
            let values = ["sealdb", text] + (insists ? ["require"] : [])
            var namePointers = names.map { UnsafePointer(strdup($0)) } + [nil]
            var valuePointers = values.map { UnsafePointer(strdup($0)) } + [nil]
            defer { for pointer in namePointers + valuePointers { free(UnsafeMutablePointer(mutating: pointer)) } }
            // What is later counts more. The name of the database is taken apart, as it is a URL.
            guard let connection = PQconnectStartParams(&namePointers, &valuePointers, 1) else {
                throw Failure(.software, "No memory for a connection. Nothing was done.")
            }
            // Notices would go to standard error.
            _ = PQsetNoticeProcessor(connection, { _, _ in }, nil)
            return connection
        }

        private func complete(limit: Double) throws {
            let start = ContinuousClock.now
            var state = PGRES_POLLING_WRITING
            guard PQstatus(connection) != CONNECTION_BAD else { throw connectionFailure() }
            while state != PGRES_POLLING_OK {
                guard state != PGRES_POLLING_FAILED else { throw connectionFailure() }
                try ExportInterruption.check()
                if limit > 0, ContinuousClock.now - start > .seconds(limit) {
                    throw Failure(.unavailable, "PostgreSQL did not answer within connect_timeout. Nothing was done.")
                }
                if try wait(for: state == PGRES_POLLING_READING ? POLLIN : POLLOUT) {
                    state = PQconnectPoll(connection)
                }
            }
            guard PQsetnonblocking(connection, 1) == 0 else { throw connectionFailure() }
        }

        /// Waits for a moment.
        /// - Returns: whether the other side is ready.
        private func wait(for events: Int32) throws -> Bool {
            var descriptor = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
            guard descriptor.fd >= 0 else { throw lost() }
            let count = poll(&descriptor, 1, 100)
            if count < 0, errno != EINTR {
                throw Failure(.software, "Cannot wait for PostgreSQL: \(String(cString: strerror(errno))).")
            }
            return count > 0
        }

        private func connectionFailure() -> Failure {
            Failure(.unavailable, "Cannot connect to PostgreSQL: \(message()) Nothing was done.")
        }

        /// libpq's message about the connection, without a password.
        private func message() -> String {
            var text = String(cString: PQerrorMessage(connection))
                .split(separator: "\n").map { $0.drop { $0 == "\t" } }.joined(separator: ": ")
            if let password, !password.isEmpty { text = text.replacingOccurrences(of: password, with: "…") }
            return text.ends(with: ".") || text.ends(with: "?") ? text : text + "."
        }

        private static func name(of connection: OpaquePointer) -> String {
            func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
            let port = text(PQport(connection))
            return
                "\(text(PQuser(connection)))@\(text(PQhost(connection)))\(port.isEmpty ? "" : ":\(port)")/\(text(PQdb(connection)))"
        }

        private func requireEncryption(_ address: ExportAddress) throws(Failure) {
            guard !address.allowsUnencrypted, PQsslInUse(connection) == 0, PQgssEncInUse(connection) == 0 else {
                return
            }
            var (peer, size) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
            let isKnown = withUnsafeMutableBytes(of: &peer) { bytes in
                getpeername(PQsocket(connection), bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size) == 0
            }
            guard isKnown, PostgreSQLConnection.isLocal(peer) else {
                throw Failure(
                    .unavailable,
                    """
                    The connection to PostgreSQL is not encrypted, and leaves this machine. Give the server a certificate, or \
                    --allow-unencrypted. Nothing was done.
                    """
                )
            }
        }

        private static func isLocal(_ peer: sockaddr_storage) -> Bool {
            withUnsafeBytes(of: peer) { bytes in
                switch Int32(peer.ss_family) {
                case AF_UNIX: return true
                case AF_INET: return UInt32(bigEndian: bytes.load(as: sockaddr_in.self).sin_addr.s_addr) >> 24 == 127
                case AF_INET6:
                    let address = bytes.load(as: sockaddr_in6.self).sin6_addr
                    return withUnsafeBytes(of: address) { $0.elementsEqual([UInt8](repeating: 0, count: 15) + [1]) }
                default: return false
                }
            }
        }

        private func prepare() throws {
            guard PQserverVersion(connection) >= 100_000 else {
                throw Failure(
                    .configuration,
                    "This PostgreSQL is older than 10, and has no identity columns. Nothing was done."
                )
            }
            // What is named below is found in no schema of somebody else. A policy must not hide rows that are read back. What was
            // reported as done must be on the server's disk.
            try execute(
                """
                SET search_path = pg_catalog; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on;
                SET row_security = off; SET extra_float_digits = 3
                """
            )
            if try execute("SHOW synchronous_commit").first?.first == "off" {
                try execute("SET synchronous_commit = on")
            }
            let encoding = try execute("SHOW server_encoding").first?.first ?? "?"
            guard encoding == "UTF8" else {
                throw Failure(
                    .configuration,
                    """
                    The database has the encoding \(encoding ?? "?"), which does not hold every text. Make one with: CREATE DATABASE … \
                    ENCODING 'UTF8' TEMPLATE template0. Nothing was done.
                    """
                )
            }
        }

        // MARK: Statements

        private func lost() -> Failure { Failure(.unavailable, "The connection to PostgreSQL is lost: \(message())") }

        private func send(_ sql: String) throws {
            guard PQsendQuery(connection, sql) == 1 else { throw lost() }
            try flush()
        }

        /// Waits until all that was given to libpq is with the system.
        private func flush(stopping stops: Bool = true) throws {
            while true {
                let rest = PQflush(connection)
                guard rest >= 0 else { throw lost() }
                guard rest > 0 else { return }
                if stops { try ExportInterruption.check() }
                // What it says must be read: a server that cannot go on saying it may not read either. Whether there is something
                // is of no account.
                _ = try wait(for: POLLOUT | POLLIN)
                guard PQconsumeInput(connection) == 1 else { throw lost() }
            }
        }

        /// Reads what has come, and waits only if that was not enough: TLS may hold something that the socket does not show.
        private func receive(_ hasConsumed: inout Bool) throws {
            if hasConsumed {
                // If nothing comes within a moment, that is tried again.
                _ = try wait(for: POLLIN)
            }
            guard PQconsumeInput(connection) == 1 else { throw lost() }
            hasConsumed = true
        }

        /// - Returns: `nil` when there are no more. A failed one is thrown when all are read.
        private func nextResult(stopping stops: Bool = true) throws -> OpaquePointer? {
            var hasConsumed = false
            while PQisBusy(connection) == 1 {
                if stops, SignalWatch.wasInterrupted { cancel() }
                try receive(&hasConsumed)
            }
            return PQgetResult(connection)
        }

        /// Asks the server to stop.
        private func cancel() {
            guard !isCancelled, let request = PQgetCancel(connection) else { return }
            isCancelled = true
            var text = [CChar](repeating: 0, count: 256)
            // If it does not reach the server, that goes on until it is done, and then learns that the session has ended.
            _ = PQcancel(request, &text, 256)
            PQfreeCancel(request)
        }

        private func failure(of result: OpaquePointer) -> Failure {
            func field(_ code: Character) -> String? {
                PQresultErrorField(result, Int32(code.asciiValue!)).map { String(cString: $0) }
            }
            guard let state = field("C") else { return lost() }
            return ServerError.failure(state, field("M") ?? "?")
        }

        /// Reads all results, and throws the first failure among them.
        private func finish(stopping stops: Bool = true, _ body: (OpaquePointer) -> Void = { _ in }) throws {
            var failure: Failure?
            while let result = try nextResult(stopping: stops) {
                defer { PQclear(result) }
                switch PQresultStatus(result) {
                case PGRES_COMMAND_OK, PGRES_TUPLES_OK: body(result)
                case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
                    throw Failure(.software, "PostgreSQL is in another state than sealdb.")
                default: failure = failure ?? self.failure(of: result)
                }
            }
            if let failure { throw failure }
        }

        @discardableResult
        func execute(_ sql: String) throws -> [[String?]] {
            try send(sql)
            var rows: [[String?]] = []
            try finish { result in
                rows = (0..<PQntuples(result)).map { row in
                    (0..<PQnfields(result)).map { column in
                        guard PQgetisnull(result, row, column) == 0 else { return nil }
                        return PQgetvalue(result, row, column).map { String(cString: $0) }
                    }
                }
            }
            return rows
        }

        func commit() throws {
            guard PQsendQuery(connection, "COMMIT") == 1 else { throw lost() }
            var tag = ""
            do {
                try flush(stopping: false)
                try finish(stopping: false) { tag = String(cString: PQcmdStatus($0)) }
            } catch let failure as Failure where PQstatus(connection) == CONNECTION_BAD {
                throw CommitUnknown(message: failure.message)
            }
            // A transaction that has failed ends with this answer, and without an error.
            guard tag == "COMMIT" else { throw Failure(.software, "PostgreSQL answered \(tag) to COMMIT.") }
        }

        // MARK: COPY

        private func begin(_ sql: String, _ expected: ExecStatusType) throws {
            try send(sql)
            guard let result = try nextResult() else { throw lost() }
            defer { PQclear(result) }
            let status = PQresultStatus(result)
            guard status != expected else { return }
            let failure = failure(of: result)
            // The first failure is the one to tell.
            try? finish()
            throw failure
        }

        func copyIn(_ sql: String, _ body: (_ send: (UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws {
            try begin(sql, PGRES_COPY_IN)
            try body { bytes in
                var rest = bytes
                while !rest.isEmpty {
                    // libpq would hold all that the server does not take, however much it is.
                    let part = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 16))
                    let pointer = part.baseAddress!.assumingMemoryBound(to: CChar.self)
                    let taken = PQputCopyData(connection, pointer, Int32(part.count))
                    guard taken >= 0 else { throw lost() }
                    try flush()
                    if taken == 1 { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count)) }
                }
            }
            while true {
                let taken = PQputCopyEnd(connection, nil)
                guard taken >= 0 else { throw lost() }
                try flush()
                if taken == 1 { break }
            }
            try finish()
        }

        func copyOut(_ sql: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
            try begin(sql, PGRES_COPY_OUT)
            var hasConsumed = false
            while true {
                try ExportInterruption.check()
                var bytes: UnsafeMutablePointer<CChar>?
                let count = PQgetCopyData(connection, &bytes, 1)
                switch count {
                case 1...:
                    defer { PQfreemem(bytes) }
                    try body(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
                    hasConsumed = false
                case 0: try receive(&hasConsumed)
                case -1: return try finish()
                default: throw lost()
                }
            }
        }

        func close() {
            // The server rolls back what is open when a session ends. It is told so in words if it listens, and to stop if it works.
            switch PQtransactionStatus(connection) {
            case PQTRANS_ACTIVE: cancel()
            case PQTRANS_INTRANS, PQTRANS_INERROR:
                // As above: it would do the same by itself.
                if PQsendQuery(connection, "ROLLBACK") == 1 { try? finish(stopping: false) }
            default: break
            }
            PQfinish(connection)
        }
    }
#else
    extension ExportAddress {
        static func requireSupport() throws(Failure) {
            throw Failure(
                .configuration,
                """
                This sealdb was built without PostgreSQL. Install libpq-dev, and build it with the package's trait PostgreSQL: swift build \
                --traits SQLCipher,PostgreSQL. "sealdb export --dry-run" works without. Nothing was done.
                """
            )
        }

        func connect() throws -> any ExportTarget {
            try ExportAddress.requireSupport()
            // Not reached.
            throw Failure(.configuration, "This sealdb was built without PostgreSQL.")
        }
    }
#endif

/// Nobody knows whether the transaction was committed: the connection was lost before the answer came.
struct CommitUnknown: Error {
    let message: String
}
