import Testing

@testable import SealedDB

/// The order in which a rotation puts the new file in the place of the old one.
@Suite(.hangLimit, .enabled(if: isEncrypting, "needs a codec"))
struct RotationStepsTests {
    /// A power failure brings the old file back until the directory is synced. Only then it is made useless for those
    /// who have opened it at the last moment.
    @Test func theSwap() throws {
        let directory = try TemporaryDirectory()
        let store = try Database.testing(directory.file("db"), journalMode: .delete)
        try store.fill(rows: 30)
        #expect(store.close())
        let watch = CallWatch(directory.path)
        try KeyRotation(path: directory.file("db"), from: .testing(1), to: .testing(2)).run()
        let calls = watch.endWithAll()
        let swap = try #require(calls.firstIndex(of: "rename db"), "\(calls)")
        let sync = try #require(calls[swap...].firstIndex(of: "fsync \(directory.path)"), "\(calls[swap...])")
        let spoiling = try #require(calls[swap...].firstIndex { $0.hasPrefix("pwrite db") }, "\(calls[swap...])")
        #expect(sync < spoiling)
    }
}
