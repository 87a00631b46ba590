import Foundation
import Testing

@testable import SealedDB

/// Somebody who may rename files in the directory puts files of their own in the place of those that are being made.
@Suite(.hangLimit)
struct ExchangedFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Puts a file that everybody can read in the place of each that is about to become the key.
    private static func exchange(in directory: String, until isOver: StopFlag) {
        while !isOver.isSet {
            // One that is gone meanwhile is none.
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            for name in names where name.hasPrefix(".key.sealdb-") {
                let open = "\(directory)/open-\(name)"
                guard FileManager.default.createFile(atPath: open, contents: nil), chmod(open, 0o666) == 0 else {
                    continue
                }
                // It has its name by now, or takes this one.
                _ = rename(open, "\(directory)/\(name)")
            }
        }
    }

    /// Which of both is first is chance; what must hold is the same.
    @Test func keysGoIntoTheirOwnFiles() throws {
        let isOver = StopFlag()
        let done = DispatchSemaphore(value: 0)
        let path = directory.path
        Thread.detachNewThread {
            Self.exchange(in: path, until: isOver)
            done.signal()
        }
        for _ in 0..<300 {
            let path = directory.file("key")
            do throws(DatabaseError) {
                try KeyFile.create(atPath: path)
                var status = stat()
                #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_size == 65)
            } catch {
                #expect([.unsafeKeyFile, .cannotCreate, .alreadyExists, .ioError].contains(error.reason), "\(error)")
            }
            // No file that others can read has anything in it.
            for name in directory.names {
                var status = stat()
                guard lstat(directory.file(name), &status) == 0, status.st_mode & 0o077 != 0 else { continue }
                #expect(status.st_size == 0, "\(name)")
            }
            for name in directory.names where !name.hasPrefix("open-") { unlink(directory.file(name)) }
        }
        isOver.set()
        done.wait()
    }
}
