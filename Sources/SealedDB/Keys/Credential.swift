import Foundation

/// Credentials that systemd passes to a service as files. <https://systemd.io/CREDENTIALS/>
enum Credential {
    static func contents(
        _ name: String,
        directory: String? = getenv("CREDENTIALS_DIRECTORY").flatMap { String(validatingCString: $0) }
    ) throws(DatabaseError) -> SecretBytes {
        try Key.requireName(name, of: "credential")
        let isFileName = !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
        guard isFileName, !["", ".", ".."].contains(name) else {
            throw .malformedKey("The name of a credential is that of a file, without a slash.")
        }
        guard let directory, directory.begins(with: "/") else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .noSuchFile,
                message: """
                    There is no credential \(name): CREDENTIALS_DIRECTORY is not set, or not in UTF-8, so systemd has handed none to \
                    this process. Name it in the unit, with LoadCredential= or LoadCredentialEncrypted=. No key was \
                    used, and nothing was changed.
                    """
            )
        }
        return try SecretFile.contents(atPath: "\(directory)/\(name)", what: "credential", rule: .credential)
    }
}
