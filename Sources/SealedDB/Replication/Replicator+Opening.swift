import Foundation

/// Opening the store, and finding out where the repository ends.
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
        let first = try Replicator.connection(opening)
        do throws(DatabaseError) {
            let second = try Replicator.connection(opening)
            do throws(DatabaseError) {
                let slots = try SlotCopy(opening, key, first)
                let began = ContinuousClock.now
                let position = try Replicator.look(first, path)
                let pageSize = try PageTotals(of: first).size
                guard pageSize == settings.parameters.pageSize else {
                    throw .unusableSettings("The store has pages of \(pageSize) bytes, which do not fit its settings.")
                }
                reading = FollowedStore(
                    current: first,
                    other: second,
                    log: FollowedLog(path: path, pageSize: pageSize),
                    position: position,
                    time: .now,
                    began: began,
                    cipher: try PageScan(connection: first, key: key, settings: settings).pageCipher(),
                    pageSize: pageSize,
                    inode: UInt64(try FileSystem.status(path).st_ino),
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
                snapshot: last
            )
            newestDigest = found.digest
            let end = newest.end(after: last)
            guard end == max(last, newest.segments.last ?? 0) else { return }
            if end > last {
                let segment = try reader.segment(newest.number, end)
                found.sequence = end
                found.digest = segment.digest
                found.place = segment.header.end
                found.time = max(found.time, segment.header.time)
                found.slots = segment.header.slots
                newestDigest = found.digest
            } else {
                newestSnapshot = (manifest, found)
            }
            try goOn(manifest, found)
        } catch {
            // It is told by the reason of the new generation. What cannot be read for the moment is no damage.
            guard error.reason == .damaged else { throw error }
        }
    }

    private func goOn(_ manifest: SnapshotManifest, _ end: Tail) throws(DatabaseError) {
        guard var open = reading else { return }
        guard manifest.inode == open.inode, try open.current.mainFileHeader() == manifest.fileSalt else {
            reason = .replaced
            return
        }
        guard ExactText(manifest.store) == ExactText(path) else {
            reason = .moved
            return
        }
        reason = .logUnseen
        guard manifest.pageSize == open.pageSize,
            let pending = try open.log.frames(behind: end.place, to: open.position)
        else {
            reading = open
            return
        }
        open.pending = pending
        reading = open
        tail = end
        noteSnapshot(manifest)
    }

    /// Notes when the last snapshot was made, which was not by this object, and by another clock.
    func noteSnapshot(_ manifest: SnapshotManifest) {
        let age = max(0, RepositoryTime.now.milliseconds - manifest.time.milliseconds)
        lastSnapshot = ContinuousClock.now - .milliseconds(age)
    }
}
