import Foundation
import Testing

/// Calls of libc that Swift's Glibc module leaves out.
enum ExtendedAttribute {
    private typealias Set =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32
        ) -> Int32
    private typealias Get =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int
        ) -> Int

    static func set(_ name: String, to value: String, of path: String) throws {
        let function = unsafeBitCast(try #require(dlsym(nil, "setxattr")), to: Set.self)
        let bytes = [UInt8](value.utf8)
        try #require(function(path, name, bytes, bytes.count, 0) == 0)
    }

    static func value(_ name: String, of path: String) throws -> String {
        let function = unsafeBitCast(try #require(dlsym(nil, "getxattr")), to: Get.self)
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = function(path, name, &bytes, bytes.count)
        try #require(count >= 0)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
