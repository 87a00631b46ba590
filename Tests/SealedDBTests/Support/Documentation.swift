import Foundation

/// Pages of the documentation, as they lie in the sources.
enum Documentation {
    static func text(_ name: String, from file: String = #filePath) throws -> String {
        let package = file.components(separatedBy: "/Tests/")[0]
        return try String(contentsOfFile: "\(package)/Sources/SealedDB/SealedDB.docc/\(name)", encoding: .utf8)
    }
}
