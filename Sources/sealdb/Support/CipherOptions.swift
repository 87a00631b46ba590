import ArgumentParser
import SealedDB

extension CipherSettings.Algorithm: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(rawValue: argument.uppercased())
    }

    public static var allValueStrings: [String] { allCases.map { $0.rawValue.lowercased() } }
}

/// The settings of a store that does not have the defaults of SQLCipher 4.
struct CipherOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Defaults of SQLCipher 1, 2, 3 or 4.", valueName: "version"))
    var compatibility: Int?

    @Option(help: ArgumentHelp("Bytes per page.", valueName: "bytes"))
    var pageSize: Int?

    @Option(help: ArgumentHelp("Rounds of the key derivation.", valueName: "number"))
    var kdfIterations: Int?

    @Option(help: "Hash of the key derivation: sha1, sha256 or sha512.")
    var kdfAlgorithm: CipherSettings.Algorithm?

    @Option(help: "Hash of the page authentication: sha1, sha256 or sha512.")
    var hmacAlgorithm: CipherSettings.Algorithm?

    @Flag(inversion: .prefixedNo, help: "Whether pages are authenticated.")
    var hmac: Bool?

    @Option(help: ArgumentHelp("Bytes in the clear at the beginning of the file.", valueName: "bytes"))
    var plaintextHeaderSize: Int?

    @Option(help: ArgumentHelp("With such a header, and for recover: 32 hex digits.", valueName: "hex"))
    var salt: String?

    func validate() throws {
        _ = try CipherChoice(self).settings()
    }

    /// The settings from the options; those of SQLCipher 4 if no option was given.
    var settings: CipherSettings {
        get throws { try CipherChoice(self).settings() ?? .init() }
    }

    /// The settings from the options; `nil` if no option was given.
    var givenSettings: CipherSettings? {
        get throws { try CipherChoice(self).settings() }
    }
}

extension CipherSettings {
    /// Text for the end of the line that reports the work on a store. Empty if its pages have authentication codes.
    var remarkOnAuthentication: String {
        isAuthenticated ? "" : "; its pages were not authenticated, so that changes to them could not be found out"
    }
}

struct UnauthenticatedOptions: ParsableArguments {
    @Flag(
        help:
            "Try formats without page authentication too, such as SQLCipher 1. Trust them only if nobody else could write the file."
    )
    var allowUnauthenticated = false
}

/// The settings that a store is to be converted to.
struct NewCipherOptions: ParsableArguments {
    @Option(help: ArgumentHelp("New: bytes per page.", valueName: "bytes"))
    var newPageSize: Int?

    @Option(help: ArgumentHelp("New: rounds of the key derivation.", valueName: "number"))
    var newKdfIterations: Int?

    @Option(help: "New: hash of the key derivation.")
    var newKdfAlgorithm: CipherSettings.Algorithm?

    @Option(help: "New: hash of the page authentication.")
    var newHmacAlgorithm: CipherSettings.Algorithm?

    /// Always based on SQLCipher 4 and always authenticated: older formats can only be read.
    var settings: CipherSettings {
        CipherSettings(
            pageSize: newPageSize,
            kdfIterations: newKdfIterations,
            kdfAlgorithm: newKdfAlgorithm,
            hmacAlgorithm: newHmacAlgorithm
        )
    }
}

private struct CipherChoice {
    let options: CipherOptions

    init(_ options: CipherOptions) {
        self.options = options
    }

    func settings() throws -> CipherSettings? {
        let isGiven =
            options.compatibility != nil || options.pageSize != nil || options.kdfIterations != nil
            || options.kdfAlgorithm != nil || options.hmacAlgorithm != nil || options.hmac != nil
            || options.plaintextHeaderSize != nil || options.salt != nil
        guard isGiven else { return nil }
        guard let compatibility = CipherSettings.Compatibility(rawValue: options.compatibility ?? 4) else {
            throw ValidationError("--compatibility takes 1, 2, 3 or 4.")
        }
        return CipherSettings(
            compatibility: compatibility,
            pageSize: options.pageSize,
            kdfIterations: options.kdfIterations,
            kdfAlgorithm: options.kdfAlgorithm,
            hmacAlgorithm: options.hmacAlgorithm,
            usesHMAC: options.hmac,
            plaintextHeaderSize: options.plaintextHeaderSize ?? 0,
            salt: try options.salt.map(CipherChoice.bytes)
        )
    }

    private static func bytes(_ hex: String) throws -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == 32, digits.count == hex.count else {
            throw ValidationError("--salt takes 32 hex digits.")
        }
        return stride(from: 0, to: 32, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
