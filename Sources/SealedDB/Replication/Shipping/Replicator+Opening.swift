/// Opening the store, and finding out where its repository ends.
extension Replicator {
    func open() throws(DatabaseError) {
        var opening = try StoreOpening.existing(
            path,
            key: key,
            settings: settings,
            busyTimeout: options.busyTimeout.seconds
        )
        opening.acceptsOlderSlots = options.acceptsOlderSlots
        try LogDamage.requireNone(ofStore: path)
        let first: Connection
        do throws(DatabaseError) {
            first = try Replicator.connection(opening)
        } catch {
            // The file's first page is of this key, and the one in the log is not.
            throw error.code == SQLITE_NOTADB && error.reason == .sqlite ? Replicator.rekeyed(path) : error
        }
        do throws(DatabaseError) {
            let second = try Replicator.connection(opening)
            do throws(DatabaseError) {
                let lock = try ShipperLock(path, timeout: options.busyTimeout.seconds)
                let slots = try SlotCopy(opening, key, first)
                let began = ContinuousClock.now
                let position = try Replicator.look(first, path)
                var log = FollowedLog(path: path, pageSize: settings.parameters.pageSize)
                try log.open()
                guard log.hasIndex else { throw Replicator.isWithoutIndex(path) }
                let mark = try FileMark(path)
                let pageSize = try PageTotals(of: first).size
                guard pageSize == settings.parameters.pageSize else {
                    throw .unusableSettings("The store has pages of \(pageSize) bytes, which do not fit its settings.")
                }
                reading = FollowedStore(
                    current: first,
                    other: second,
                    log: log,
                    position: position,
                    time: .now,
                    began: began,
                    mark: mark,
                    cipher: try PageScan(connection: first, key: key, settings: settings).pageCipher(),
                    pageSize: pageSize,
                    inode: UInt64(try FileSystem.status(path).st_ino),
                    lock: lock,
                    slots: slots.map { ($0.sealed.bytes, $0.owner) }
                )
                relieved = 0
                if tail == nil { try resume() }
            } catch {
                // This and the next have only read.
                second.close()
                throw error
            }
        } catch {
            first.close()
            reading = nil
            throw error
        }
    }

