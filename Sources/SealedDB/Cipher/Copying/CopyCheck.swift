import Foundation

/// Checks every page of a file that was copied page by page, with new connections: the authentication codes on one
/// thread, the structure on another.
struct CopyCheck {
    let opening: StoreOpening
    let sealing: Sealing
    /// The store that was copied, if each page is to be compared with it. Nobody may write to it, and it must have no
    /// log.
    var source: PageScan?
    /// Called repeatedly with the number of pages that have been checked. If it throws, the check stops.
    let report: (_ completedPages: Int64) throws(DatabaseError) -> Void

    /// - Returns: what is wrong, in words for people; empty if nothing is.
    func problems(pageCount: Int64) throws(DatabaseError) -> [String] {
        let connection = try opening.open()
        defer { connection.close() }
        let codes = CodeCheck(opening: opening, sealing: sealing, source: source, pageCount: pageCount)
        var result: Result<[String], DatabaseError>
        do throws(DatabaseError) {
            let problems = try structureProblems(connection, codes, pageCount)
            repeat { try report(codes.completedPages) } while !codes.isOver(within: 0.1)
            try report(codes.completedPages)
            result = .success(problems)
        } catch {
            codes.stop()
            result = .failure(error)
        }
        // Wait for the code check in any case, because the file that it reads may be deleted next. This also closes its
        // connection before this one: two connections that close at the same time would leave the log behind.
        let damaged = codes.result
        let problems = try result.get()
        let pages = try damaged.get()
        guard connection.close() else { return ["it could not be closed"] }
        return pages + problems
    }

    private func structureProblems(
        _ connection: Connection,
        _ codes: CodeCheck,
        _ pageCount: Int64
    ) throws(DatabaseError) -> [String] {
        let start = try connection.fileBytes(count: 100)
        guard StoreHeader.isPlaintext(start) == (sealing.key == nil) else {
            return [sealing.key == nil ? "it is no plaintext database" : "it is plaintext"]
        }
        let totals = try PageTotals(of: connection)
        guard totals.count == pageCount else { return ["it has \(totals.count) pages instead of \(pageCount)"] }
        let size = try connection.mainFileSize()
        guard totals.count * Int64(totals.size) == size else { return ["the file has \(size) bytes"] }
        var stop: DatabaseError?
        do throws(DatabaseError) {
            return try StructureCheck(connection: connection).pageProblems {
                do throws(DatabaseError) {
                    try report(codes.completedPages)
                    return true
                } catch {
                    stop = error
                    return false
                }
            }
        } catch {
            if let stop { throw stop }
            guard error.isOfDamage else { throw error }
            return [error.message]
        }
    }

    /// Checks the authentication codes on another thread and, if there is a source, compares the contents with it.
    /// Starts when it is created.
    private final class CodeCheck: Sendable {
        private let group = DispatchGroup()
        private let outcome = Guarded(Result<[String], DatabaseError>.success([]))
        private let pages = Guarded(Int64(0))
        private let stopFlag = StopFlag()

        init(opening: StoreOpening, sealing: Sealing, source: PageScan?, pageCount: Int64) {
            // Only this check uses the source's connection until somebody has waited for the result.
            nonisolated(unsafe) let source = source
            DispatchQueue.global().async(group: group) { [outcome, pages, stopFlag] in
                let result = Result { () throws(DatabaseError) in
                    try CodeCheck.problems(opening, sealing, source, pageCount) { completed in
                        guard !stopFlag.isSet else { throw CancellationError() }
                        pages.withLock { $0 = completed }
                    }
                }
                outcome.withLock { $0 = result }
            }
        }

        var completedPages: Int64 { pages.withLock { $0 } }

        func stop() { stopFlag.set() }

        func isOver(within seconds: Double) -> Bool { group.wait(timeout: .now() + seconds) == .success }

        var result: Result<[String], DatabaseError> {
            group.wait()
            return outcome.withLock { $0 }
        }

        private static func problems(
            _ opening: StoreOpening,
            _ sealing: Sealing,
            _ source: PageScan?,
            _ pageCount: Int64,
            progress: @escaping (Int64) throws -> Void
        ) throws(DatabaseError) -> [String] {
            guard let key = sealing.key, sealing.settings.parameters.usesHMAC || source != nil else { return [] }
            let connection = try opening.open()
            defer { connection.close() }
            let copy = PageScan(connection: connection, key: key, settings: sealing.settings)
            guard let source else {
                // Of what was just written, free pages count, too.
                var free: [Int64] = []
                let noted = { (number: Int64, isBlank: Bool) in if !isBlank { free.append(number) } }
                let damaged = try copy.damagedPages(ofFirst: pageCount, copy.pageCipher(), marks: nil, free: noted) {
                    completed throws(DatabaseError) in
                    do { try progress(completed) } catch { throw CodeCheck.stopped }
                }
                return (damaged + free).map { "page \($0)" }
            }
            do {
                let comparison = PageComparison(source: source, copy: copy, pageCount: pageCount)
                return try comparison.problems(progress: progress)
            } catch let error as DatabaseError {
                throw error
            } catch {
                throw CodeCheck.stopped
            }
        }

        private static let stopped = DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "The caller stopped the comparison. Nothing was changed."
        )
    }
}
