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
    typealias Receive = (_ token: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, _ isColocated: Bool) throws -> Void

    private let receive: Receive

    init(_ receive: @escaping Receive) {
        self.receive = receive
    }

    /// Passes a token on.
    /// - Parameters:
    ///   - token: of any length.
    ///   - range: the bytes of the text that it stands for, which `highlight` and `snippet` mark.
    ///   - isColocated: whether it stands at the place of the token before it, as a synonym does.
    /// - Throws: if FTS5 wants no more, which the tokenizer hands on; a ``DatabaseError`` if the range is not in the text.
    public func append(_ token: String, range: Range<Int>, isColocated: Bool = false) throws {
        var token = token
        try token.withUTF8 { try receive($0, range, isColocated) }
    }

    /// Passes a token on, as its UTF-8.
    public func append(_ token: UnsafeBufferPointer<UInt8>, range: Range<Int>, isColocated: Bool = false) throws {
        try receive(token, range, isColocated)
    }

    /// Lends the body a sink that passes on only some tokens, as a tokenizer that builds on another one needs it.
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
                // The first that is kept takes the place of one that is not.
                try receive(token, range, isColocated && hasPlace)
                hasPlace = true
            }
        )
    }
}
