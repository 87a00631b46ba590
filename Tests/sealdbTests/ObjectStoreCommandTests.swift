import Foundation
import Testing

/// Repositories in object stores, as the command takes them.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct ObjectStoreCommandTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeStore(journalMode: "wal")
    }

    @Test func usage() throws {
        let arguments = ["replicate", "db", "--to", "repo", "--key-file", "key", "--once", "--plain-http"]
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == 64 && outcome.error.contains("--plain-http is for"), "\(outcome.error)")
        try sandbox.fail(64, "snapshots", "s3://bucket//a")
        try sandbox.fail(64, "snapshots", "s3://bucket/a", "--bandwidth-limit", "0")
        try sandbox.fail(64, "restore", "--from", "s3://", "new")
        #expect(!sandbox.exists("repo") && !sandbox.exists("new"))
    }

    #if ObjectStores
        /// What cannot be reached is told, with what to do, and without what is secret.
        @Test func unreachable() throws {
            let environment = [
                "AWS_ENDPOINT_URL_S3": "http://store.example", "AWS_ACCESS_KEY_ID": "IDENTITY",
                "AWS_SECRET_ACCESS_KEY": "SECRET",
            ]
            let arguments = ["replicate", "db", "--to", "s3://bucket/a", "--key-file", "key", "--once"]
            let outcome = try sandbox.run([Tool.sealdb] + arguments, environment: environment)
            #expect(outcome.status == 78 && outcome.error.contains("--plain-http"), "\(outcome.error)")
            #expect(!outcome.error.contains("SECRET") && !outcome.error.contains("IDENTITY"))
        }
    #else
        @Test func withoutTheTrait() throws {
            for arguments in [
                ["replicate", "db", "--to", "s3://bucket/a", "--key-file", "key", "--once"],
                ["snapshots", "s3://bucket/a"], ["restore", "--from", "s3://bucket/a", "new"],
            ] {
                let outcome = try sandbox.run([Tool.sealdb] + arguments)
                #expect(outcome.status == 78 && outcome.error.contains("trait ObjectStores"), "\(outcome.error)")
            }
            #expect(!sandbox.exists("new"))
        }
    #endif
}
