/// Facts about the SQLite library in a process, and the checks whether it may be trusted with keys.
///
/// The library need not be the very one that the program was built with: an update replaces libsqlcipher, and must lock
/// nobody out. It must encrypt, all its functions must come from one shared object, and it must have every function
/// that is called here. How it treats a key and the cipher settings is checked again for each store.
struct EngineFacts {
    /// Whether the library reports that it was compiled with `SQLITE_HAS_CODEC`.
    var hasCodec: Bool
    /// The version as a number, such as 3046001.
    var versionNumber: Int32
    var sourceID: String
    /// The oldest version that has all functions which this build calls.
    var oldestVersionNumber: Int32
    /// The shared objects that functions come from; the path is `nil` if unknown.
    var objects: [(function: String, path: String?)]

    /// One condition that must hold before a key is given to the engine.
    struct Check {
        let name: String
        let passed: Bool
        let detail: String
    }

    /// - Parameter cipherVersion: opens a database in memory with a key, and returns SQLCipher's version. It is only
    ///   called if all other checks pass: with the wrong library loaded first, `sqlite3_key` would crash.
    func checks(cipherVersion: () -> String?) -> [Check] {
        var checks = [codecCheck, versionCheck, objectCheck]
        checks.append(
            checks.allSatisfy(\.passed)
                ? EngineFacts.cipherCheck(cipherVersion())
                : Check(name: "cipher_version", passed: false, detail: "not asked")
        )
        return checks
    }

    private var codecCheck: Check {
        Check(
            name: "codec",
            passed: hasCodec,
            detail: hasCodec ? "HAS_CODEC is compiled in" : "the loaded SQLite has no codec (HAS_CODEC)"
        )
    }

    private var versionCheck: Check {
        let isNewEnough = versionNumber >= oldestVersionNumber
        let version = EngineFacts.name(ofVersion: versionNumber)
        return Check(
            name: "version",
            passed: isNewEnough,
            detail: isNewEnough
                ? "SQLite \(version), \(sourceID)"
                : "SQLite \(version) is loaded, and this build needs \(EngineFacts.name(ofVersion: oldestVersionNumber))"
                    + " or later"
        )
    }

    private var objectCheck: Check {
        let paths = Set(objects.map { $0.path ?? "" })
        let isOne = paths.count == 1 && paths != [""]
        let origins = objects.map { "\($0.function) from \($0.path ?? "an unknown object")" }
        return Check(
            name: "object",
            passed: isOne,
            detail: isOne ? objects[0].path! : "not one library: \(origins.joined(separator: ", "))"
        )
    }

    private static func cipherCheck(_ version: String?) -> Check {
        guard let version else {
            return Check(name: "cipher_version", passed: false, detail: "PRAGMA cipher_version has no answer")
        }
        let numbers = version.prefix { $0 != " " }.split(separator: ".").map { Int($0) ?? -1 }
        let isNewEnough = numbers.count >= 2 && !numbers.lexicographicallyPrecedes([4, 5])
        return Check(
            name: "cipher_version",
            passed: isNewEnough,
            detail: isNewEnough ? version : "SQLCipher \(version) is loaded, and 4.5 or later is needed"
        )
    }

    /// Formats a version number: 3046001 is 3.46.1. https://www.sqlite.org/c3ref/c_source_id.html
    private static func name(ofVersion number: Int32) -> String {
        "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
    }
}
