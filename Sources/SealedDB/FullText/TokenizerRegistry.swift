/// A tokenizer that several connections may use at the same time. FMDB's `FMTokenizerDelegate`.
public typealias TokenizerDelegate = FTS5Tokenizer & Sendable

/// FMDB's way to use tokenizers: they are registered once for the process, and used by connections that install the
/// module. They serve FTS5 tables, `CREATE VIRTUAL TABLE … USING fts5(…, tokenize = 'fmdb key')`, while FMDB's serve
/// FTS3.
extension Database {
    private static let tokenizers = Guarded<[String: any TokenizerDelegate]>([:])

    /// Registers a tokenizer for all connections under the key `default`. It replaces an earlier one.
    public class func registerTokenizer(_ tokenizer: any TokenizerDelegate) {
        registerTokenizer(tokenizer, withKey: "default")
    }

    /// Registers a tokenizer for all connections under a key. It replaces an earlier one of that key, and is kept for
    /// the life of the process.
    public class func registerTokenizer(_ tokenizer: any TokenizerDelegate, withKey key: String) {
        tokenizers.withLock { $0[key] = tokenizer }
    }

    /// Lets FTS5 tables use the registered tokenizers under the module name `fmdb`.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func installTokenizerModule() -> Bool { installTokenizerModule(withName: "fmdb") }

    /// Lets FTS5 tables use the registered tokenizers under this module name. In the table's definition, the key
    /// follows the name; without one, the key is `default`. The module is installed again whenever the database is
    /// reopened.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func installTokenizerModule(withName name: String) -> Bool {
        do throws(DatabaseError) {
            try addTokenizer(name) { arguments in
                let key = arguments.first ?? "default"
                guard let tokenizer = Database.tokenizers.withLock({ $0[key] }) else {
                    throw DatabaseError(
                        extendedCode: SQLITE_ERROR,
                        reason: .misuse,
                        message:
                            "No tokenizer is registered with the key \(key): call Database.registerTokenizer first."
                    )
                }
                return tokenizer
            }
            return true
        } catch {
            return false
        }
    }

    /// Runs a command on the index of a full-text table: FMDB's form of ``perform(_:onTable:)``.
    /// - Parameters:
    ///   - command: one of the constants `kFTSCommand…`, or a text such as `merge=8,4`.
    ///   - tableName: the name of the full-text table.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func issueCommand(_ command: String, forTable tableName: String) -> Bool {
        guard let known = FullTextCommand(command) else {
            return succeeds { () throws(DatabaseError) in
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .misuse,
                    message: "\(command) is not a command for a full-text table. Nothing was done."
                )
            }
        }
        return unlessFailed { () throws(DatabaseError) in try perform(known, onTable: tableName) } != nil
    }
}
