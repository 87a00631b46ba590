internal import SQLiteEngine

/// Splits text into the tokens that an FTS5 table indexes and searches.
///
/// One value is made for each table and connection; see ``Database/addTokenizer(_:make:)``. It must always give the
/// same tokens for the same text, because the index contains them; if the tokens change, `rebuild` the table. It must
/// not use the table that it works for. https://www.sqlite.org/fts5.html#custom_tokenizers
public protocol FTS5Tokenizer {
    /// Passes the tokens of a text to `tokens`, in their order. If it throws, the statement fails, and the caller of
    /// the statement gets the error.
    /// - Parameters:
    ///   - text: the text in UTF-8 as it is stored, so it may be invalid. It is only lent for the call.
    ///   - purpose: why the text is split.
    ///   - tokens: takes the tokens.
    /// - Throws: whatever keeps the text from being split, and what `tokens` throws.
    func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws
}

/// The reason why a text is split into tokens. https://www.sqlite.org/fts5.html#custom_tokenizers
public enum TokenizationPurpose: Sendable, Hashable {
    /// To add the text to the index, or to remove it.
    case document
    /// To search for the text.
    case query
    /// To search for the text as a prefix: in the query, `*` follows it.
    case prefixQuery
    /// To run an auxiliary function, such as `highlight`.
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

/// Receives the tokens of a text. It is only lent for the call: it cannot be copied or kept.
public struct TokenSink: ~Copyable {
    typealias Receive = (_ token: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, _ isColocated: Bool) throws -> Void

    private let receive: Receive

    init(_ receive: @escaping Receive) {
        self.receive = receive
    }

    /// Passes on a token.
    /// - Parameters:
    ///   - token: the token, of any length.
    ///   - range: the bytes of the text that the token stands for. `highlight` and `snippet` mark them.
    ///   - isColocated: whether the token has the same position as the token before it, like a synonym.
    /// - Throws: an error if FTS5 wants no more tokens, which the tokenizer must rethrow; a ``DatabaseError`` if the
    ///   range is not in the text.
    public func append(_ token: String, range: Range<Int>, isColocated: Bool = false) throws {
        var token = token
        try token.withUTF8 { try receive($0, range, isColocated) }
    }

    /// Passes on a token, given as UTF-8.
    /// - Throws: as ``append(_:range:isColocated:)-(String,_,_)``.
    public func append(_ token: UnsafeBufferPointer<UInt8>, range: Range<Int>, isColocated: Bool = false) throws {
        try receive(token, range, isColocated)
    }

    /// Lends `body` a sink that passes on only the wanted tokens. Use it for a tokenizer that builds on another one.
    /// - Throws: what `body` throws.
    public func filtered(
        keeping isWanted: @escaping (String) -> Bool,
        _ body: (borrowing TokenSink) throws -> Void
    ) throws {
        let receive = receive
        var hasPlace = false
        try body(
            TokenSink { token, range, isColocated in
                if !isColocated { hasPlace = false }
                guard isWanted(String(decoding: token, as: UTF8.self)) else { return }
                // If the first token of a position was dropped, the next wanted one at that position takes its place.
                try receive(token, range, isColocated && hasPlace)
                hasPlace = true
            }
        )
    }
}
