import Foundation
import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct SettingsCheckTests {
    @Test(arguments: [512, 1023, 1025, 3000, 4095, 65535, 131_072, 0, -4096])
    func sizesThatNoPageHas(size: Int) {
        let error = #expect(throws: DatabaseError.self) { try CipherSettings(pageSize: size).validate() }
        #expect(error?.reason == .unusableSettings && error?.message.contains("\(size) was given") == true)
    }

    @Test(arguments: [1024, 2048, 4096, 8192, 16384, 32768, 65536]) func sizesOfPages(size: Int) {
        #expect(throws: Never.self) { try CipherSettings(pageSize: size).validate() }
    }

    @Test func whichFormatsHaveCodes() {
        for settings in [.sqlCipher4, .sqlCipher3, .sqlCipher2] as [CipherSettings] {
            #expect(settings.isAuthenticated)
        }
        #expect(!CipherSettings.sqlCipher1.isAuthenticated)
    }

    /// A log or journal that somebody puts beside a new file would change it.
    @Test(.enabled(if: isEncrypting, "needs a codec"), arguments: ["-journal", "-wal", nil] as [String?])
    func whatStandsBesideAFileThatIsConfirmed(suffix: String?) throws {
        let directory = try TemporaryDirectory()
        let text = String(repeating: "02", count: 32)
        let path = try directory.write("key", text.utf8)
        let sealing = Sealing(key: try KeySource.keyFile(path).key())
        let database = try Database.testing(directory.file("db"))
        try database.fill(rows: 10)
        database.close()
        let source = try StoreOpening(path: directory.file("db"), key: .testing(1)).open()
        defer { source.close() }
        let copy = try StoreCopy(beside: directory.file("db"), takesAttributes: false)
        defer { copy.discard() }
        _ = try copy.fill(from: source, sealing: sealing, method: .pages, setsWAL: false, progress: nil)
        if let suffix { try Data([1]).write(to: URL(fileURLWithPath: copy.path + suffix)) }
        guard suffix != nil else {
            #expect(throws: Never.self) { try sealing.confirm(for: copy) }
            return
        }
        let error = #expect(throws: DatabaseError.self) { try sealing.confirm(for: copy) }
        #expect(error?.reason == .unverified, "\(String(describing: error))")
        #expect(error?.message.contains("beside the new file") == true, "\(String(describing: error))")
    }
}
