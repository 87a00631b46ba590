// swift test --traits SQLCipher,ServiceLifecycle --filter ServiceTests
#if ServiceLifecycle
    import SealedDB
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import Testing

    @Suite(.hangLimit)
    struct ServiceTests {
        @Test func aGracefulShutdownWaitsForBlocks() async throws {
            let directory = try TemporaryDirectory()
            let configuration = Configuration(key: isEncrypting ? try .testing(1) : nil)
            let queue = try DatabaseQueue(path: directory.file("queue"), configuration: configuration)
            let pool = DatabasePool(path: directory.file("pool"), configuration: configuration)
            let services: [any DatabaseAccess & Service] = [queue, pool]
            for access in services {
                try await testGracefulShutdown { trigger in
                    let service = Task { try await access.run() }
                    let started = Gate()
                    let release = Gate()
                    let block = Task {
                        try await access.write { db in
                            started.open()
                            release.waitBlocking()
                            try db.executeUpdate("CREATE TABLE t (n)", values: nil)
                        }
                    }
                    await started.wait()
                    trigger.triggerGracefulShutdown()
                    release.open()
                    try await block.value
                    try await service.value
                    let error = await #expect(throws: DatabaseError.self) { try await access.read { _ in } }
                    #expect(error?.reason == .shutDown)
                }
            }
            #expect(directory.names == ["pool", "queue"])
        }
    }
#endif
