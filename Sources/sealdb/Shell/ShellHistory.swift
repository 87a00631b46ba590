import CSealedDBSystem
import Foundation
import SealedDB

/// The statements of former shells, in a file that holds nothing of a store's contents but names and small numbers.
///
/// Everything that was typed comes back within a shell. The file gets a statement only if SQLite has accepted it, and only
/// without literals: no text, blob or comment, no number of more than four digits, no word that looks like a key, no value
/// of a pragma.
final class ShellHistory {
    /// The first line, by which a file is known for a history: any other is somebody's own.
    static let mark = "-- History of sealdb shell"
    /// So many entries are kept.
    static let capacity = 1000
    private let path: String
    private(set) var entries: [String] = []
    private var isUsable = true

    /// - Parameter path: the file; it and its directory are made when the first entry is added.
    init(path: String) {
        self.path = path
        load()
    }

    /// `$SEALDB_HISTORY`, or the user's directory for such files; `nil` if the variable is empty, or there is none.
    static func path(_ environment: [String: String]) -> String? {
        if let path = environment["SEALDB_HISTORY"] { return path.isEmpty ? nil : path }
        if let state = environment["XDG_STATE_HOME"], state.begins(with: "/") { return state + "/sealdb/history" }
        guard let home = environment["HOME"], home.begins(with: "/") else { return nil }
        return home + "/.local/state/sealdb/history"
    }

    /// The form in which a statement may stand in the file: on one line; `nil` if it may not.
    static func entry(of sql: String) -> String? {
        let bytes = Array(sql.utf8)
        let hasValue = bytes.withUnsafeBufferPointer { SQLStatementText($0).pragmaHasValue }
        if hasValue { return nil }
        let words = bytes.withUnsafeBufferPointer { bytes -> [String]? in
            var words: [String] = []
            var end = 0
            var tokens = SQLTokenizer(bytes)
            while let token = tokens.next() {
                // What stands between two tokens is blank, or a comment.
                guard bytes[end..<token.range.lowerBound].allSatisfy({ $0 <= 0x20 }) else { return nil }
                let text = bytes[token.range]
                switch token.kind {
                case .string, .blob, .illegal: return nil
                case .number where text.count > 4: return nil
                // SQLite takes a name in double quotes for a text where there is no such name.
                case .quotedName where text.first == UInt8(ascii: "\"") || text.contains { $0 < 0x20 }: return nil
                // As such a value, SQLite takes any word for a text.
                case .word where tokens.isWord(token, "default"): return nil
                case .word, .variable, .quotedName:
                    if looksLikeKey(text) { return nil }
                default: break
                }
                let isApart = !words.isEmpty && token.range.lowerBound > end
                words.append((isApart ? " " : "") + String(decoding: text, as: UTF8.self))
                end = token.range.upperBound
            }
            guard bytes[end...].allSatisfy({ $0 <= 0x20 }) else { return nil }
            return words
        }
        guard let words, !words.isEmpty else { return nil }
        return words.joined()
    }

    /// The form in which a command may stand in the file; `nil` if it may not: these take texts.
    static func entry(ofCommand name: String, _ line: String, _ words: [String]) -> String? {
        let isText = ["nullvalue", "parameter", "print"].contains { $0.isSame(as: name) }
        let isPattern = name.isSame(as: "tables") && !words.isEmpty
        let hasKey = words.contains { word in
            Array(word.utf8).withUnsafeBufferPointer { looksLikeKey($0[...]) }
        }
        return isText || isPattern || hasKey ? nil : line
    }

