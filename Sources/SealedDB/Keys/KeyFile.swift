import Foundation

/// Files that hold a key.
public enum KeyFile {
    /// Writes a new random raw key as 64 hex digits and a newline, with mode 0600, and syncs it to disk. An existing
    /// file is never overwritten.
    /// - Throws: ``DatabaseError/Reason/alreadyExists``, ``DatabaseError/Reason/cannotCreate``, or an I/O error. No
    ///   file is left then, except if only the sync of the directory failed: the message says that the file is
    ///   complete.
    public static func create(atPath path: String) throws(DatabaseError) {
        let key = try Key.random()
        try SecretBytes.withScratch(count: key.byteCount * 2 + 1) { line throws(DatabaseError) in
            line[try key.encode(to: line)] = UInt8(ascii: "\n")
            try SecretFile.create(atPath: path, what: "key file", UnsafeRawBufferPointer(line))
        }
    }

    /// Writes a new random raw key as 64 hex digits and a newline to an open descriptor, such as a pipe to a program that
    /// keeps it. The descriptor stays open.
    /// - Throws: ``DatabaseError`` with ``DatabaseError/Reason/ioError``. A part of the key may have been written then.
    public static func write(toDescriptor descriptor: Int32) throws(DatabaseError) {
        let key = try Key.random()
        try SecretBytes.withScratch(count: key.byteCount * 2 + 1) { line throws(DatabaseError) in
            line[try key.encode(to: line)] = UInt8(ascii: "\n")
            let bytes = UnsafeRawBufferPointer(line)
            try SecretFile.write(bytes, toDescriptor: descriptor, "descriptor \(descriptor)", what: "key to")
        }
    }

    /// The most bytes that a key file, or any other source of a key, may have.
    static let sizeLimit = 4096

    /// A raw key from 64 hex digits with an optional newline, or from exactly 32 bytes.
    static func rawKey(in contents: SecretBytes, name: String) throws(DatabaseError) -> Key {
        try contents.withBytes { bytes throws(DatabaseError) in
            if bytes.count == Key.rawByteCount {
                // A file system that loses what was written leaves zeros, and no source of keys gives them.
                guard bytes.contains(where: { $0 != 0 }) else {
                    throw .malformedKey("\(name) holds nothing but zeros. What was written to it was lost.")
                }
                return try Key.raw(bytes)
            }
            let digits = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
            guard digits.count == Key.rawByteCount * 2 else {
                throw .malformedKey(
                    """
                    \(name) holds \(bytes.count) bytes, neither 64 hex digits with an optional newline nor 32 raw \
                    bytes. (A passphrase has sources of its own.)
                    """
                )
            }
            do throws(DatabaseError) {
                return try Key.raw(hexadecimal: UnsafeRawBufferPointer(rebasing: digits))
            } catch {
                throw error.adding(context: name)
            }
        }
    }

    /// A passphrase from the contents, without one newline at their end.
    static func passphrase(in contents: SecretBytes, name: String) throws(DatabaseError) -> Key {
        try contents.withBytes { bytes throws(DatabaseError) in
            guard !bytes.contains(0) else {
                throw .malformedKey(
                    """
                    \(name) holds a NUL byte, so it is no passphrase in UTF-8 (but perhaps in UTF-16, or a raw key, \
                    which has sources of its own).
                    """
                )
            }
            let text = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
            do throws(DatabaseError) {
                return try Key.passphrase(UnsafeRawBufferPointer(rebasing: text))
            } catch {
                throw error.adding(context: name)
            }
        }
    }
}
