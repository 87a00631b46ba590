import Foundation

extension FileHandle {
    /// A file that no child has open that another test starts meanwhile. What Foundation's calls of `Data` have open, such a
    /// child has open as long as it runs, and a store that somebody has open is not replaced.
    static func closedToChildren(_ path: String, _ flags: Int32) throws -> FileHandle {
        let descriptor = open(path, flags | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
