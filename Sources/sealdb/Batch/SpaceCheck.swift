import Foundation
import SealedDB

/// Makes sure that there is room for all copies that exist at the same time.
enum SpaceCheck {
    /// - Parameter keepsOld: whether the old files are kept, so that every store exists twice at the end.
    static func check(_ stores: [StoreItem], jobs: Int, keepsOld: Bool) throws(Failure) {
        var sizes: [UInt: (directory: String, sizes: [Int64])] = [:]
        for store in stores {
            let directory = store.identity.directoryOfPath
            var status = stat()
            guard stat(directory, &status) == 0 else { continue }
            sizes[UInt(status.st_dev), default: (directory, [])].sizes.append(store.size)
        }
        for (directory, sizes) in sizes.values {
            let counted = keepsOld ? sizes[...] : sizes.sorted(by: >).prefix(jobs)
            let needed = counted.reduce(0) { $0 + $1 / 10 * 11 }
            var status = statvfs()
            guard statvfs(directory, &status) == 0 else { continue }
            let free = Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
            guard needed > free else { continue }
            throw Failure(
                .inputOutput,
                "The copies on the file system of \(directory) need \(ByteText.size(needed)), and "
                    + "\(ByteText.size(free)) are free. Nothing was done. "
                    + "Free some space, or \(keepsOld ? "do not keep the old files" : "lower --jobs")."
            )
        }
    }
}
