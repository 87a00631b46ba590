import Foundation

/// SQLite's check of the structure of a store, on a thread of its own, while other threads authenticate its pages.
///
/// SQLite reads what a ``StoreView`` shows, decrypted by ``AuthenticPages``: SQLCipher would authenticate each page again,
/// twice, on the one thread that SQLite's check has.
final class StructureThread {
    let pages: AuthenticPages
    private let connection: Connection
    private let outcome: Guarded<Result<[String], DatabaseError>?>
    private let isOver = DispatchSemaphore(value: 0)
    private var thread: WorkerThread?

    /// Begins the check.
    /// - Parameters:
    ///   - viewed: a connection to the store, which must stay open until ``end()`` is called.
    ///   - cipher: that of the store. It must authenticate pages.
    ///   - pragma: `quick_check` or `integrity_check`.
    /// - Returns: `nil` if the connection is not one of a view, or if the system has no thread to give.
    init?(_ viewed: Connection, cipher: PageCipher, pragma: String) throws(DatabaseError) {
        guard let view = viewed.view as? StoreView else { return nil }
        pages = try AuthenticPages(cipher.copy())
        connection = try view.connection(decryptedBy: pages)
        let outcome = Guarded<Result<[String], DatabaseError>?>(nil)
        self.outcome = outcome
        // Only the thread uses the connection until it has ended.
        nonisolated(unsafe) let check = StructureCheck(connection: connection)
        thread = WorkerThread { [isOver] in
            let result = Result { () throws(DatabaseError) in try check.problems(pragma) }
            outcome.withLock { $0 = result }
            isOver.signal()
        }
        guard thread != nil else {
            connection.close()
            return nil
        }
    }

    /// Waits until the check is over, and closes its connection.
    /// - Parameter report: called now and then with the number of pages that were read, each as often as it was read.
    /// - Returns: the problems, in SQLite's words.
    func problems(report: (_ readCount: Int64) throws(DatabaseError) -> Void) throws(DatabaseError) -> [String] {
        repeat { try report(pages.readCount) } while isOver.wait(timeout: .now() + 0.1) == .timedOut
        end()
        guard let outcome = outcome.withLock({ $0 }) else { throw .notOpen }
        return try outcome.get()
    }

    /// Stops the check if it is not over, and closes its connection. May be called more than once.
    func end() {
        guard let thread else { return }
        self.thread = nil
        pages.stop()
        thread.join()
        // It has only read.
        connection.close()
    }
}
