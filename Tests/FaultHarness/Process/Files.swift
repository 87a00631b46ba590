import Foundation

/// Whole files, by plain system calls: a trial reads and writes a handful.
enum Files {
    typealias Bytes = [UInt8]

    static func read(_ path: String) throws -> Bytes {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path) }
        var bytes = Bytes(repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress! + count, $0.count - count) }
            guard got > 0 else { break }
            count += got
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    static func write(_ path: String, _ bytes: Bytes) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        var count = 0
        while count < bytes.count {
            let put = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + count, $0.count - count) }
            guard put > 0 else { throw failure(path) }
            count += put
        }
    }

    /// The files in a directory, and those in its directories, which have slashes in their names.
    static func names(in directory: String) throws -> [String] {
        var names: [String] = []
        for (name, isDirectory) in try entries(of: directory) {
            if isDirectory {
                names += try self.names(in: directory + "/" + name).map { name + "/" + $0 }
            } else {
                names.append(name)
            }
        }
        return names.sorted()
    }

    private static func entries(of directory: String) throws -> [(name: String, isDirectory: Bool)] {
        guard let stream = opendir(directory) else { throw failure(directory) }
        defer { closedir(stream) }
        var entries: [(name: String, isDirectory: Bool)] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { entries.append((name, Int(entry.pointee.d_type) == Int(DT_DIR))) }
        }
        return entries
    }

    /// The directories in which a file with such a name lies, the outermost first.
    static func directories(of name: String) -> [String] {
        let parts = name.split(separator: "/")
        return (0..<parts.count).dropFirst().map { parts.prefix($0).joined(separator: "/") }
    }

    /// Makes the directory hold exactly these files. Two that are alike are one with two names: nothing else that is
    /// encrypted is ever alike. Only key files may be copies of each other.
    ///
    /// A name with a slash at its end is a directory.
    static func fill(_ directory: String, with files: [String: Bytes]) throws {
        for (name, _) in try entries(of: directory) {
            let path = directory + "/" + name
            if unlink(path) != 0 { try FileManager.default.removeItem(atPath: path) }
        }
        for name in Set(files.keys.flatMap(directories)).sorted() {
            guard mkdir(directory + "/" + name, 0o700) == 0 else { throw failure(name) }
        }
        for (name, bytes) in files {
            if name.hasSuffix("/") {
                guard mkdir(directory + "/" + name, 0o700) == 0 || errno == EEXIST else { throw failure(name) }
                continue
            }
            let twin = files.first { $0.key < name && isOneWithItsLike($0.key, $0.value) && $0.value == bytes }
            if twin == nil || !isOneWithItsLike(name, bytes) { try write(directory + "/" + name, bytes) }
        }
        for (name, bytes) in files where isOneWithItsLike(name, bytes) {
            let twins = files.filter { isOneWithItsLike($0.key, $0.value) && $0.value == bytes }.keys
            if let first = twins.min(), first != name, link(directory + "/" + first, directory + "/" + name) != 0 {
                throw failure(name)
            }
        }
    }

    /// Not so are empty files, key files, the objects of a repository, the two files of slots, and the backup of a store with slots, whose pages are those
    /// of the store.
    private static func isOneWithItsLike(_ name: String, _ bytes: Bytes) -> Bool {
        !bytes.isEmpty && bytes.count != TestKey.old.fileContents.count && !name.contains(".slots")
            && !name.contains("copy") && !name.contains("/")
    }

    static func contents(of directory: String) throws -> [String: Bytes] {
        var files: [String: Bytes] = [:]
        for name in try names(in: directory) { files[name] = try read(directory + "/" + name) }
        return files
    }

    /// Whether the bytes hold this sequence.
    static func contains(_ bytes: Bytes, _ sequence: Bytes) -> Bool {
        bytes.withUnsafeBytes { buffer in
            guard var next = buffer.baseAddress else { return false }
            let end = next + buffer.count
            while end - next >= sequence.count,
                let found = memchr(next, Int32(sequence[0]), end - next - sequence.count + 1)
            {
                if memcmp(found, sequence, sequence.count) == 0 { return true }
                next = UnsafeRawPointer(found) + 1
            }
            return false
        }
    }

    private static func failure(_ path: String) -> HarnessError {
        HarnessError("\(path): \(String(cString: strerror(errno)))")
    }
}
