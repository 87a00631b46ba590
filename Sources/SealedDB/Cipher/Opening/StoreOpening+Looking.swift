extension StoreOpening {
    /// Opens the store only to look at it, which writes nothing, and calls `body` with the connection.
    ///
    /// Who comes meanwhile and writes makes it begin again.
    /// - Throws: ``DatabaseError/Reason/busy`` if the store is written to again and again.
    func look<T>(_ body: (Connection) throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        for _ in 0..<5 {
            let marks = path.map { StoreView.marks(of: $0) }
            let connection: Connection
            do throws(DatabaseError) {
                connection = try forLooking.open()
            } catch {
                // File and log were perhaps not of the same moment.
                guard let path, marks != StoreView.marks(of: path) else { throw error }
                continue
            }
            let result: Result<T, DatabaseError>
            do throws(DatabaseError) {
                result = .success(try body(connection))
            } catch {
                result = .failure(error)
            }
            let isStill = (connection.view as? StoreView)?.isStill() ?? true
            connection.close()
            if isStill { return try result.get() }
        }
        throw StoreOpening.isBusy(path ?? "The store")
    }

    static func isBusy(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_BUSY,
            reason: .busy,
            message: "\(path) was written to while it was looked at. Nothing was changed. Try again."
        )
    }

    /// The same for ``open()``.
    var forLooking: StoreOpening {
        var opening = self
        opening.looks = true
        opening.flags = SQLITE_OPEN_READONLY
        opening.takesLock = false
        opening.createsFirstPage = false
        return opening
    }

    /// Whether nobody can write to the file, so that SQLite's locks and indexes of logs can neither be made nor are needed.
    var isOnReadOnlyMedium: Bool {
        guard isFile, vfs == nil, let path = path.flatMap({ FileSystem.resolve($0) }) else { return false }
        return FileSystem.isOnReadOnlyMedium(path)
    }
}

extension Connection {
    /// `wal`, or `delete` for all others, which are none of the file's.
    /// <https://www.sqlite.org/fileformat.html#file_format_version_numbers>
    func storedJournalMode(_ sealing: Sealing) throws(DatabaseError) -> String {
        let start = try fileBytes(count: 100)
        let writeVersion: UInt8?
        if StoreHeader.hasMagic(start), start.count == 100 {
            writeVersion = start[18]
        } else if let key = sealing.key {
            let page = try fileBytes(count: sealing.settings.parameters.pageSize)
            let scan = PageScan(connection: self, key: key, settings: sealing.settings)
            writeVersion = try scan.pageCipher().writeVersion(page)
        } else {
            writeVersion = nil
        }
        return writeVersion == 2 ? "wal" : "delete"
    }
}
