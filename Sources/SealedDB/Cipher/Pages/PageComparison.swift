/// Compares a store with a copy of it, page by page, without SQLCipher: authenticates and decrypts each page of both,
/// and compares the contents that SQLite sees.
///
/// Reads only the main files: nobody may write to either, neither may have a log, and both must have the same page
/// layout.
struct PageComparison: Sendable {
    // Only their files are read here, with calls that SQLite allows on any thread.
    nonisolated(unsafe) let source: PageScan
    nonisolated(unsafe) let copy: PageScan
    let pageCount: Int64

    /// - Parameter progress: called with the number of pages compared so far. If it throws, the comparison stops.
    /// - Returns: what differs or is damaged, in words for people; empty if nothing is.
    func problems(progress: (_ completedPages: Int64) throws -> Void) throws -> [String] {
        let (sourceCipher, copyCipher) = (try source.pageCipher(), try copy.pageCipher())
        let pipeline = PagePipeline(pageSize: copyCipher.parameters.pageSize, pageCount: pageCount)
        var problems: [String] = []
        var stop: (any Error)?
        try pipeline.forEachRun { () throws(DatabaseError) in
            let pageCount = pipeline.pagesInRun
            return try ComparisonWorker(
                source: .init(scan: source, cipher: sourceCipher.copy(), name: "the store", pageCount: pageCount),
                copy: .init(scan: copy, cipher: copyCipher.copy(), name: "the copy", pageCount: pageCount)
            )
        } deliver: { numbers, outcome in
            problems += outcome.problems
            guard outcome.isWhole else { return true }
            do { try progress(numbers.upperBound) } catch { stop = error }
            return stop == nil
        }
        if let stop { throw stop }
        return problems
    }

    /// The bytes of the first page that may differ in a copy: the salt or SQLite's magic; the two bytes for the journal
    /// mode; the change counter; the schema cookie, which SQLite raises so that statements are prepared again; the
    /// version-valid-for number and the version of SQLite that wrote last.
    /// https://www.sqlite.org/fileformat.html#the_database_header
    static let differingBytes = [0..<16, 18..<20, 24..<28, 40..<44, 92..<100]
}
