public import Foundation

/// Splits text into words in lower case: FMDB's `FMSimpleTokenizer`, for FTS5.
///
/// A word is a sequence of letters, digits and combining marks, and of apostrophes before letters. Each ideograph and
/// each Hiragana letter is a separate word, because their languages do not put blanks between words.
public final class SimpleTokenizer: FTS5Tokenizer, Sendable {
    /// The locale whose rules determine lower case; `nil` for none.
    public let locale: Locale?

    /// - Parameter locale: for example `tr`, in which the lower case of I is ı. `nil`, the default, means no particular
    ///   locale.
    public init(locale: Locale? = nil) {
        self.locale = locale
    }

    /// Finds the words of a text.
    public func tokenize(
        _ text: UnsafeBufferPointer<UInt8>,
        for purpose: TokenizationPurpose,
        into tokens: borrowing TokenSink
    ) throws {
        var start: Int?
        /// The end of the word so far, if an apostrophe follows that may belong to it.
        var apostrophe: Int?

        func end(at position: Int) throws {
            guard let first = start else { return }
            start = nil
            let word = String(decoding: text[first..<(apostrophe ?? position)], as: UTF8.self)
            try tokens.append(lowercased(word), range: first..<(apostrophe ?? position))
            apostrophe = nil
        }

        var scalars = ScalarReader(text)
        while let (scalar, range) = scalars.next() {
            switch Class(scalar) {
            case .letter:
                if start == nil { start = range.lowerBound }
                apostrophe = nil
            case .digit, .mark:
                if apostrophe != nil { try end(at: range.lowerBound) }
                if start == nil { start = range.lowerBound }
            case .single:
                try end(at: range.lowerBound)
                start = range.lowerBound
                try end(at: range.upperBound)
            case .apostrophe where start != nil && apostrophe == nil:
                apostrophe = range.lowerBound
            case .apostrophe, .other:
                try end(at: range.lowerBound)
            }
        }
        try end(at: text.count)
    }

    private func lowercased(_ word: String) -> String {
        let word = locale.map { word.lowercased(with: $0) } ?? word.lowercased()
        // Sigma is the only letter with two lower-case forms and one upper-case form.
        return word.unicodeScalars.contains("ς") ? word.replacing("ς", with: "σ") : word
    }

    private enum Class {
        case letter, digit, mark, single, apostrophe, other

        init(_ scalar: Unicode.Scalar) {
            if scalar.isASCII {
                switch scalar {
                case "a"..."z", "A"..."Z": self = .letter
                case "0"..."9": self = .digit
                case "'": self = .apostrophe
                default: self = .other
                }
                return
            }
            if scalar == "\u{2019}" {
                self = .apostrophe
            } else if scalar.properties.isIdeographic || (0x3041...0x309f).contains(scalar.value) {
                self = .single
            } else {
                self =
                    switch scalar.properties.generalCategory {
                    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: .letter
                    case .nonspacingMark, .spacingMark, .enclosingMark: .mark
                    case .decimalNumber, .letterNumber, .otherNumber: .digit
                    default: .other
                    }
            }
        }
    }
}

/// Reads the Unicode scalars of UTF-8 text with their byte ranges. Invalid bytes are read as U+FFFD.
struct ScalarReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var decoder = Unicode.UTF8.ForwardParser()
    private var iterator: UnsafeBufferPointer<UInt8>.Iterator
    private var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
        self.iterator = bytes.makeIterator()
    }

    mutating func next() -> (scalar: Unicode.Scalar, range: Range<Int>)? {
        let start = position
        switch decoder.parseScalar(from: &iterator) {
        case .valid(let encoded):
            position += encoded.count
            return (Unicode.UTF8.decode(encoded), start..<position)
        case .error(let length):
            position += length
            return ("\u{FFFD}", start..<position)
        case .emptyInput:
            return nil
        }
    }
}