    /// Whether it has as many hex digits or other letters in a row as keys have.
    private static func looksLikeKey(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let isHexadecimal = text.allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (0x61...0x66).contains(byte | 0x20)
        }
        return text.count >= (isHexadecimal ? 16 : 40)
    }

    /// Adds an entry to the file. If that fails, it is told once, and the shell goes on without the file.
    func add(_ entry: String) {
        guard isUsable, entries.last.map({ !$0.isSame(as: entry) }) ?? true else { return }
        entries.append(entry)
        let directory = path.directoryOfPath
        if access(directory, F_OK) != 0 {
            // If this fails, so does the next call, and tells why.
            try? FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        }
        do throws(DatabaseError) { try StoreName.requireNoPart(path) } catch { return refuse(error.message) }
        let file = sealeddb_open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { return giveUp() }
        guard let isNew = ShellHistory.isNew(file) else {
            // Nothing was written.
            close(file)
            return refuse("it is something else.")
        }
        let bytes = Array(((isNew ? ShellHistory.mark + "\n" : "") + entry + "\n").utf8)
        let written = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        let number = errno
        guard close(file) == 0, written == bytes.count else {
            errno = written < 0 ? number : errno
            return giveUp()
        }
    }

    /// Whether it is `/dev/null`, or a link to that.
    private static func isNullDevice(_ path: String) -> Bool {
        var (file, null) = (stat(), stat())
        return stat(path, &file) == 0 && stat("/dev/null", &null) == 0 && file.st_mode & S_IFMT == S_IFCHR
            && file.st_rdev == null.st_rdev
    }

    /// Whether the file is empty; `nil` if it is no history.
    private static func isNew(_ file: Int32) -> Bool? {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        guard status.st_size > 0 else { return true }
        let expected = Array((mark + "\n").utf8)
        var start = [UInt8](repeating: 0, count: expected.count)
        return pread(file, &start, start.count, 0) == start.count && start == expected ? false : nil
    }

    private func refuse(_ reason: String) {
        isUsable = false
        StandardError.message("The history in \(path) is not used: \(reason)")
    }

    private func giveUp() {
        isUsable = false
        StandardError.message("The history is not kept in \(path): \(String(cString: strerror(errno))).")
    }

    private func load() {
        if ShellHistory.isNullDevice(path) {
            // Whoever names it wants no history.
            isUsable = false
            return
        }
        var kind = stat()
        // Without a file there is nothing to bring back. To open a pipe would wait for somebody who writes to it.
        guard stat(path, &kind) == 0, kind.st_mode & S_IFMT == S_IFREG else { return }
        let (bytes, status): ([UInt8], stat)
        do {
            let file = try InputFile(path: path)
            (bytes, status) = (try file.contents(upTo: .max), try file.status())
        } catch {
            // The file is not written to either.
            return refuse(ErrorReport.statusAndMessage(of: error).message)
        }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else {
            return refuse("others may read it, or it is theirs.")
        }
        guard !bytes.isEmpty else { return }
        guard let text = String(validating: bytes, as: UTF8.self),
            text.utf8.starts(with: (ShellHistory.mark + "\n").utf8)
        else {
            return refuse("it does not begin with \"\(ShellHistory.mark)\", and so is something else.")
        }
        // Two shells that have both made it have both marked it.
        let lines = text.split(separator: "\n").map(String.init).filter { !$0.isSame(as: ShellHistory.mark) }
        entries = lines.suffix(ShellHistory.capacity).filter { TerminalText.escaped($0).isSame(as: $0) }
        if lines.count > 2 * ShellHistory.capacity { shorten(status) }
    }

    /// Puts a file with the last entries in the place of one that has become long.
    private func shorten(_ former: stat) {
        let new = "\(path).\(getpid())~"
        // That of a process of this number which was killed here. If it cannot be removed, the next call fails.
        unlink(new)
        do {
            let file = try ResultOutput(newFile: new)
            try file.write(([ShellHistory.mark] + entries).joined(separator: "\n") + "\n")
            try file.close()
            // Another shell may have added to it: the entry is lost, and nothing else.
            var status = stat()
            guard lstat(path, &status) == 0, status.st_dev == former.st_dev, status.st_ino == former.st_ino else {
                throw Failure(.inputOutput, "")
            }
            guard rename(new, path) == 0 else { throw Failure(.inputOutput, "") }
        } catch {
            // The file only stays long.
            unlink(new)
        }
    }
}
