public import Foundation

/// Where a query found its terms: the result of SQL's `offsets(…)` for FTS3 and FTS4 tables. FMDB's `FMTextOffsets`.
/// https://www.sqlite.org/fts3.html#offsets
public struct TextOffsets: Sendable, Hashable, RandomAccessCollection {
    /// A place where a word was found.
    public struct Match: Sendable, Hashable {
        /// The index of the table's column, from 0.
        public let column: Int
        /// The index of the query's term, from 0.
        public let term: Int
        /// The range in bytes of the column's UTF-8 text.
        public let range: Range<Int>
    }

    private let matches: [Match]

    /// Reads a result of `offsets(…)`; `nil` for any other text.
    public init?(_ text: String) {
        let numbers = text.split(separator: " ").map { Int($0) }
        guard numbers.count.isMultiple(of: 4) else { return nil }
        var matches: [Match] = []
        for index in stride(from: 0, to: numbers.count, by: 4) {
            guard let column = numbers[index], let term = numbers[index + 1], let start = numbers[index + 2],
                let count = numbers[index + 3], start >= 0, count >= 0, start <= Int.max - count
            else { return nil }
            matches.append(Match(column: column, term: term, range: start..<start + count))
        }
        self.matches = matches
    }

    /// The position of the first match.
    public var startIndex: Int { matches.startIndex }
    /// The position after the last match.
    public var endIndex: Int { matches.endIndex }
    /// The match at a position.
    public subscript(position: Int) -> Match { matches[position] }

    /// Calls the block with each match, as FMDB does: the column, the term, and the range in bytes of the column's
    /// UTF-8 text.
    public func enumerate(_ block: (_ column: Int, _ term: Int, _ matchRange: NSRange) -> Void) {
        for match in matches { block(match.column, match.term, NSRange(match.range)) }
    }
}

extension ResultSet {
    /// Reads a column with a result of `offsets(…)`; `nil` if it contains anything else.
    public func offsets(forColumnIndex columnIdx: Int32) -> TextOffsets? {
        string(forColumnIndex: columnIdx).flatMap { TextOffsets($0) }
    }

    /// Reads a column with a result of `offsets(…)`; `nil` if it contains anything else.
    public func offsets(forColumn columnName: String) -> TextOffsets? {
        offsets(forColumnIndex: columnIndex(forName: columnName))
    }
}
