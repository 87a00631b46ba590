#if ObjectStores
    import Foundation
    import Testing

    @testable import SealedDB

    /// OpenStack Swift with its interface for S3, which all tests of this process share and which ends with it. Nothing of it
    /// changes: that makes it sendable.
    private final class ObjectStoreServer: @unchecked Sendable {
        static let shared = Result { try ObjectStoreServer() }

        let environment: [String: String]
        /// The server runs until this is closed, which the system does when the process ends in whatever way.
        private let hold: FileHandle

        private init() throws {
            let (input, output) = (Pipe(), Pipe())
            hold = input.fileHandleForWriting
            let process = Process()
            process.executableURL =
                URL(fileURLWithPath: #filePath)
                .appendingPathComponent("../../../../../scripts/s3-server").standardized
            (process.standardInput, process.standardOutput) = (input, output)
            try process.run()
            try output.fileHandleForWriting.close()
            var (text, lines) = (Data(), 0)
            while lines < 4 {
                let more = try #require(try output.fileHandleForReading.read(upToCount: 1), "scripts/s3-server failed")
                try #require(!more.isEmpty, "scripts/s3-server failed")
                if more.first == UInt8(ascii: "\n") { lines += 1 }
                text += more
            }
            var environment: [String: String] = [:]
            for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
                let sides = line.split(separator: "=", maxSplits: 1).map(String.init)
                environment[sides[0]] = sides[1]
            }
            self.environment = environment
        }

        func storage(_ prefix: String, bucket: String = "stores", secret: String? = nil) throws -> ObjectStoreStorage {
            let address = try #require(try ObjectStoreAddress("s3://\(bucket)/\(prefix)"))
            var environment = environment
            if let secret { environment["AWS_SECRET_ACCESS_KEY"] = secret }
            let settings = try ObjectStoreSettings(environment, for: address, allowsPlainHTTP: false)
            return ObjectStoreStorage(address, try ObjectStoreClient(address, settings, RepositoryAccess()))
        }
    }

    /// Against a real server, which checks signatures and digests, and does not know conditions.
    @Suite(.hangLimit)
    struct ObjectStoreServerTests {
        private let server: ObjectStoreServer

        init() throws { server = try ObjectStoreServer.shared.get() }

        @Test func objects() throws {
            let storage = try server.storage("objects")
            try storage.lease(known: nil)
            let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) }
            #expect(try storage.write(large, as: "slots/a"))
            #expect(try storage.write([1], as: "slots/a") == false)
            #expect(try storage.read("slots/a") == large)
            #expect(try storage.read("slots/a", limit: 5) == Array(large.prefix(5)))
            #expect(try storage.read("slots/b") == nil)
            #expect(try storage.objects(under: "slots").map(\.size) == [3_000_000])
            #expect(throws: DatabaseError.self) { try server.storage("objects").lease(known: nil) }
            storage.release()
            let next = try server.storage("objects")
            try next.lease(known: nil)
            try next.remove("slots/a")
            try next.remove("slots/a")
            #expect(try next.objects(under: "slots").isEmpty)
        }

        /// More than one part of a list.
        @Test func longList() throws {
            let storage = try server.storage("list")
            for number in 0..<210 { #expect(try storage.write([], as: "chunks/\(number)")) }
            #expect(try storage.objects(under: "chunks").count == 210)
        }

        @Test func refusals() throws {
            func reason(_ storage: ObjectStoreStorage) -> DatabaseError.Reason? {
                do {
                    _ = try storage.read("repository")
                    return nil
                } catch { return error.reason }
            }
            #expect(reason(try server.storage("refused", secret: "wrong")) == .notPermitted)
            #expect(reason(try server.storage("refused", bucket: "absent")) == .noSuchFile)
        }

        @Test(.enabled(if: Engine.isEncrypting, "the plain build takes no key")) func shippedAndRestored() throws {
            try ObjectStoreReplication.shipAndRestore { try server.storage("shipped") }
        }
    }
#endif
