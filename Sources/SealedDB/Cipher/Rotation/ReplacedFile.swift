internal import CSealedDBSystem
import Foundation

/// Keeps a file that has lost its name, so that its blocks are not freed before ``free()``.
///
/// The system frees them when nobody has the file open any more. With 2 GiB that takes up to half a second, and commits of
/// other files wait for it. A rotation in service closes the old file while callers wait, so it frees the blocks later, and
/// in pieces.
final class ReplacedFile {
    private let file: stat
    /// Opened with `O_PATH`. To close another descriptor would give back all locks that SQLite has on the file.
    /// <https://man7.org/linux/man-pages/man2/open.2.html>
    /// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
    private let descriptor: Int32

    /// To free so many takes some milliseconds.
    static let bytesOfPiece: Int64 = 16 << 20

    /// - Parameters:
    ///   - descriptor: any that this process has for the file.
    ///   - file: the file that it must be.
    /// - Returns: `nil` if it is another one, or cannot be kept. It is then freed when it is closed.
    init?(_ descriptor: Int32, of file: stat) {
        let own = sealeddb_keep_file(descriptor)
        guard own >= 0 else { return nil }
        guard ReplacedFile.status(own)?.isSameFile(as: file) == true else {
            // Nothing was written through it, here and below.
            close(own)
            return nil
        }
        (self.descriptor, self.file) = (own, file)
    }

    private static func status(_ descriptor: Int32) -> stat? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status : nil
    }

    /// Frees the blocks, but for those of the first piece, which go with this object. No connection of this process may have
    /// the file open.
    ///
    /// The first page stays, which ``RotationSource/spoil(_:)`` has made useless: SQLite takes an empty file for a new database,
    /// and a program that had opened the old file at the last moment would write to it. If one of these calls fails, the
    /// system frees what is left as soon as nobody has the file open.
    func free() {
        let writable = sealeddb_open("/proc/self/fd/\(descriptor)", O_WRONLY, 0)
        guard writable >= 0 else { return }
        // What was written to it is not needed any more.
        defer { close(writable) }
        // With a name it is somebody's copy, and whoever has it open may be reading it.
        guard let status = ReplacedFile.status(writable), status.isSameFile(as: file), status.st_nlink == 0,
            FileUsers.isOnly(writable)
        else { return }
        var size = Int64(status.st_size)
        while size > ReplacedFile.bytesOfPiece {
            size = max(ReplacedFile.bytesOfPiece, size - ReplacedFile.bytesOfPiece)
            guard ftruncate(writable, off_t(size)) == 0 else { return }
        }
    }

    deinit {
        // As above.
        close(descriptor)
    }
}
