import SQLiteEngine
import Testing

/// SQLite without the library, to be asked what it makes of a text. It executes nothing.
final class RawEngine {
    // Under names of their own, because the library has some of them too.
    static let (attach, pragma, transaction) = (SQLITE_ATTACH, SQLITE_PRAGMA, SQLITE_TRANSACTION)
    static let (ok, error, denied): (Int32, Int32, Int32) = (0, 1, SQLITE_AUTH)

    private var handle: OpaquePointer?
    private var actions: Set<Int32> = []

    init() {
        #expect(sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == RawEngine.ok)
        #expect(sqlite3_exec(handle, "CREATE TABLE a (b, c)", nil, nil, nil) == RawEngine.ok)
        sqlite3_set_authorizer(
            handle,
            { context, action, _, _, _, _ in
                Unmanaged<RawEngine>.fromOpaque(context!).takeUnretainedValue().actions.insert(action)
                // Pragmas act when they are compiled.
                return action == SQLITE_PRAGMA ? SQLITE_DENY : RawEngine.ok
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    deinit { sqlite3_close(handle) }

    struct Answer {
        var code: Int32
        var tail: Int
        var hasStatement: Bool
        var message: String
        var offset: Int
        var actions: Set<Int32>
    }

    func prepare(_ bytes: UnsafeBufferPointer<UInt8>) -> Answer {
        actions = []
        var pointer: OpaquePointer?
        var tail: UnsafePointer<CChar>?
        let start = UnsafeRawPointer(bytes.baseAddress!).assumingMemoryBound(to: CChar.self)
        let code = sqlite3_prepare_v2(handle, start, Int32(bytes.count), &pointer, &tail)
        defer { sqlite3_finalize(pointer) }
        return Answer(
            code: code,
            tail: tail.map { $0 - start } ?? bytes.count,
            hasStatement: pointer != nil,
            message: String(cString: sqlite3_errmsg(handle)),
            offset: Int(sealeddb_error_offset(handle)),
            actions: actions
        )
    }
}
