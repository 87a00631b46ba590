import Foundation

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
        let size = copyCipher.parameters.pageSize
        let lockPage = PageScan.lockPage(pageSize: size)
        var problems: [String] = []
        for first in stride(from: 1 as Int64, through: pageCount, by: 64) {
            let numbers = first...min(first + 63, pageCount)
            // A read that fails says nothing about the pages, so it is thrown as it is.
            let (theirs, ours) = (try source.read(numbers, size: size), try copy.read(numbers, size: size))
            guard theirs.count == numbers.count * size, ours.count == theirs.count else {
                problems.append("pages \(first) to \(numbers.upperBound) are not whole")
                continue
            }
            for number in numbers where number != lockPage {
                let start = Int(number - first) * size
                let (theirs, ours) = (theirs[start..<start + size], ours[start..<start + size])
                if let problem = PageComparison.problem(number, theirs, sourceCipher, ours, copyCipher) {
                    problems.append(problem)
                }
            }
            try progress(numbers.upperBound)
        }
        return problems
    }

    private static func problem(
        _ number: Int64,
        _ theirs: ArraySlice<UInt8>,
        _ sourceCipher: PageCipher,
        _ ours: ArraySlice<UInt8>,
        _ copyCipher: PageCipher
    ) -> String? {
        for (page, cipher, name) in [(theirs, sourceCipher, "the store"), (ours, copyCipher, "the copy")]
        where cipher.parameters.usesHMAC && !cipher.authenticates(page, number: number) {
            return "page \(number) of \(name) is damaged"
        }
        guard var source = sourceCipher.contents(theirs, number: number),
            var copy = copyCipher.contents(ours, number: number)
        else { return "page \(number) cannot be decrypted" }
        if number == 1 {
            // The bytes that are not encrypted are no secret. They are compared as they stand in the file.
            source = theirs.prefix(sourceCipher.clearBytes(ofPage: 1)) + source
            copy = ours.prefix(copyCipher.clearBytes(ofPage: 1)) + copy
            for range in differingBytes {
                for index in range { (source[index], copy[index]) = (0, 0) }
            }
        }
        return source == copy ? nil : "page \(number) differs from that of the store"
    }

    /// The bytes of the first page that may differ in a copy: the salt or SQLite's magic; the two bytes for the journal
    /// mode; the change counter; the schema cookie, which SQLite raises so that statements are prepared again; the
    /// version-valid-for number and the version of SQLite that wrote last.
    /// https://www.sqlite.org/fileformat.html#the_database_header
    static let differingBytes = [0..<16, 18..<20, 24..<28, 40..<44, 92..<100]
}
