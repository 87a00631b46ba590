import Foundation
import Testing

@testable import SealedDB

extension TemporaryDirectory {
    /// What SQLite sees of a page of a store with ``Key/testing(_:)`` of 1.
    func contents(ofPage number: Int, of name: String, settings: CipherSettings = .init()) throws -> [UInt8] {
        let cipher = try cipher(of: name, settings)
        let size = settings.parameters.pageSize
        let page = [UInt8](try bytes(name).dropFirst((number - 1) * size).prefix(size))
        var contents = [UInt8](repeating: 0, count: size)
        try page.withUnsafeBytes { page in
            try contents.withUnsafeMutableBytes { try cipher.open(page, number: Int64(number), into: $0) }
        }
        return contents
    }

    /// Changes what SQLite sees of a page, as only somebody can who has the key: its code is right.
    func forge(
        _ name: String,
        page number: Int,
        settings: CipherSettings = .init(),
        _ change: (inout [UInt8]) throws -> Void
    ) throws {
        var contents = try contents(ofPage: number, of: name, settings: settings)
        try change(&contents)
        let cipher = try cipher(of: name, settings)
        var page = [UInt8](repeating: 0, count: contents.count)
        try contents.withUnsafeBytes { contents in
            try page.withUnsafeMutableBytes { try cipher.seal(contents, number: Int64(number), into: $0) }
        }
        try overwrite(name, at: (number - 1) * page.count, with: page)
    }

    func overwrite(_ name: String, at offset: Int, with bytes: [UInt8]) throws {
        var all = try [UInt8](self.bytes(name))
        all.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        try write(name, all)
    }

    private func cipher(of name: String, _ settings: CipherSettings) throws -> PageCipher {
        let key = try [UInt8](repeating: 1, count: 32).withUnsafeBytes { try SecretBytes(copying: $0) }
        return try PageCipher(key: key, salt: Array(bytes(name).prefix(16)), parameters: settings.parameters)
    }
}
