#if ObjectStores
    import Foundation

    /// Where an object store is, and who asks: by the names that AWS's own tools use.
    struct ObjectStoreSettings: Sendable {
        /// With its scheme, and without a slash at its end.
        let endpoint: String
        /// Whether it is without TLS. Then it is on this machine, or that was asked for.
        let isPlain: Bool
        let isLoopback: Bool
        let region: String
        let credentials: Credentials
        /// A file of certificates that is used instead of the system's.
        let certificates: String?

        /// What must not get out. Printing one shows nothing of it.
        struct Credentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
            let accessKey: String
            let secretKey: String
            let sessionToken: String?

            var description: String { "credentials" }
            var debugDescription: String { description }
            var customMirror: Mirror { Mirror(self, children: []) }
        }

        private static let defaultRegion = "us-east-1"

        /// - Parameters:
        ///   - environment: its variables come before what files say.
        ///   - address: only for messages.
        init(
            _ environment: [String: String],
            for address: ObjectStoreAddress,
            allowsPlainHTTP: Bool
        ) throws(DatabaseError) {
            func variable(_ names: String...) -> String? {
                names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
            }
            let home = variable("HOME") ?? ""
            let profile = try ObjectStoreProfile(
                named: variable("AWS_PROFILE"),
                credentials: variable("AWS_SHARED_CREDENTIALS_FILE") ?? "\(home)/.aws/credentials",
                configuration: variable("AWS_CONFIG_FILE") ?? "\(home)/.aws/config"
            )
            let named = variable("AWS_REGION", "AWS_DEFAULT_REGION") ?? profile.value("region")
            let own = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") ?? profile.endpoint
            guard let region = named ?? (own == nil ? nil : ObjectStoreSettings.defaultRegion) else {
                throw .unusableAccess(
                    address,
                    "it is not known where it is. Set AWS_REGION, or AWS_ENDPOINT_URL_S3 for a store that is not Amazon's"
                )
            }
            guard ObjectStoreSettings.isRegion(region) else {
                throw .unusableAccess(address, "AWS_REGION is no name of a region")
            }
            self.region = region
            let domain = region.begins(with: "cn-") ? "amazonaws.com.cn" : "amazonaws.com"
            let endpoint = own ?? "https://s3.\(region).\(domain)"
            guard let parts = ObjectStoreSettings.parts(endpoint) else {
                throw .unusableAccess(
                    address,
                    "its endpoint is not https://HOST, with a port or a path if need be, and nothing else"
                )
            }
            (self.endpoint, isPlain, isLoopback) = parts
            guard !isPlain || isLoopback || allowsPlainHTTP else {
                throw .unusableAccess(
                    address,
                    """
                    its endpoint has no TLS and is on another machine, so that anybody on the way could read and change \
                    what is said. Give one with https://, or say that it may be (--plain-http)
                    """
                )
            }
            credentials = try ObjectStoreSettings.credentials(
                environment: (
                    variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")
                ),
                profile,
                address
            )
            certificates = variable("AWS_CA_BUNDLE") ?? profile.value("ca_bundle")
        }

        private static func credentials(
            environment: (access: String?, secret: String?, token: String?),
            _ profile: ObjectStoreProfile,
            _ address: ObjectStoreAddress
        ) throws(DatabaseError) -> Credentials {
            let found: Credentials
            if let access = environment.access, let secret = environment.secret {
                found = Credentials(accessKey: access, secretKey: secret, sessionToken: environment.token)
            } else if environment.access != nil || environment.secret != nil {
                throw .unusableAccess(
                    address,
                    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: one is missing"
                )
            } else if let access = profile.value("aws_access_key_id"),
                let secret = profile.value("aws_secret_access_key")
            {
                let token = profile.value("aws_session_token")
                found = Credentials(accessKey: access, secretKey: secret, sessionToken: token)
            } else {
                throw .unusableAccess(address, profile.whyWithoutKeys)
            }
            for part in [found.accessKey, found.secretKey, found.sessionToken ?? "-"] {
                // They go into lines of a request.
                guard !part.isEmpty, part.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
                    throw .unusableAccess(address, "its credentials have signs that no credentials have")
                }
            }
            return found
        }

        static func isRegion(_ text: String) -> Bool { text.wholeMatch(of: /[A-Za-z0-9-]{1,64}/) != nil }

        private static func parts(_ endpoint: String) -> (endpoint: String, isPlain: Bool, isLoopback: Bool)? {
            // Nothing that could be somebody's name and password, a query or a second line.
            guard endpoint.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
                let match = endpoint.wholeMatch(
                    of: /(?i)(https?):\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?((?:\/[a-z0-9._~-]+)*)\/?/
                )
            else { return nil }
            let scheme = match.1.lowercased()
            let host = String(match.2)
            let text = "\(scheme)://\(host)\(match.3 ?? "")\(match.4)"
            return (text, scheme == "http", isLoopback(host.lowercased()))
        }

        private static func isLoopback(_ host: String) -> Bool {
            if host == "localhost" { return true }
            var four = in_addr()
            if inet_pton(AF_INET, host, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
            return host == "[::1]"
        }
    }

    /// A profile in the files of AWS's tools.
    struct ObjectStoreProfile {
        private let name: String
        /// By section, and then by name; names below another one have that before a point.
        private let credentials: [String: [String: String]]
        private let configuration: [String: [String: String]]

        private static let mostBytes = 1 << 20

        init(named given: String?, credentials: String, configuration: String) throws(DatabaseError) {
            name = given ?? "default"
            self.credentials = try ObjectStoreProfile.sections(ofFile: credentials)
            self.configuration = try ObjectStoreProfile.sections(ofFile: configuration)
            let isThere = self.credentials[name] != nil || configurationSection != nil
            guard given == nil || isThere else {
                throw DatabaseError(
                    extendedCode: SQLITE_CANTOPEN,
                    reason: .unusableSettings,
                    message: "There is no profile \(name) (AWS_PROFILE) in \(credentials) or \(configuration)."
                )
            }
        }

        private var configurationSection: [String: String]? {
            configuration["profile \(name)"] ?? (name == "default" ? configuration[name] : nil)
        }

        func value(_ key: String) -> String? {
            [credentials[name]?[key], configurationSection?[key]].lazy.compactMap(\.self).first { !$0.isEmpty }
        }

        var endpoint: String? {
            if let services = value("services"), let own = configuration["services \(services)"]?["s3.endpoint_url"] {
                return own
            }
            return value("s3.endpoint_url") ?? value("endpoint_url")
        }

        var whyWithoutKeys: String {
            let others = ["role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"]
            guard let other = others.first(where: { value($0) != nil }) else {
                return """
                    there are no credentials for it. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in \
                    ~/.aws/credentials
                    """
            }
            return """
                the profile \(name) has its credentials from \(other), which is not followed here. Set what `aws configure \
                export-credentials --format env` prints
                """
        }

        /// A file that is not there has no sections.
        private static func sections(ofFile path: String) throws(DatabaseError) -> [String: [String: String]] {
            // It may be a link to where secrets are mounted.
            guard let resolved = FileSystem.resolve(path), let file = try FileReader(resolved) else { return [:] }
            let size = try file.size()
            guard size <= mostBytes, let bytes = try file.bytes(at: 0, count: Int(size)) else {
                throw DatabaseError(
                    extendedCode: SQLITE_CANTOPEN,
                    reason: .unusableSettings,
                    message: "\(path) is larger than any file of profiles, or was changed while it was read."
                )
            }
            return sections(of: String(decoding: bytes, as: UTF8.self))
        }

        static func sections(of text: String) -> [String: [String: String]] {
            var sections: [String: [String: String]] = [:]
            var section: String?
            var outer: String?
            for line in text.split(whereSeparator: \.isNewline) {
                let content = line.trimmingCharacters(in: .whitespaces)
                if content.isEmpty || content.hasPrefix("#") || content.hasPrefix(";") { continue }
                if content.hasPrefix("["), content.hasSuffix("]") {
                    let words = content.dropFirst().dropLast().split(whereSeparator: \.isWhitespace)
                    section = words.joined(separator: " ")
                    if let section, sections[section] == nil { sections[section] = [:] }
                    outer = nil
                    continue
                }
                guard let section, let sign = content.firstIndex(of: "=") else { continue }
                let name = content[..<sign].trimmingCharacters(in: .whitespaces).lowercased()
                let value = content[content.index(after: sign)...].trimmingCharacters(in: .whitespaces)
                if line.first?.isWhitespace == true {
                    if let outer { sections[section]?["\(outer).\(name)"] = value }
                } else {
                    outer = value.isEmpty ? name : nil
                    sections[section]?[name] = value
                }
            }
            return sections
        }
    }

    extension DatabaseError {
        static func unusableAccess(_ address: ObjectStoreAddress, _ problem: String) -> DatabaseError {
            DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .unusableSettings,
                message: "Cannot reach \(address): \(problem)."
            )
        }
    }
#endif
