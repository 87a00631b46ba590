import Foundation

/// Reads a regular file, whatever stands in its place: a pipe does not make it wait, and a link is not followed.
///
/// Never for the main file of a database: closing a second descriptor would drop the locks of this process on it.
/// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
final class FileReader {
    private let descriptor: Int32

    /// `nil` if there is none, or none that can be read.
    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            return nil
        }
    }

    deinit {
        close(descriptor)
    }

    /// So many bytes; `nil` if there are fewer, or they cannot be read.
    func bytes(at offset: Int64, count: Int) -> [UInt8]? {
        guard count >= 0, offset >= 0, let end = off_t(exactly: offset) else { return nil }
        var done = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            while done < count {
                let got = pread(descriptor, buffer.baseAddress! + done, count - done, end + done)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { break }
                done += got
            }
            initialized = done
        }
        return bytes.count == count ? bytes : nil
    }
}
