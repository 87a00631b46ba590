internal import SQLiteEngine

/// Cuts text into the tokens that an FTS5 table indexes and looks up.
///
/// A value is made for each table and connection, see ``Database/addTokenizer(_:make:)``. It must give the same tokens for
/// the same text for ever, because the index holds them; after a change `rebuild` the table. It must not use the table
/// that it works for. https://www.sqlite.org/fts5.html#custom_tokenizers
public protocol FTS5Tokenizer {
    /// Passes on the tokens of a text, in their order. What it throws fails the statement, and reaches its caller.
    /// - Parameter text: UTF-8 as it is stored, so it may be invalid; only lent for the call.
    func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws
}

/// What a text is cut into tokens for. https://www.sqlite.org/fts5.html#custom_tokenizers
public enum TokenizationPurpose: Sendable, Hashable {
    /// To be indexed, or taken out of the index.
    case document
    /// To be looked up.
    case query
    /// To be looked up as the beginning of a word: the query's word is followed by `*`.
    case prefixQuery
    /// For an auxiliary function, such as `highlight`.
    case auxiliary

    init(flags: Int32) {
        self =
            if flags & FTS5_TOKENIZE_PREFIX != 0 {
                .prefixQuery
            } else if flags & FTS5_TOKENIZE_QUERY != 0 {
                .query
            } else if flags & FTS5_TOKENIZE_AUX != 0 {
                .auxiliary
            } else {
                .document
            }
    }
}

/// Takes the tokens of a text. It is only lent for the call: it cannot be copied or kept.
public struct TokenSink: ~Copyable {
    typealias Receive =
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, Int32, Int32, Int32
        ) -> Int32

    fileprivate struct Stopped: Error {}

    private let receive: Receive
    private let context: UnsafeMutableRawPointer?
    private let textCount: Int
    /// FTS5's answer to the last token.
    private let code: UnsafeMutablePointer<Int32>

    fileprivate init(
        _ receive: @escaping Receive,
        _ context: UnsafeMutableRawPointer?,
        textCount: Int,
        code: UnsafeMutablePointer<Int32>
    ) {
        self.receive = receive
        self.context = context
        self.textCount = textCount
        self.code = code
    }

    /// Passes a token on.
    /// - Parameters:
    ///   - token: of any length.
    ///   - range: the bytes of the text that it stands for, which `highlight` and `snippet` mark.
    ///   - isColocated: whether it stands at the place of the token before it, as a synonym does.
    /// - Throws: if FTS5 wants no more, which the tokenizer hands on; a ``DatabaseError`` if the range is not in the text.
    public func append(_ token: String, range: Range<Int>, isColocated: Bool = false) throws {
        var token = token
        try token.withUTF8 { try append($0, range: range, isColocated: isColocated) }
    }

    /// Passes a token on, as its UTF-8.
    public func append(_ token: UnsafeBufferPointer<UInt8>, range: Range<Int>, isColocated: Bool = false) throws {
        guard code.pointee == SQLITE_OK else { throw Stopped() }
        guard range.lowerBound >= 0, range.upperBound <= textCount else {
            throw DatabaseError(
                extendedCode: SQLITE_RANGE,
                reason: .misuse,
                message: "The tokenizer gave the bytes \(range) of a text that has \(textCount)."
            )
        }
        code.pointee = token.withMemoryRebound(to: CChar.self) { token in
            receive(
                context,
                isColocated ? FTS5_TOKEN_COLOCATED : 0,
                token.baseAddress,
                Int32(clamping: token.count),
                Int32(range.lowerBound),
                Int32(range.upperBound)
            )
        }
        guard code.pointee == SQLITE_OK else { throw Stopped() }
    }
}

/// A tokenizer under its name, as it comes back with every opening.
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
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unsupported,
                message: "FTS5 cannot be reached: \(connection.error().message). The tokenizer was not added."
            )
        }
        var methods = FTS5Box.methods
        let box = Unmanaged.passRetained(FTS5Box(self, connection))
        let code = create(api, name, box.toOpaque(), &methods) { Unmanaged<FTS5Box>.fromOpaque($0!).release() }
        if code != SQLITE_OK { box.release() }
        try connection.check(code)
    }
}

/// What FTS5 keeps of a tokenizer. Nothing may be thrown through the C functions that it calls.
private final class FTS5Box {
    let module: FTS5Module
    private weak var connection: Connection?

    init(_ module: FTS5Module, _ connection: Connection) {
        self.module = module
        self.connection = connection
    }

    /// One table's.
    private final class Instance {
        let tokenizer: any FTS5Tokenizer
        let box: FTS5Box

        init(_ tokenizer: any FTS5Tokenizer, _ box: FTS5Box) {
            self.tokenizer = tokenizer
            self.box = box
        }
    }

    private func keep(_ error: any Error) -> Int32 {
        let message = "The tokenizer \(module.name) failed, and the statement with it; it changed nothing."
        return connection?.thrown.keep(error, message: message) ?? SQLITE_ERROR
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
                try withUnsafeMutablePointer(to: &code) { code in
                    try instance.tokenizer.tokenize(
                        bytes.assumingMemoryBound(to: UInt8.self),
                        for: TokenizationPurpose(flags: flags),
                        into: TokenSink(receive!, context, textCount: bytes.count, code: code)
                    )
                }
            } catch {
                return code == SQLITE_OK ? instance.box.keep(error) : code
            }
            return code
        }
    )
}
