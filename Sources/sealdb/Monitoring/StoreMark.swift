import Foundation
import SealedDB

/// What tells a store from another one that has, or had, its path.
struct StoreMark: Sendable, Equatable {
    /// The first 16 bytes in hex digits, which each new store and each rotation chooses at random; `nil` with a plaintext
    /// header.
    let salt: String?
    let inode: UInt64

    init(salt: String?, inode: UInt64) {
        (self.salt, self.inode) = (salt, inode)
    }

    init(path: String) throws {
        let info = try StoreInfo.outside(path: path)
        var status = stat()
        guard stat(info.path, &status) == 0 else {
            throw Failure(.noInput, "Cannot examine \(info.path): \(String(cString: strerror(errno))).")
        }
        self.init(salt: info.salt, inode: UInt64(status.st_ino))
    }

    /// One word for the store.
    var text: String { salt ?? "inode \(inode)" }
}
