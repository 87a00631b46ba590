import Foundation
import SealedDB

/// What stands in `[defaults]`.
struct ConfigurationDefaults: Sendable {
    var lockWait: Double?
    var jobs: Int?
    var continueOnError: Bool?
    var progress: ProgressMode?
    var maxRate: Double?
    /// Where `create`, `encrypt`, `rotate`, `verify` and `backup` note when they were done, for `status`.
    var stateDirectory: String?
    var limits = AgeLimits()
}

/// After how many seconds something is due.
struct AgeLimits: Sendable {
    var rotation: Double?
    var verification: Double?
    var backup: Double?

    static let names = ["rotate-after", "verify-after", "backup-after"]

    var isEmpty: Bool { rotation == nil && verification == nil && backup == nil }

    /// These, and those of the others where there are none.
    func completed(by others: AgeLimits) -> AgeLimits {
        AgeLimits(
            rotation: rotation ?? others.rotation,
            verification: verification ?? others.verification,
            backup: backup ?? others.backup
        )
    }

    /// - Returns: what is wrong with the value.
    mutating func set(_ name: String, _ value: String) -> String? {
        let units: [Unicode.Scalar: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800]
        guard let unit = value.unicodeScalars.last.flatMap({ units[$0] }),
            let count = Int(value.withoutLast(bytes: 1)), (1...1_000_000).contains(count)
        else { return "\(name) takes a duration such as 36h, 90d or 4w." }
        let seconds = Double(count) * unit
        switch name {
        case "rotate-after": rotation = seconds
        case "verify-after": verification = seconds
        default: backup = seconds
        }
        return nil
    }
}

/// What stands in `[store "PATTERN"]`.
struct StoreSection: Sendable {
    let pattern: PathPattern
    let text: ConfigurationText.Section
    var key: KeySourceText?
    var cipher = CipherValues()
    var limits = AgeLimits()
}

extension ConfigurationDefaults {
    static let names =
        ["lock-wait", "jobs", "continue-on-error", "progress", "max-rate", "state-directory"] + AgeLimits.names

    /// - Returns: what is wrong with the entry.
    mutating func set(_ entry: ConfigurationText.Entry) -> String? {
        let value = entry.value
        switch entry.name {
        case "lock-wait":
            guard let number = Double(value), LockOptions.range.contains(number) else {
                return "lock-wait takes seconds, from 0 to 86400."
            }
            lockWait = number
        case "jobs":
            guard let number = Int(value), BatchOptions.jobRange.contains(number) else {
                return "jobs takes a number from 1 to 64."
            }
            jobs = number
        case "continue-on-error":
            guard let answer = ConfigurationFile.answer(value) else { return "continue-on-error takes yes or no." }
            continueOnError = answer
        case "progress":
            // Lines of JSON are for the one program that asks for them.
            guard let mode = ProgressMode(rawValue: value), mode != .json else {
                return "progress takes auto, always or never."
            }
            progress = mode
        case "max-rate":
            guard let number = Double(value), RotationOptions.rateRange.contains(number) else {
                return "max-rate takes megabytes in a second, from 0.001 to 1000000."
            }
            maxRate = number
        case "state-directory":
            guard value.begins(with: "/") else { return "state-directory takes an absolute path." }
            stateDirectory = value
        default:
            return limits.set(entry.name, value)
        }
        return nil
    }
}

extension StoreSection {
    static let names = KeySourceText.kinds + CipherValues.names + AgeLimits.names

    /// - Returns: what is wrong with the entry.
    mutating func set(_ entry: ConfigurationText.Entry) -> String? {
        if AgeLimits.names.contains(entry.name) { return limits.set(entry.name, entry.value) }
        if CipherValues.names.contains(entry.name) { return cipher.set(entry.name, entry.value) }
        guard key == nil else { return "The section has two sources of a key: give one." }
        do throws(Failure) {
            let source = try KeySourceText("\(entry.name):\(entry.value)")
            try StoreSection.check(source)
            key = source
            return nil
        } catch {
            return error.message
        }
    }

    /// Refuses a source that could not be right for any store, or would depend on the working directory.
    private static func check(_ source: KeySourceText) throws(Failure) {
        let file: String?
        switch try source.origin(for: StoreItem("/store")) {
        case .ring(let path), .source(.keyFile(let path)), .source(.passphraseFile(let path)): file = path
        case .source(.keyCredential), .source(.passphraseCredential): file = nil
        default: return
        }
        do throws(DatabaseError) {
            try Key.requireName(source.value, of: "key file")
        } catch {
            throw Failure(.configuration, "The file never holds a key. Take another one, and name a file that has it.")
        }
        guard file?.begins(with: "/") != false else {
            throw Failure(.configuration, "\(source.kind) takes an absolute path, which may begin with {dir}.")
        }
    }
}
