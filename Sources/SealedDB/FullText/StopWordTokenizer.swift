public import Foundation

/// Leaves out stop words, such as "the": FMDB's `FMStopWordTokenizer`, for FTS5.
///
/// A prefix query keeps them, because `the*` also searches for "theatre".
public final class StopWordTokenizer: FTS5Tokenizer, Sendable {
    /// The words that are left out, in the form in which the base tokenizer returns them.
    public let words: Set<String>
    private let base: any TokenizerDelegate

    /// Leaves these words out of what another tokenizer finds. They are compared as that tokenizer gives them.
    public init(words: Set<String>, baseTokenizer: any TokenizerDelegate) {
        self.words = words
        self.base = baseTokenizer
    }

    /// Reads the words from a text file in UTF-8, one word per line.
    /// - Throws: Foundation's error if the file cannot be read.
    public convenience init(fileURL: URL, baseTokenizer: any TokenizerDelegate) throws {
        let lines = try String(contentsOf: fileURL, encoding: .utf8).split(whereSeparator: \.isNewline)
        let words = lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
        self.init(words: Set(words), baseTokenizer: baseTokenizer)
    }

    /// Finds the words of a text, without the stop words.
    public func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws {
        guard purpose != .prefixQuery else { return try base.tokenize(text, for: purpose, into: tokens) }
        try tokens.filtered(keeping: { [words] in !words.contains($0) }) { remaining in
            try base.tokenize(text, for: purpose, into: remaining)
        }
    }
}
