import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct ObjectStoreAddressTests {
    @Test func addresses() throws {
        #expect(try ObjectStoreAddress("/var/s3") == nil)
        #expect(try ObjectStoreAddress("./s3://bucket") == nil)
        let whole = try #require(try ObjectStoreAddress("s3://bucket"))
        #expect(whole.bucket == "bucket" && whole.prefix.isEmpty && whole.description == "s3://bucket")
        let part = try #require(try ObjectStoreAddress("S3://my.bucket/a/b-c_d/"))
        #expect(part.bucket == "my.bucket" && part.prefix == "a/b-c_d/" && part.description == "s3://my.bucket/a/b-c_d")
    }

    @Test(arguments: [
        "s3://", "s3:///a", "s3://a//b", "s3://a/../b", "s3://a/b c", "s3://a/ä", "s3://a/%41", "s3://a?b",
    ])
    func none(_ text: String) {
        #expect(throws: DatabaseError.self) { try ObjectStoreAddress(text) }
    }

    #if !ObjectStores
        @Test func withoutTheTrait() {
            let error = #expect(throws: DatabaseError.self) {
                try RepositoryStatus.of(directory: "s3://bucket/a", verifies: false)
            }
            #expect(error?.reason == .unsupported)
            #expect(error?.message.contains("trait ObjectStores") == true)
        }
    #endif
}

#if ObjectStores
    /// Where an object store is, and who asks.
    @Suite(.hangLimit)
    struct ObjectStoreSettingsTests {
        private let directory: TemporaryDirectory

        init() throws { directory = try TemporaryDirectory() }

        private func settings(
            _ environment: [String: String],
            allowsPlainHTTP: Bool = false
        ) throws -> ObjectStoreSettings {
            let address = try #require(try ObjectStoreAddress("s3://bucket"))
            let home = ["HOME": directory.path]
            return try ObjectStoreSettings(
                environment.merging(home) { own, _ in own },
                for: address,
                allowsPlainHTTP: allowsPlainHTTP
            )
        }

        private let keys = ["AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "SECRET"]

        private func problem(_ environment: [String: String]) -> String? {
            do {
                _ = try settings(environment)
                return nil
            } catch { return (error as? DatabaseError)?.message }
        }

        @Test func variables() throws {
            var environment = keys.merging(["AWS_DEFAULT_REGION": "eu-central-1"]) { own, _ in own }
            let amazon = try settings(environment)
            #expect(amazon.endpoint == "https://s3.eu-central-1.amazonaws.com" && amazon.region == "eu-central-1")
            #expect(amazon.credentials.secretKey == "SECRET" && amazon.credentials.sessionToken == nil)
            environment["AWS_REGION"] = "cn-north-1"
            #expect(try settings(environment).endpoint == "https://s3.cn-north-1.amazonaws.com.cn")
            environment["AWS_ENDPOINT_URL"] = "https://general.example"
            #expect(try settings(environment).endpoint == "https://general.example")
            environment["AWS_ENDPOINT_URL_S3"] = "HTTPS://store.example:9000/s3/"
            environment["AWS_SESSION_TOKEN"] = "TOKEN"
            let own = try settings(environment)
            #expect(own.endpoint == "https://store.example:9000/s3" && !own.isPlain && !own.isLoopback)
            #expect(own.credentials.sessionToken == "TOKEN")
            var shown = ""
            dump(own, to: &shown)
            shown += "\(own) \(String(reflecting: own))"
            for secret in ["SECRET", "TOKEN"] { #expect(!shown.contains(secret)) }
            #expect(problem(keys)?.contains("AWS_REGION") == true)
            #expect(problem(["AWS_REGION": "a"])?.contains("no credentials") == true)
            #expect(problem(["AWS_REGION": "a", "AWS_ACCESS_KEY_ID": "ID"])?.contains("one is missing") == true)
            #expect(problem(["AWS_REGION": "a/b"].merging(keys) { own, _ in own })?.contains("AWS_REGION") == true)
            let line = ["AWS_REGION": "a", "AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "SECRET\nX: y"]
            #expect(problem(line)?.contains("SECRET") == false)
        }

        @Test(arguments: [
            "http://127.0.0.1", "http://127.1.2.3:8080", "http://localhost:8080", "http://LOCALHOST", "http://[::1]:1",
        ])
        func loopback(_ endpoint: String) throws {
            let found = try settings(keys.merging(["AWS_ENDPOINT_URL_S3": endpoint]) { own, _ in own })
            #expect(found.isPlain && found.isLoopback && found.region == "us-east-1")
        }

        @Test(arguments: [
            "http://127.0.0.1.example", "http://127.example", "http://localhost.example", "http://10.0.0.1",
            "http://[::2]",
            "http://store",
        ])
        func withoutTLS(_ endpoint: String) throws {
            let environment = keys.merging(["AWS_ENDPOINT_URL_S3": endpoint]) { own, _ in own }
            #expect(problem(environment)?.contains("--plain-http") == true)
            let found = try settings(environment, allowsPlainHTTP: true)
            #expect(found.isPlain && !found.isLoopback)
        }

        @Test(arguments: [
            "https://", "ftp://a", "a", "https://user:word@a", "http://127.0.0.1@a", "https://a?b", "https://a#b",
            "https://a/b c", "https://a:1:2", "https://a\nb", "file:///etc/passwd",
        ])
        func noEndpoint(_ endpoint: String) {
            let environment = keys.merging(["AWS_ENDPOINT_URL_S3": endpoint]) { own, _ in own }
            #expect(problem(environment)?.contains("endpoint") == true)
        }

        @Test func profiles() throws {
            try FileManager.default.createDirectory(atPath: directory.file(".aws"), withIntermediateDirectories: true)
            try """
            # A comment
            [default]
            aws_access_key_id = ONE
            aws_secret_access_key=SECRET=1
            [work]
              ; another
            aws_access_key_id = TWO
            aws_secret_access_key = SECRET2
            aws_session_token = TOKEN2
            """.write(toFile: directory.file(".aws/credentials"), atomically: true, encoding: .utf8)
            try """
            [default]
            region = eu-west-1
            [profile work]
            region = eu-west-2
            services = mine
            [profile plain]
            endpoint_url = https://plain.example
            role_arn = arn:something
            [services mine]
            dynamodb =
              endpoint_url = https://other.example
            s3 =
              endpoint_url = https://mine.example
            """.write(toFile: directory.file(".aws/config"), atomically: true, encoding: .utf8)
            let first = try settings([:])
            #expect(first.credentials.accessKey == "ONE" && first.credentials.secretKey == "SECRET=1")
            #expect(first.endpoint == "https://s3.eu-west-1.amazonaws.com")
            let second = try settings(["AWS_PROFILE": "work"])
            #expect(second.credentials.accessKey == "TWO" && second.credentials.sessionToken == "TOKEN2")
            #expect(second.region == "eu-west-2" && second.endpoint == "https://mine.example")
            #expect(problem(["AWS_PROFILE": "plain"])?.contains("role_arn") == true)
            #expect(problem(["AWS_PROFILE": "absent"])?.contains("no profile absent") == true)
            #expect(try settings(keys).credentials.accessKey == "ID")
            let moved = try settings([
                "AWS_SHARED_CREDENTIALS_FILE": directory.file(".aws/credentials"), "HOME": "/nonexistent",
                "AWS_REGION": "x",
            ])
            #expect(moved.credentials.accessKey == "ONE")
        }
    }
#endif
