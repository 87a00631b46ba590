import Foundation

extension CMakers {
    /// A copy of the file, synced, which nobody has verified.
    static var replication: [String: Maker] {
        var result: [String: Maker] = [:]
        #if SQLCipher
            result["replication.snapshot"] = { try copy($0, "copied") }
            result["replication.restore"] = { try copy($0, "copied back") }
        #endif
        return result
    }

    #if SQLCipher
        private static func copy(_ fixtures: Fixtures, _ name: String) throws -> Work {
            let (path, mebibytes) = try LargeStoreCases.store(name, fixtures)
            let copy = fixtures.newPath("copy")
            return Work(units: mebibytes, before: { removeFile(copy) }) {
                guard let source = FileHandle(forReadingAtPath: path),
                    FileManager.default.createFile(atPath: copy, contents: nil),
                    let target = FileHandle(forWritingAtPath: copy)
                else { throw Failure("C: \(path) cannot be copied.") }
                while let bytes = try source.read(upToCount: 1 << 20), !bytes.isEmpty {
                    try target.write(contentsOf: bytes)
                }
                try target.synchronize()
                try target.close()
                return 1
            }
        }
    #endif
}
