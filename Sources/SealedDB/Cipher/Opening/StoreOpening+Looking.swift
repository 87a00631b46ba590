extension StoreOpening {
    /// Opens the store for reading, without writing anything, even beside it, and calls `body` with the connection.
    ///
    /// If somebody writes to the store meanwhile, this begins again, up to five times, so `body` may be called several
    /// times.
    /// - Throws: ``DatabaseError/Reason/busy`` if the store is written to each time.
    func look<T>(_ body: (Connection) throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        for _ in 0..<5 {
            let marks = path.map { StoreView.marks(of: $0) }
            let connection: Connection
            do throws(DatabaseError) {
                connection = try forLooking.open()
            } catch {
                // The file and its log may have been read at different moments.
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

    /// The same opening, set up so that ``open()`` only reads and writes nothing.
    var forLooking: StoreOpening {
        var opening = self
        opening.looks = true
        opening.flags = SQLITE_OPEN_READONLY
        opening.takesLock = false
        opening.createsFirstPage = false
        return opening
    }

    /// Whether nobody can write to the file because of its medium. SQLite's locks and log indexes can then not be made,
    /// and are not needed.
    var isOnReadOnlyMedium: Bool {
        guard isFile, vfs == nil, let path = path.flatMap({ FileSystem.resolve($0) }) else { return false }
        return FileSystem.isOnReadOnlyMedium(path)
    }
}

extension Connection {
    /// The journal mode that is stored in the file: `wal`, or `delete` for all other modes, which SQLite does not
    /// store. <https://www.sqlite.org/fileformat.html#file_format_version_numbers>
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
