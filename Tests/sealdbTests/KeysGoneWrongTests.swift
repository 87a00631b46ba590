import Foundation
import SealedDB
import Testing

@testable import sealdb

/// The table in KeysGoneWrong.md: that its exit statuses are those of `sealdb`. The library's tests make each row happen.
@Suite(.hangLimit)
struct KeysGoneWrongTests {
    @Test func exitStatuses() throws {
        let package = #filePath.components(separatedBy: "/Tests/")[0]
        let path = "\(package)/Sources/SealedDB/SealedDB.docc/KeysGoneWrong.md"
        let reasons: [DatabaseError.Reason] = [
            .wrongKey, .malformedKey, .keyRequired, .plaintext, .olderFormat, .otherSettings, .truncated, .damaged,
            .notADatabase, .notRegularFile, .noSuchFile, .unusableSettings, .notAllowed,
        ]
        var count = 0
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard line.hasPrefix("| "), cells.count == 4, let exit = Int32(cells[2]) else { continue }
            let reason = try #require(reasons.first { $0.description == cells[1] }, "\(cells[1])")
            let error = DatabaseError(extendedCode: SQLITE_ERROR, reason: reason, message: "")
            #expect(ErrorReport.status(of: error) == exit, "\(cells[0])")
            count += 1
        }
        #expect(count > 20)
    }
}
