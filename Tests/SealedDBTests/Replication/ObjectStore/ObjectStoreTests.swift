#if ObjectStores
    import Foundation
    import Testing

    @testable import SealedDB

    /// What is asked of an object store, and what is made of its answers.
    @Suite(.hangLimit)
    struct ObjectStoreTests {
        private let bytes = Array("contents".utf8)

        private func withStore<T>(
            _ conditions: ObjectStoreDouble.Conditions = .heeded,
            namesInList: Int = 1000,
            _ body: (ObjectStoreDouble) throws -> T
        ) throws -> T {
            let store = try ObjectStoreDouble(conditions, namesInList: namesInList)
            defer { store.stop() }
            return try body(store)
        }

        private func failure(_ body: () throws -> Void) -> DatabaseError? {
            do {
                try body()
                return nil
            } catch { return error as? DatabaseError }
        }

        /// With each kind of store: nothing that is there is replaced.
        @Test(arguments: ObjectStoreDouble.Conditions.allCases, [false, true])
        func writtenOnce(_ conditions: ObjectStoreDouble.Conditions, hasLease: Bool) throws {
            try withStore(conditions) { store in
                let storage = try store.storage()
                if hasLease { try storage.lease(known: nil) }
                #expect(try storage.read("slots/a") == nil)
                #expect(try storage.read("slots/a", limit: 3) == nil)
                #expect(try storage.write(bytes, as: "slots/a"))
                #expect(try storage.write([1], as: "slots/a") == false)
                #expect(store["store/slots/a"] == bytes)
                #expect(try storage.read("slots/a") == bytes)
                #expect(try storage.read("slots/a", limit: 3) == Array(bytes.prefix(3)))
                #expect(try storage.read("slots/a", limit: 100) == bytes)
                #expect(try storage.objects(under: "slots").map(\.name) == ["slots/a"])
                try storage.remove("slots/a")
                try storage.remove("slots/a")
                #expect(try storage.objects(under: "slots").isEmpty)
                #expect(try storage.write([1], as: "slots/a"))
                #expect(store["store/slots/a"] == [1])
            }
        }

        /// A store that heeds the condition is not asked twice for each object.
        @Test func oneRequest() throws {
            try withStore { store in
                let storage = try store.storage()
                try storage.lease(known: nil)
                store.fail { _, _ in nil }
                #expect(try storage.write(bytes, as: "slots/a"))
                #expect(store.calls.map(\.method) == ["PUT"])
                #expect(store.calls[0].headers["if-none-match"] == "*")
            }
        }

        @Test func lists() throws {
            try withStore(namesInList: 3) { store in
                for number in 0..<10 { store["store/chunks/\(number)"] = bytes }
                store["store/chunks/"] = []
                store["store/chunksother/1"] = bytes
                store["other/chunks/1"] = bytes
                let found = try store.storage().objects(under: "chunks")
                #expect(Set(found.map(\.name)) == Set((0..<10).map { "chunks/\($0)" }))
                #expect(found.allSatisfy { $0.size == 8 })
            }
        }

        @Test(arguments: [
            "", "<a>", "<ListBucketResult></ListBucketResult>", "<Other><IsTruncated>false</IsTruncated></Other>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>false</IsTruncated>",
            "<ListBucketResult><IsTruncated>false</IsTruncated></Other>",
            "<ListBucketResult><a><IsTruncated>false</IsTruncated></ListBucketResult>",
        ])
        func noList(_ text: String) {
            #expect(ObjectStoreList(Array(text.utf8)) == nil)
        }

        @Test func deepAndLongTexts() {
            let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
            #expect(ObjectStoreErrorText.code(in: Array(deep.utf8)) == nil)
            let entities = """
                <!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/hostname">]><Error><Code>&a;</Code></Error>
                """
            #expect(ObjectStoreErrorText.code(in: Array(entities.utf8)) == nil)
            #expect(ObjectStoreErrorText.code(in: Array("<Error><Code>A\u{1b}B</Code></Error>".utf8)) == nil)
            #expect(ObjectStoreErrorText.code(in: Array("<Error><Code>SlowDown</Code></Error>".utf8)) == "SlowDown")
        }

        static let passing: [ObjectStoreDouble.Fault] = [
            .answer(500, "InternalError"), .answer(503, "SlowDown"), .answer(429, "TooManyRequests"),
            .answer(400, "RequestTimeout"), .answerAfter(500), .cutRequest, .cutBefore, .cutAnswer,
        ]

        /// What fails once is tried again, and not told.
        @Test(arguments: passing, ObjectStoreDouble.Conditions.allCases)
        func failsOnce(_ fault: ObjectStoreDouble.Fault, _ conditions: ObjectStoreDouble.Conditions) throws {
            try withStore(conditions) { store in
                let storage = try store.storage(attempts: 2)
                let large = [UInt8](repeating: 7, count: 3_000_000)
                // Every second request. None has more than two attempts.
                store.fail { _, number in number % 2 == 0 ? fault : nil }
                try storage.require(large, as: .slots("a"))
                #expect(store["store/slots/a"] == large)
                store.fail { _, number in number % 2 == 0 ? fault : nil }
                #expect(try storage.read("slots/a") == large)
                store.fail { _, number in number % 2 == 0 ? fault : nil }
                #expect(try storage.objects(under: "slots").count == 1)
                store.fail { _, number in number % 2 == 0 ? fault : nil }
                try storage.remove("slots/a")
                #expect(store.names == [])
            }
        }

        /// What goes on failing is told, after so many attempts, and nothing is there in part.
        @Test(arguments: passing)
        func failsAlways(_ fault: ObjectStoreDouble.Fault) throws {
            try withStore { store in
                let storage = try store.storage(attempts: 3, token: "token-of-tests")
                store["store/slots/there"] = bytes
                for body in [
                    { _ = try storage.write(bytes, as: "slots/new") }, { _ = try storage.read("slots/there") },
                    { _ = try storage.objects(under: "slots") }, { try storage.remove("slots/there") },
                ] as [() throws -> Void] {
                    store.fail { _, _ in fault }
                    // An answer without a body is not cut off by that.
                    guard let error = failure(body) else {
                        #expect(fault == .cutAnswer)
                        continue
                    }
                    #expect(error.reason == .ioError)
                    #expect(store.calls.count == 3)
                    for secret in [ObjectStoreDouble.accessKey, ObjectStoreDouble.secretKey, "token-of-tests"] {
                        #expect(!"\(error)".contains(secret))
                    }
                }
                #expect(store["store/slots/new"].map { $0 == bytes } ?? true)
            }
        }

        @Test(arguments: [
            (403, "AccessDenied", DatabaseError.Reason.notPermitted, "AWS_ACCESS_KEY_ID"),
            (403, "SignatureDoesNotMatch", .notPermitted, "secret key"),
            (403, "RequestTimeTooSkewed", .ioError, "clock"), (401, "", .notPermitted, "credentials"),
            (404, "NoSuchBucket", .noSuchFile, "bucket"), (301, "PermanentRedirect", .unusableSettings, "AWS_REGION"),
            (507, "", .noSpace, "full"), (403, "QuotaExceeded", .noSpace, "full"),
        ])
        func refused(_ status: Int, _ code: String, _ reason: DatabaseError.Reason, _ help: String) throws {
            try withStore { store in
                let storage = try store.storage()
                store.fail { _, _ in .answer(status, code) }
                let error = failure { _ = try storage.objects(under: "slots") }
                #expect(error?.reason == reason)
                #expect(error?.message.contains(help) == true, "\(error?.message ?? "")")
                // It is not tried again, and redirections are not followed.
                #expect(store.calls.count == 1)
                for secret in [ObjectStoreDouble.accessKey, ObjectStoreDouble.secretKey] {
                    #expect(error?.message.contains(secret) == false)
                }
            }
        }

        /// A bucket that is gone, or a server that is none, must not look like a repository without this object.
        @Test(arguments: ["NoSuchBucket", ""]) func missingBucket(_ code: String) throws {
            try withStore { store in
                let storage = try store.storage()
                store.fail { _, _ in .answer(404, code) }
                #expect(failure { _ = try storage.read("repository") }?.reason == .noSuchFile)
                #expect(failure { try storage.remove("slots/a") }?.reason == .noSuchFile)
            }
        }

        @Test func unreachable() throws {
            let storage: ObjectStoreStorage
            do {
                let store = try ObjectStoreDouble()
                storage = try store.storage()
                store.stop()
            }
            #expect(failure { _ = try storage.read("repository") }?.reason == .ioError)
        }

        /// A store that does not answer is given up, and one that is waited for in vain does not keep who wants to end.
        @Test(arguments: [false, true]) func silence(isEnding: Bool) throws {
            try withStore { store in
                store.fail { _, _ in .silence }
                let storage = try store.storage(attempts: 2, patience: 1, isEnding: { isEnding })
                #expect(failure { _ = try storage.read("repository") }?.reason == .ioError)
                #expect(store.calls.count == (isEnding ? 1 : 2))
            }
        }

        @Test func sessionToken() throws {
            try withStore { store in
                _ = try store.storage(token: "token-of-tests").read("repository")
                #expect(store.calls[0].headers["x-amz-security-token"] == "token-of-tests")
                #expect(store.calls[0].headers["authorization"]?.contains("x-amz-security-token") == true)
            }
        }

        // MARK: Lease

        @Test(arguments: ObjectStoreDouble.Conditions.allCases)
        func oneAtATime(_ conditions: ObjectStoreDouble.Conditions) throws {
            try withStore(conditions) { store in
                let (first, second) = (try store.storage(), try store.storage())
                try first.lease(known: nil)
                try first.lease(known: nil)
                let error = failure { try second.lease(known: nil) }
                #expect(error?.reason == .busy)
                #expect(error?.message.contains("process \(getpid())") == true)
                first.release()
                try second.lease(known: nil)
                #expect(failure { try first.lease(known: nil) }?.reason == .busy)
            }
        }

        private func lease(_ more: (inout ObjectText) -> Void) throws -> [UInt8] {
            var text = ObjectText(title: "SealedDB lease 1")
            for (name, value) in [("owner", "another"), ("token", "1")] { text.add(name, value) }
            more(&text)
            for (name, value) in [("began", "1"), ("free", "0")] { text.add(name, value) }
            return try text.sealed()
        }

        /// Elsewhere, it is over when it was not renewed.
        @Test func elsewhere() throws {
            try withStore { store in
                store["store/lease"] = try lease {
                    $0.add("place", "elsewhere")
                    $0.add("process", 1)
                }
                store.age("store/lease", by: 100)
                let storage = try store.storage()
                #expect(failure { try storage.lease(known: nil) }?.message.contains("by another") == true)
                store.age("store/lease", by: 30)
                try storage.lease(known: nil)
            }
        }

        /// On this machine, it is over with its process.
        @Test func endedProcess() throws {
            try withStore { store in
                let first = try store.storage()
                try first.lease(known: nil)
                let text = String(decoding: try #require(store["store/lease"]), as: UTF8.self)
                let place = try #require(text.split(separator: "\n").first { $0.hasPrefix("place: ") })
                store["store/lease"] = try lease {
                    $0.add("place", String(place.dropFirst("place: ".count)))
                    // It began at another time than the process that has the number now.
                    $0.add("process", getpid())
                }
                try store.storage().lease(known: nil)
                // And who had it does not write any more.
                let snapshot = ObjectName.snapshot(generation: 1, sequence: 0).text
                #expect(failure { _ = try first.write(bytes, as: snapshot) }?.reason == .busy)
                #expect(store["store/\(snapshot)"] == nil)
            }
        }

        /// One that `/proc` hides holds it as one elsewhere does: what can be seen does not tell it from another with its number.
        @Test(arguments: [ENOENT, EACCES, EMFILE]) func hiddenProcess(code: Int32) throws {
            try withStore { store in
                try store.storage().lease(known: nil)
                let text = String(decoding: try #require(store["store/lease"]), as: UTF8.self)
                let place = try #require(text.split(separator: "\n").first { $0.hasPrefix("place: ") })
                store["store/lease"] = try lease {
                    $0.add("place", String(place.dropFirst("place: ".count)))
                    $0.add("process", getppid())
                }
                let watch = CallWatch("/proc/\(getppid())", failing: 0...Int.max - 1, code: code)
                defer { watch.end() }
                let storage = try store.storage()
                #expect(failure { try storage.lease(known: nil) }?.reason == .busy)
                store.age("store/lease", by: 130)
                try storage.lease(known: nil)
            }
        }

        @Test func damagedLease() throws {
            try withStore { store in
                store["store/lease"] = bytes
                #expect(failure { try store.storage().lease(known: nil) }?.reason == .damaged)
                #expect(store["store/lease"] == bytes)
            }
        }

        // MARK: Stale lists

        @Test func staleLists() throws {
            try withStore { store in
                func name(_ generation: Int64, segment: Int64) -> String {
                    ObjectName.segment(generation: generation, sequence: segment).text
                }
                func name(_ generation: Int64, snapshot: Int64) -> String {
                    ObjectName.snapshot(generation: generation, sequence: snapshot).text
                }
                let first = try store.storage()
                try first.lease(known: nil)
                #expect(try first.write(bytes, as: name(1, snapshot: 0)))
                #expect(try first.write(bytes, as: name(1, segment: 1)))
                store.freezeLists()
                let new = [
                    name(1, segment: 2), name(1, segment: 3), name(1, snapshot: 2), name(2, snapshot: 0),
                    name(2, segment: 1),
                ]
                for name in new { #expect(try first.write(bytes, as: name)) }
                let all = Set(new + [name(1, snapshot: 0), name(1, segment: 1)])
                #expect(Set(try first.objects(under: "generations").map(\.name)) == all)
                let old = [name(1, snapshot: 0), name(1, segment: 1), name(1, segment: 2)]
                for name in old { try first.remove(name) }
                let left = all.subtracting(old)
                #expect(Set(try first.objects(under: "generations").map(\.name)) == left)
                first.release()
                // Another one knows it too, but for what was removed, which it finds missing.
                let second = try store.storage()
                #expect(Set(try second.objects(under: "generations").map(\.name)).isSuperset(of: left))
            }
        }
    }
#endif
