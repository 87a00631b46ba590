import Synchronization

/// The words of the messages that SQLite and its extensions have for a statement that fails while it runs. Whatever else such a
/// message has is a name, which the statement has too, or a value.
enum MessageWords {
    /// Whether the word is one of them, in small or capital ASCII letters.
    static func isUsual(_ word: some Collection<UInt8>) -> Bool {
        guard word.count <= 16 else { return false }
        return usual.contains(String(decoding: word.map(\.folded), as: UTF8.self))
    }

    /// The last messages with which functions of the caller have failed. Their words are the caller's own choice.
    private static let messages = Mutex<[String]>([])

    static func noteMessage(_ message: String) {
        messages.withLock { messages in
            guard !messages.contains(message) else { return }
            if messages.count == 8 { messages.removeFirst() }
            messages.append(message)
        }
    }

    static func isOfFunction(_ message: String) -> Bool { messages.withLock { $0.contains(message) } }

    /// Whether it is one of SQLite's about ATTACH and DETACH, in which no key stands.
    static func isOfAttachedFile(_ message: String) -> Bool {
        let beginnings = [
            "unable to open database: ", "database ", "no such database: ", "cannot detach database ",
            "too many attached databases",
        ]
        return beginnings.contains { message.hasPrefix($0) }
    }

    private static let usual = Set(
        """
        a abort aborted access active aggregate already an and are argument array as at attach attached authorized bad \
        be because blob blobs by cannot change changed check code collation column columns commit conflict constraint \
        context corrupt create cursor database databases datatype deferred delete depth detach detail different disk \
        does due element elements empty encoding end enough error escape existing exists expected expression extension \
        failed file first for foreign format found frame from fts3 fts4 fts5 full function functions got has have i id \
        identical image in index insert integer into invalid is it json key large length like limit locked main \
        malformed many match max maximum may memory mismatch missing mode modified module more must name near negative \
        no non not null number o object of offset on only open operation or out output overflow page parse parser path \
        pattern phrase positive pragma primary progress prohibited query range rank reached read readonly recursive \
        recursively release requested returned returns rollback root row rowid rows rtree same savepoint schema second \
        select size source special sql stack start starting state statement statements step string sub such syntax \
        table tables temp text than that the third this to token tokenizer too transaction tree trigger type unable \
        unique unknown unrecognized unterminated update updated use used using vacuum value values version view \
        virtual vtable wal was while window with within without write wrong xfilter
        """.split(separator: " ").map(String.init)
    )
}