    /// A connection that leaves the log as it is when it is closed: the next shipper goes on with it.
    static func connection(_ opening: StoreOpening) throws(DatabaseError) -> Connection {
        let connection = try opening.open()
        do throws(DatabaseError) {
            try connection.setCheckpointsOnClose(false)
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    /// Begins a read transaction, and returns where the log ends.
    static func look(_ connection: Connection, _ path: String) throws(DatabaseError) -> LogPosition {
        try connection.run("BEGIN")
        _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
        guard let position = try connection.logPosition() else {
            throw DatabaseError(
                extendedCode: SQLITE_MISUSE,
                reason: .unsupported,
                message: """
                    \(path) is not in WAL mode, and only what passes through its write-ahead log can be shipped. Nothing was \
                    shipped. Put it into that mode once (`sealdb exec STORE 'PRAGMA journal_mode = WAL'`); or make backups.
                    """
            )
        }
        return position
    }

    /// Finds out where the repository ends, and whether the log still has what comes behind that.
    private func resume() throws(DatabaseError) {
        let contents = try RepositoryContents(storage)
        newestGeneration = contents.lastNumber
        guard let newest = contents.generations.last, let last = newest.snapshots.last else {
            reason = .first
            return
        }
        newestDigest = nil
        newestSnapshot = nil
        if reason == .first { reason = .damaged }
        let reader = RepositoryReader(storage: storage)
        do throws(DatabaseError) {
            let (manifest, digest) = try reader.snapshot(newest.number, last)
            guard ExactText(manifest.store) == ExactText(path) || options.adopts else {
                throw DatabaseError(
                    extendedCode: SQLITE_CANTOPEN,
                    reason: .alreadyExists,
                    message: """
                        \(storage.name) is the repository of \(manifest.store), and not of \(path). Nothing was shipped. Give \
                        each store a repository of its own. If this is that store in another place, say so (--adopt).
                        """
                )
            }
            var found = Tail(
                generation: newest.number,
                sequence: last,
                digest: last == 0 ? digest : manifest.previous ?? digest,
                place: manifest.log,
                time: manifest.time,
                slots: manifest.slots,
                snapshot: last,
                bound: PageBound(pageCount: manifest.pageCount)
            )
            newestDigest = found.digest
            let end = newest.end(after: last)
            // Where the retention has removed the end, something newer was there, which is lost.
            guard newest.cut == nil, end == max(last, newest.segments.last ?? 0) else { return }
            // Whoever has written the last one may have been killed before its name was durable.
            let name: ObjectName =
                end > last
                ? .segment(generation: newest.number, sequence: end)
                : .snapshot(generation: newest.number, sequence: last)
            try storage.makeDurable([name.text])
            if end > last {
                let segment = try reader.segment(newest.number, end)
                found.sequence = end
                found.digest = segment.digest
                found.place = segment.header.end
                found.time = max(found.time, segment.header.time)
                found.slots = segment.header.slots
                found.bound = try bound(after: end, of: manifest, reader)
                newestDigest = found.digest
            } else {
                newestSnapshot = (manifest, found)
            }
            guard !hasMoved else {
                reason = .damaged
                return
            }
            try requireWhole(manifest, storage.objects(under: ObjectName.chunks), contents, reader)
            try goOn(manifest, found)
        } catch {
            // It is told by the reason of the new generation. What cannot be read for the moment is no damage.
            guard error.reason == .damaged else { throw error }
        }
    }

    /// The most pages that the store can have had after a segment. What was shipped was within that.
    private func bound(
        after end: Int64,
        of manifest: SnapshotManifest,
        _ reader: RepositoryReader
    ) throws(DatabaseError) -> PageBound {
        var first = end
        var commits = try reader.header(manifest.generation, end).commits
        while commits.isEmpty, first > manifest.sequence + 1 {
            first -= 1
            commits = try reader.header(manifest.generation, first).commits
        }
        var bound = PageBound(pageCount: commits.reduce(manifest.pageCount) { max($0, $1.pageCount) })
        for sequence in first...end {
            let (header, bytes, _) = try reader.segment(manifest.generation, sequence)
            // Within the bound, which is that of its own transactions.
            _ = bound.read(bytes[header.offset...], pageSize: header.pageSize)
        }
        return bound
    }

    private func goOn(_ manifest: SnapshotManifest, _ end: Tail) throws(DatabaseError) {
        guard var open = reading else { return }
        guard manifest.inode == open.inode, try open.current.mainFileHeader() == manifest.fileSalt else {
            if reason != .replacedUnseen { reason = .replaced }
            return
        }
        guard ExactText(manifest.store) == ExactText(path) else {
            reason = .moved
            return
        }
        guard try !hadOtherKey(manifest, open) else {
            reason = .rekeyed
            return
        }
        if reason != .logReplaced { reason = .logUnseen }
        guard manifest.pageSize == open.pageSize,
            let pending = try open.log.frames(behind: end.place, to: open.position)
        else {
            reading = open
            return
        }
        open.pending = pending
        reading = open
        (tail, reason) = (end, .logUnseen)
        noteSnapshot(manifest)
    }

    /// Whether the store had another key when this snapshot was made.
    private func hadOtherKey(_ manifest: SnapshotManifest, _ open: FollowedStore) throws(DatabaseError) -> Bool {
        guard settings.parameters.usesHMAC, manifest.pageSize == open.pageSize, let digest = manifest.chunks.first
        else { return false }
        let name = ObjectName.chunk(digest)
        let start = try storage.read(name.text, limit: open.pageSize) ?? []
        if start.count == open.pageSize, try open.cipher.isAuthentic(start, number: 1) { return false }
        // If it is damaged, that is told instead.
        _ = try RepositoryReader(storage: storage).contents(name, digest: digest)
        return true
    }

    // MARK: Another key

    /// What another error says in truth, if the store has another key now: that was changed in place.
    func explained(_ error: DatabaseError) -> DatabaseError {
        guard let open = reading, [SQLITE_NOTADB, SQLITE_CORRUPT].contains(error.code),
            // Where that cannot be read, the error stays.
            let isOwn = try? isOwn(newestFirstPage(open), open.cipher), !isOwn
        else { return error }
        return Replicator.rekeyed(path)
    }

    /// Page 1 as it is in the log, or else in the file.
    private func newestFirstPage(_ open: FollowedStore) throws(DatabaseError) -> [UInt8] {
        if let log = try LogOverlay(logOf: path), let page = try log.bytes(ofPage: 1, from: 0, count: open.pageSize) {
            return page
        }
        return try open.current.fileBytes(count: open.pageSize)
    }

    private func isOwn(_ page: [UInt8], _ cipher: PageCipher) throws(DatabaseError) -> Bool {
        settings.parameters.usesHMAC ? try cipher.isAuthentic(page, number: 1) : try cipher.decryptsHeader(page)
    }

    static func rekeyed(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_NOTADB,
            reason: .wrongKey,
            message: """
                \(path) has another key than the shipper: its first page was not written with the shipper's (or was changed, \
                which looks the same). Nothing of what was committed with another key was shipped; what was shipped before \
                stays, and opens with the key of then. Start the shipper again with the new key: that begins a new generation.
                """
        )
    }

    /// Notes when the last snapshot was made, which was not by this object, and by another clock.
    func noteSnapshot(_ manifest: SnapshotManifest) {
        let age = max(0, RepositoryTime.now.milliseconds - manifest.time.milliseconds)
        lastSnapshot = ContinuousClock.now - .milliseconds(age)
    }
}
