internal import CSealedDBSystem
import Foundation

/// OpenSSL's contexts, which each connection keeps from page to page. SQLCipher by itself makes new ones for each page,
/// which takes up to a third of the time of a read.
enum PageContexts {
    /// If this variable of the environment is set and not empty, SQLCipher's own functions work on pages. Its value
    /// should be `stock`.
    static let variable = "SEALEDDB_PROVIDER"

    /// Why contexts are not kept; `nil` if they are. Ask only after the first key of the process.
    static var problem: String? {
        sealeddb_contexts_problem().map { String(cString: $0) }
    }

    /// Why contexts must not be kept, as a constant of C; `nil` if they may.
    ///
    /// Memory security locks all memory that SQLite allocates, but OpenSSL's contexts are not in that memory.
    static func reasonAgainst(hasMemorySecurity: Bool) -> UnsafePointer<CChar>? {
        if let value = getenv(variable), value.pointee != 0 { return constant("SEALEDDB_PROVIDER says so") }
        return hasMemorySecurity ? constant("memory security is on") : nil
    }

    /// No connection keeps contexts from now on. Each one wipes those that it has with the next page, or when it is
    /// closed.
    static func stopForMemorySecurity() {
        sealeddb_stop_keeping_contexts(constant("memory security is on"))
    }

    /// Static strings of more than one character end in zero, and are always there.
    private static func constant(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
