/// What SQL may not do on a connection that uses keys. SQL must not let plaintext or a key out, or make the store one
/// that can no longer be opened.
struct GuardRules {
    /// Whether SQL may set keys and cipher settings.
    var allowsCipherStatements: Bool
    /// Whether files may be attached without a separate key, and `VACUUM INTO` be used. Such files get the key of main
    /// but not its cipher settings, so this is only safe with the default settings.
    var allowsInheritedKeys = true
    /// Whether the store has key slots. A file that gets the key of main would be one whose key is in no slots.
    var hasSlots = false

    /// The table in which a store remembers its key slots. If SQL could write to it, older slots would be taken for new ones.
    static let slotMemory = "sealdb_slots"

    /// Returns why SQL may not change a table or make something of it; `nil` if it may.
    ///
    /// What a store remembers of its slots is not removed on any connection with a key: another process may have made the
    /// slots since this one was opened, or their files may be away. Rows may be added where there are no slots, because a
    /// dump has some.
    func refusal(ofChanging table: String?, addsRows: Bool) -> String? {
        guard let table = table?.lowercased() else { return nil }
        // https://www.sqlite.org/dbpage.html
        if table == "sqlite_dbpage", hasSlots {
            return "SQL writes no pages of a store with key slots: among them is what it remembers of the slots."
        }
        guard table == GuardRules.slotMemory, hasSlots || !addsRows else { return nil }
        return "In \(GuardRules.slotMemory) a store remembers its key slots, and only `sealdb slots` changes that."
    }

    /// Returns why a pragma is refused; `nil` if it is allowed. A pragma without a value only reads.
    func refusal(ofPragma name: String, value: String?) -> String? {
        let name = name.lowercased()
        switch name {
        case "temp_store":
            guard let value, !["2", "memory"].contains(value.lowercased()) else { return nil }
            return "temp_store stays MEMORY: on disk, sorts and temporary tables would be in plaintext."
        case "temp_store_directory", "data_store_directory":
            return value == nil ? nil : "\(name) is not changed for a store with a key."
        case "writable_schema" where hasSlots:
            guard let value, !["0", "off", "no", "false", "reset"].contains(value.lowercased()) else { return nil }
            return """
                writable_schema stays off in a store with key slots: the store would forget its slots with the schema of \
                \(GuardRules.slotMemory). Load what needs it into a store without slots, and add them then.
                """
        case _ where allowsCipherStatements && !GuardRules.filePragmas.contains(name):
            return nil
        case _ where GuardRules.actingPragmas.contains(name) || name.hasPrefix("cipher_test"):
            return GuardRules.refusal(of: name)
        case _ where name.hasPrefix("cipher") || GuardRules.settingPragmas.contains(name):
            return value == nil ? nil : GuardRules.refusal(of: name)
        default: return nil
        }
    }

    /// Returns why a pragma is refused on every connection, even one without a key; `nil` if it is allowed. Such a
    /// pragma would affect all stores of the process.
    static func refusal(ofProcessPragma name: String, value: String?, isPermitted: Bool) -> String? {
        let name = name.lowercased()
        let isWrittenTo = filePragmas.contains(name)
        guard value != nil, isWrittenTo || !isPermitted else { return nil }
        guard isWrittenTo || processPragmas.contains(name) || processPrefixes.contains(where: name.hasPrefix) else {
            return nil
        }
        return """
            PRAGMA \(name) is refused, with or without a key: it is for the whole process, so that other stores could be \
            written as nothing opens them, without page authentication, or be told of in a log. Cipher settings belong into \
            the Configuration of each store; enableCipherLogging(_:) and EngineInfo set the rest.
            """
    }

    private static func refusal(of pragma: String) -> String {
        """
        PRAGMA \(pragma) is refused on a connection with a key: it can leave a file that nothing opens, or write to a \
        file in plaintext. Keys and cipher settings belong into the Configuration, and StoreMigration changes those of a \
        store.
        """
    }

    /// Returns why attaching a file is refused; `nil` if it is allowed.
    /// - Parameter filename: the name; `nil` if it is not a literal.
    func refusal(ofAttached filename: String?) -> String? {
        if let filename, filename.begins(with: "file:") {
            return "URI filenames are refused, because they can hold a key or switch encryption off. Give a path."
        }
        if filename == nil, !Engine.areURIsOff {
            return "Another part of this process has switched URI filenames on. Use attach(_:as:key:)."
        }
        if hasSlots, filename != "", filename != ":memory:" {
            return """
                The store has key slots, and an attached file or the target of VACUUM INTO would get its data key without any \
                slots: nobody could open it. Use attach(_:as:key:) or StoreBackup.
                """
        }
        guard !allowsInheritedKeys, filename != "", filename != ":memory:" else { return nil }
        return """
            The store has other cipher settings than SQLCipher's default ones, which an attached file or the target of \
            VACUUM INTO would not get: nothing would open it. Use attach(_:as:key:) or StoreBackup.
            """
    }

    /// Pragmas that also act without a value.
    private static let actingPragmas: Set = [
        "key", "hexkey", "textkey", "rekey", "hexrekey", "textrekey", "cipher_migrate",
    ]
    /// Pragmas that change cipher settings, besides those that begin with "cipher".
    private static let settingPragmas: Set = [
        "kdf_iter", "fast_kdf_iter", "rekey_kdf_iter", "rekey_cipher", "page_size",
    ]
    /// Pragmas that affect all connections of the process, besides those that begin with ``processPrefixes``.
    private static let processPragmas: Set = ["cipher_hmac_salt_mask", "cipher_memory_security"]
    private static let processPrefixes = ["cipher_default", "cipher_log", "cipher_test"]
    /// Pragmas that write to a file of any name.
    private static let filePragmas: Set = ["cipher_log", "cipher_profile"]
}
