import ArgumentParser
import Foundation
import SealedDB
import Synchronization

/// The option that names the configuration file. A command that has it uses the configuration.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Configuration file, or /dev/null for none. Default: $SEALDB_CONFIG, else /etc/sealdb/sealdb.conf.",
            valueName: "file"
        ),
        completion: .file()
    )
    var config: String?

    func validate() throws {
        ConfigurationInUse.select(config)
    }
}

/// The configuration of this process. It is read once, when it is first asked for.
enum ConfigurationInUse {
    private struct State: Sendable {
        /// Whether the command uses a configuration.
        var isWanted = false
        var option: String?
        var result: Result<ConfigurationFile?, Failure>?
    }

    private static let state = Mutex(State())

    /// - Parameter option: the file that the command line names.
    static func select(_ option: String?) {
        state.withLock { $0 = State(isWanted: true, option: option) }
    }

    /// - Returns: `nil` if there is none, or the command uses none.
    static func file() throws(Failure) -> ConfigurationFile? { try result().get() }

    /// Call this before a command runs.
    /// - Throws: if there is a configuration that cannot be used.
    static func require() throws(Failure) {
        do throws(Failure) {
            _ = try file()
        } catch {
            JSONReport.beginIfExpected()
            throw error
        }
    }

    /// Only after ``require()``, which tells of a file that cannot be used.
    static var defaults: ConfigurationDefaults {
        guard case .success(let file?) = result() else { return ConfigurationDefaults() }
        return file.defaults
    }

    /// Whether sources of keys are in it. True if it cannot be used, too: that is told before the command runs.
    static var mayHaveKeys: Bool {
        guard case .success(let file) = result() else { return true }
        return file?.stores.contains { $0.key != nil } == true
    }

    private static func result() -> Result<ConfigurationFile?, Failure> {
        state.withLock { state in
            if let result = state.result { return result }
            let result: Result<ConfigurationFile?, Failure>
            do throws(Failure) {
                result = .success(try load(state))
            } catch {
                result = .failure(error)
            }
            state.result = result
            return result
        }
    }

    private static func load(_ state: State) throws(Failure) -> ConfigurationFile? {
        guard state.isWanted else { return nil }
        let (path, isOptional) = ConfigurationFile.path(
            option: state.option,
            ProcessInfo.processInfo.environment
        )
        return try ConfigurationFile.load(path, isOptional: isOptional)
    }
}
