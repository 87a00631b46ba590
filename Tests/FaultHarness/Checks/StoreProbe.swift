import Foundation
import RawStore
import SQLiteEngine

/// What a key finds in a file.
enum Finding: Sendable {
    case absent
    /// The key does not open it.
    case locked
    /// The key opens it, and every page, the structure and the contents were read.
    case whole(Contents)
    case damaged(String)
}

/// Opens stores as any SQLCipher program would, and reads all of them.
enum StoreProbe {
    static func find(_ path: String, key: String?, pragmas: [String] = []) -> Finding {
        var status = stat()
        guard lstat(path, &status) == 0 else { return .absent }
        do throws(RawConnection.Failure) {
            let connection = try RawConnection(path, key: key, pragmas: pragmas)
            do throws(RawConnection.Failure) {
                _ = try connection.value("SELECT count(*) FROM sqlite_schema")
            } catch {
                if error.code == SQLITE_NOTADB { return .locked }
                throw error
            }
            // The codes are those of the file. What the log holds for it counts too, and may replace what was torn.
            _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            if key != nil {
                let pages = try connection.rows("PRAGMA cipher_integrity_check")
                guard pages.isEmpty else {
                    return .damaged("cipher_integrity_check: \(pages.prefix(5).joined().joined(separator: ", "))")
                }
            }
            let structure = try connection.rows("PRAGMA integrity_check")
            guard structure == [["ok"]] else {
                return .damaged("integrity_check: \(structure.prefix(5).joined().joined(separator: ", "))")
            }
            // SQLite opens it with any key.
            guard try connection.value("PRAGMA page_count") != "0" else { return .damaged("it is empty") }
            return .whole(try Contents(of: connection))
        } catch {
            return .damaged("\(error)")
        }
    }
}
