/// Checks on files that SQL attaches to a connection with a key.
extension Connection {
    /// Call it before compiling SQL that attaches a file, or writes one with `VACUUM INTO`. SQLCipher gives such a file
    /// the default settings of the process, so these must be SQLCipher 4's. They have to be checked beforehand, because
    /// the library does not see the target of `VACUUM INTO` again.
    func requireDefaultCipherSettings(_ text: SQLStatementText) throws(DatabaseError) {
        guard text.attachesFile, guardRules != nil || text.holdsKey, !statementGuard.allowsCipherStatements,
            !statementGuard.isSuspended
        else { return }
        let defaults = try trusted { () throws(DatabaseError) in try defaultCipherParameters() }
        guard defaults != CipherSettings.sqlCipher4.parameters else { return }
        throw .unusableSettings(
            """
            \(CipherParameters.areChanged(defaults)), which a file that SQL attaches, or the target of VACUUM INTO, would \
            get: its pages could be without authentication, or nothing would open it. Use StoreBackup for a copy.
            """
        )
    }

    /// Call it after SQL has attached a file to a database with a key. Detaches a file, and throws, if the file is in
    /// plaintext and the library did not attach it as plaintext, or if it has other settings than those with which the
    /// library would open it. This holds whatever the text of the SQL was taken for.
    func requireSealedAttachments() throws(DatabaseError) {
        guard let rules = guardRules, !rules.allowsCipherStatements, !statementGuard.isSuspended else { return }
        for (schema, path) in try attachedFiles() where !plaintextSchemas.contains(ExactText(name: schema)) {
            let parameters = try trusted { () throws(DatabaseError) in try cipherParameters(schema: schema) }
            guard parameters != CipherSettings.sqlCipher4.parameters else { continue }
            statementGuard.unsafeSchema = schema
            let isDetached = detachUnsafeSchema()
            let fault = parameters.map { "with other cipher settings (\($0.settings()))" } ?? "without a key"
            throw DatabaseError(
                extendedCode: SQLITE_AUTH,
                reason: .notAllowed,
                message: """
                    \(path) was attached \(fault) to a database with a key. \
                    \(isDetached ? "It was detached again." : "Close the database; nothing else is executed until then.") \
                    A file that is empty was made by the statement: delete it. Use attach(_:as:key:).
                    """
            )
        }
    }

    /// Call it after SQL may have detached files. What was noted for a detached file must not apply to the next file
    /// that gets the same schema name.
    func forgetDetachedFiles() throws(DatabaseError) {
        guard !plaintextSchemas.isEmpty || usageLocks.count > 1 else { return }
        let schemas = try trusted { () throws(DatabaseError) in
            Set(try texts("PRAGMA database_list", column: 1).map { ExactText(name: $0) })
        }
        plaintextSchemas.formIntersection(schemas)
        for (schema, lock) in usageLocks where !schemas.contains(schema) {
            lock.release()
            usageLocks[schema] = nil
        }
    }

    /// Call it before anything is compiled: while an attached file that is not sealed could not be detached, nothing
    /// but ROLLBACK and DETACH may run, so that nothing is written to that file.
    func requireSafeSchemas(_ text: SQLStatementText) throws(DatabaseError) {
        guard let schema = statementGuard.unsafeSchema, !["rollback", "detach"].contains(text.verb ?? ""),
            !detachUnsafeSchema()
        else { return }
        throw .notAllowed(
            "\(schema) is not sealed as it has to be, and cannot be detached within the transaction. Roll back."
        )
    }

    private func detachUnsafeSchema() -> Bool {
        guard let schema = statementGuard.unsafeSchema else { return true }
        do throws(DatabaseError) {
            try trusted { () throws(DatabaseError) in try run("DETACH \(schema.quotedIdentifier)") }
        } catch {
            // This is tried again before the next statement.
            return false
        }
        statementGuard.unsafeSchema = nil
        return true
    }
}
