/// A tokenizer that every connection may use at the same time. FMDB's `FMTokenizerDelegate`.
public typealias TokenizerDelegate = FTS5Tokenizer & Sendable

/// FMDB's way to tokenizers: registered once for the process, and used by the connections that install the module. They
/// serve FTS5 tables, `CREATE VIRTUAL TABLE … USING fts5(…, tokenize = 'fmdb key')`, where FMDB's serve FTS3.
extension Database {
    private static let tokenizers = Guarded<[String: any TokenizerDelegate]>([:])

    /// Registers a tokenizer for all connections, under the key `default`, or replaces the one there.
    public class func registerTokenizer(_ tokenizer: any TokenizerDelegate) {
        registerTokenizer(tokenizer, withKey: "default")
    }

    /// Registers a tokenizer for all connections, or replaces the one of this key. It is kept as long as the process lives.
    public class func registerTokenizer(_ tokenizer: any TokenizerDelegate, withKey key: String) {
        tokenizers.withLock { $0[key] = tokenizer }
    }

    /// Lets FTS5 tables use the registered tokenizers under the module name `fmdb`.
    /// - Returns: false on failure; see ``lastError()``.
    @discardableResult
    public func installTokenizerModule() -> Bool { installTokenizerModule(withName: "fmdb") }

    /// Lets FTS5 tables use the registered tokenizers under this module name; the key follows it, `default` if none does.
    /// It comes back when the database is opened again.
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

    /// Has a full-text table work on its index, FMDB's form of ``perform(_:onTable:)``.
    /// - Parameter command: one of the constants `kFTSCommand…`, or such as `merge=8,4`.
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
