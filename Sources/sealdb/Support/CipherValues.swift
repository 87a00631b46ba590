import SealedDB

/// Cipher settings as options and configuration files give them.
struct CipherValues: Sendable {
    var compatibility: Int?
    var pageSize: Int?
    var kdfIterations: Int?
    var kdfAlgorithm: CipherSettings.Algorithm?
    var hmacAlgorithm: CipherSettings.Algorithm?
    var usesHMAC: Bool?
    var plaintextHeaderSize: Int?
    var salt: String?

    /// The names of the options, and in a configuration file.
    static let names = [
        "compatibility", "page-size", "kdf-iterations", "kdf-algorithm", "hmac-algorithm", "hmac",
        "plaintext-header-size", "salt",
    ]

    /// - Returns: what is wrong with the value.
    mutating func set(_ name: String, _ value: String) -> String? {
        switch name {
        case "kdf-algorithm", "hmac-algorithm":
            guard let algorithm = CipherSettings.Algorithm(argument: value) else {
                return "\(name) takes sha1, sha256 or sha512."
            }
            if name == "kdf-algorithm" { kdfAlgorithm = algorithm } else { hmacAlgorithm = algorithm }
        case "hmac":
            guard let answer = ConfigurationFile.answer(value) else { return "hmac takes yes or no." }
            usesHMAC = answer
        case "salt":
            salt = value
        default:
            guard let number = Int(value) else { return "\(name) takes a number." }
            switch name {
            case "compatibility": compatibility = number
            case "page-size": pageSize = number
            case "kdf-iterations": kdfIterations = number
            default: plaintextHeaderSize = number
            }
        }
        return nil
    }

    /// What is wrong, beginning with a name.
    var problem: String? {
        if CipherSettings.Compatibility(rawValue: compatibility ?? 4) == nil {
            return "compatibility takes 1, 2, 3 or 4."
        }
        if salt != nil, saltBytes == nil { return "salt takes 32 hex digits." }
        return nil
    }

    private var saltBytes: [UInt8]? {
        guard let salt else { return nil }
        let digits = salt.compactMap(\.hexDigitValue)
        guard digits.count == 32, digits.count == salt.count else { return nil }
        return stride(from: 0, to: 32, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// `nil` if nothing was given. ``problem`` has been looked at before.
    var settings: CipherSettings? {
        let isGiven =
            compatibility != nil || pageSize != nil || kdfIterations != nil || kdfAlgorithm != nil
            || hmacAlgorithm != nil || usesHMAC != nil || plaintextHeaderSize != nil || salt != nil
        let version = CipherSettings.Compatibility(rawValue: compatibility ?? 4)
        guard isGiven, let version else { return nil }
        return CipherSettings(
            compatibility: version,
            pageSize: pageSize,
            kdfIterations: kdfIterations,
            kdfAlgorithm: kdfAlgorithm,
            hmacAlgorithm: hmacAlgorithm,
            usesHMAC: usesHMAC,
            plaintextHeaderSize: plaintextHeaderSize ?? 0,
            salt: saltBytes
        )
    }
}

/// Which cipher settings each store has.
struct CipherAssignment: Sendable {
    /// Those of options, which are for all stores.
    let given: CipherSettings?
    let configuration: ConfigurationFile?

    func settings(of store: StoreItem) -> CipherSettings {
        given ?? configuration?.section(for: store)?.cipher.settings ?? CipherSettings()
    }

    /// Text for the end of the line that reports that a store has new settings. Empty unless the configuration has others
    /// for it, with which it cannot be opened any more.
    func remark(onNew settings: CipherSettings, of store: StoreItem) -> String {
        guard let configuration, let section = configuration.section(for: store) else { return "" }
        let former = section.cipher.settings ?? CipherSettings()
        guard !former.isSame(as: settings) else { return "" }
        return "; \(configuration.path) says that it has \(former): change that before you use it"
    }

    /// As for a store whose settings are found out: a plaintext header cannot be.
    func knownSettings(of store: StoreItem) -> CipherSettings? {
        if let given { return given }
        let configured = settings(of: store)
        return configured.plaintextHeaderSize > 0 ? configured : nil
    }
}
