internal import SQLiteEngine

/// A tokenizer and its name, which the database registers on each connection that it opens.
struct FTS5Module {
    let name: String
    let make: (_ arguments: [String]) throws -> any FTS5Tokenizer

    /// https://www.sqlite.org/fts5.html#extending_fts5
    func register(on connection: Connection) throws(DatabaseError) {
        guard let handle = connection.handle else { throw .notOpen }
        try connection.requireNoHook()
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .misuse,
                message: "The name of a tokenizer is not empty and has no NUL. Nothing was changed."
            )
        }
        guard let api = sealeddb_fts5_api(handle), let create = api.pointee.xCreateTokenizer else {
            throw try unreachable(connection, connection.error())
        }
        var methods = FTS5Box.methods
        let box = Unmanaged.passRetained(FTS5Box(self, connection))
        let code = create(api, name, box.toOpaque(), &methods) { Unmanaged<FTS5Box>.fromOpaque($0!).release() }
        if code != SQLITE_OK { box.release() }
        try connection.check(code)
    }

    /// FTS5 gives its API to a query only, for which newer engines read the file. If they cannot, a pragma, for which
    /// they do not, tells whether there is an FTS5.
    private func unreachable(
        _ connection: Connection,
        _ failure: DatabaseError
    ) throws(DatabaseError) -> DatabaseError {
        var isThere = false
        if failure.code == SQLITE_NOTADB { isThere = try connection.texts("PRAGMA function_list").contains("fts5") }
        return DatabaseError(
            extendedCode: isThere ? failure.extendedCode : SQLITE_ERROR,
            reason: isThere ? failure.reason : .unsupported,
            message: "FTS5 cannot be reached: \(failure.message). The tokenizer was not added."
        )
    }
}

/// The object that FTS5 holds for a tokenizer. The C functions that FTS5 calls must not throw.
private final class FTS5Box {
    let module: FTS5Module
    /// Not retained: tokenizers run only within statements, which keep the connection alive.
    unowned(unsafe) let connection: Connection

    init(_ module: FTS5Module, _ connection: Connection) {
        self.module = module
        self.connection = connection
    }

    /// The tokenizer of one table.
    private final class Instance {
        let tokenizer: any FTS5Tokenizer
        let box: FTS5Box

        init(_ tokenizer: any FTS5Tokenizer, _ box: FTS5Box) {
            self.tokenizer = tokenizer
            self.box = box
        }
    }

    private struct Stopped: Error {}

    /// Throws unless the range lies in the text, because `highlight` would read beyond the text.
    private static func requireRange(_ range: Range<Int>, in text: UnsafeRawBufferPointer) throws {
        guard range.lowerBound < 0 || range.upperBound > text.count else { return }
        throw DatabaseError(
            extendedCode: SQLITE_RANGE,
            reason: .misuse,
            message: "The tokenizer gave the bytes \(range) of a text that has \(text.count)."
        )
    }

    private func keep(_ error: any Error) -> Int32 {
        let message = "The tokenizer \(module.name) failed, and the statement with it; it changed nothing."
        return connection.thrown.keep(error, message: message)
    }

    static let methods = fts5_tokenizer(
        xCreate: { context, arguments, count, result in
            let box = Unmanaged<FTS5Box>.fromOpaque(context!).takeUnretainedValue()
            let arguments = (0..<Int(count)).map { String(cString: arguments![$0]!) }
            do {
                let instance = Instance(try box.module.make(arguments), box)
                result!.pointee = OpaquePointer(Unmanaged.passRetained(instance).toOpaque())
                return SQLITE_OK
            } catch {
                return box.keep(error)
            }
        },
        xDelete: { Unmanaged<Instance>.fromOpaque(UnsafeRawPointer($0!)).release() },
        xTokenize: { pointer, context, flags, text, count, receive in
            let instance = Unmanaged<Instance>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
            let bytes = UnsafeRawBufferPointer(start: text, count: text == nil ? 0 : Int(count))
            var code = SQLITE_OK
            do {
                try instance.tokenizer.tokenize(
                    bytes.assumingMemoryBound(to: UInt8.self),
                    for: TokenizationPurpose(flags: flags),
                    into: TokenSink { token, range, isColocated in
                        // Throws again if the tokenizer continues although it was stopped.
                        guard code == SQLITE_OK else { throw Stopped() }
                        try requireRange(range, in: bytes)
                        code = token.withMemoryRebound(to: CChar.self) { token in
                            receive!(
                                context,
                                isColocated ? FTS5_TOKEN_COLOCATED : 0,
                                token.baseAddress,
                                Int32(clamping: token.count),
                                Int32(range.lowerBound),
                                Int32(range.upperBound)
                            )
                        }
                        guard code == SQLITE_OK else { throw Stopped() }
                    }
                )
                if code == SQLITE_OK, instance.box.connection.hasLostTransaction { throw DatabaseError.lostTransaction }
            } catch {
                return code == SQLITE_OK ? instance.box.keep(error) : code
            }
            return code
        }
    )
}
