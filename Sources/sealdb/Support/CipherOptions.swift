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

    @Option(help: ArgumentHelp("Rounds of the key derivation (KDF) from a passphrase.", valueName: "number"))
    var kdfIterations: Int?

    @Option(help: "Hash of the key derivation: sha1, sha256 or sha512.")
    var kdfAlgorithm: CipherSettings.Algorithm?

    @Option(help: "Hash of the page authentication: sha1, sha256 or sha512.")
    var hmacAlgorithm: CipherSettings.Algorithm?

    @Flag(inversion: .prefixedNo, help: "Whether each page has a code (HMAC) by which a change of it is found out.")
    var hmac: Bool?

    @Option(help: ArgumentHelp("Bytes in the clear at the beginning of the file.", valueName: "bytes"))
    var plaintextHeaderSize: Int?

    @Option(help: ArgumentHelp("The 16 bytes that the file then lacks, in hex; for recover, too.", valueName: "hex"))
    var salt: String?

    func validate() throws {
        if let problem = values.problem { throw ValidationError("--\(problem)") }
    }

    private var values: CipherValues {
        CipherValues(
            compatibility: compatibility,
            pageSize: pageSize,
            kdfIterations: kdfIterations,
            kdfAlgorithm: kdfAlgorithm,
            hmacAlgorithm: hmacAlgorithm,
            usesHMAC: hmac,
            plaintextHeaderSize: plaintextHeaderSize,
            salt: salt
        )
    }

    /// The settings of each store: those of the options, else those of the configuration, else SQLCipher 4's.
    func assignment() throws -> CipherAssignment {
        try CipherAssignment(given: values.settings, configuration: ConfigurationInUse.file())
    }

    func settings(of store: String) throws -> CipherSettings {
        try assignment().settings(of: StoreItem(store))
    }

    /// The settings of a store such as a backup: if the configuration has no section for it, those of the store to which
    /// it belongs.
    func settings(of store: String, or owner: String) throws -> CipherSettings {
        let assignment = try assignment()
        let item = try StoreItem(store)
        let isKnown = assignment.configuration?.section(for: item) != nil
        return assignment.settings(of: isKnown ? item : try StoreItem(owner))
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
