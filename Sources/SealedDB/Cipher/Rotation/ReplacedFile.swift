internal import CSealedDBSystem
import Foundation

/// Keeps a file that has lost its name, so that its blocks are not freed before ``free()``.
///
/// The system frees them when nobody has the file open any more. With 2 GiB that takes up to half a second, and commits of
/// other files wait for it. A rotation in service closes the old file while callers wait, so it frees the blocks later, and
/// in pieces.
final class ReplacedFile {
    /// Opened with `O_PATH`. To close another descriptor would give back all locks that SQLite has on the file.
    /// <https://man7.org/linux/man-pages/man2/open.2.html>
    /// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
    private let descriptor: Int32

    private static let bytesOfPiece: Int64 = 16 << 20

    /// - Parameter descriptor: any that this process has for the file.
    /// - Returns: `nil` if it cannot be kept. It is then freed when it is closed.
    init?(_ descriptor: Int32) {
        let own = sealeddb_keep_file(descriptor)
        guard own >= 0 else { return nil }
        self.descriptor = own
    }

    /// Frees the blocks. Nobody in this process may have the file open otherwise.
    ///
    /// If one of these calls fails, the system frees what is left, as soon as this object goes.
    func free() {
        let file = sealeddb_open("/proc/self/fd/\(descriptor)", O_WRONLY, 0)
        guard file >= 0 else { return }
        // What was written to it is not needed any more.
        defer { close(file) }
        var status = stat()
        // With a name it is somebody's copy.
        guard fstat(file, &status) == 0, status.st_nlink == 0 else { return }
        var size = Int64(status.st_size)
        while size > 0 {
            size = max(0, size - ReplacedFile.bytesOfPiece)
            guard ftruncate(file, off_t(size)) == 0 else { return }
        }
    }

    deinit {
        // Nothing was written through it.
        close(descriptor)
    }
}
