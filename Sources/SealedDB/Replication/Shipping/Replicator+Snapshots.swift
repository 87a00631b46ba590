/// Snapshots: all pages of the store as they are at the last look.
extension Replicator {
    var isSnapshotDue: Bool {
        guard let interval = options.snapshotInterval, let lastSnapshot, let tail, tail.sequence > tail.snapshot else {
            return false
        }
        return ContinuousClock.now - lastSnapshot >= interval
    }

    /// Begins a generation, with a snapshot.
    func beginGeneration(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError) {
        // A look whose frames could not be told from others is as good as any, and so is one that is older.
        reading?.pending = nil
        reading?.blocks = []
        try makeSnapshot(reason, progress)
        hasMoved = false
        if report.madeSnapshot { report.begunBecause = reason.rawValue }
        reason = .logUnseen
    }

    func makeSnapshot(
        _ reason: SnapshotManifest.Reason,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        guard var open = reading else { return }
        // Read before the pages, and written after the slots that they may need. Within a generation they are those of the
        // object before, so that a segment with frames names none that were not named before.
        let slots = try newSlots()
        let digest = try slots.map { bytes throws(DatabaseError) in try ObjectDigest.of(bytes) }
        let slotsDigest = if let tail { tail.slots } else { digest }
        let position = open.position
        let count = try position.frameCount > 0 ? position.pageCount : PageTotals(of: open.current).count
        guard count > 0 else {
            throw DatabaseError(
                extendedCode: SQLITE_CORRUPT,
                reason: .truncated,
                message: "\(path) is empty. Nothing was shipped."
            )
        }
        let place = try open.log.place(of: position)
        let source = try PageSource(
            following: open.current,
            key: key,
            settings: settings,
            totals: PageTotals(count: count, size: open.pageSize),
            log: open.log.overlay(position, pageCount: count)
        )
        reading?.log = open.log
        let (chunks, salt) = try shipChunks(source, open.cipher, progress)
        let found = try FileMark(path)
        guard let end = try open.current.logPosition(), try !isOverwritten(open, found, end) else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    Something else than SQLite wrote to \(path) while it was read for a snapshot. No snapshot was made. Close it \
                    everywhere, and look at it with `sealdb verify`. The next attempt ships it as it is then.
                    """
            )
        }
        // Slots that were changed meanwhile are shipped behind it.
        if let slots, let digest, digest == slotsDigest {
            slotsSeen = nil
            try requireSlots(slots, digest)
        }
        let isFirst = tail == nil
        let time = max(open.time, tail?.time ?? open.time)
        guard tail != nil || newestGeneration < ObjectName.lastNumber else {
            throw .notAllowed("\(storage.name) has had too many generations. Ship to another repository.")
        }
        let manifest = SnapshotManifest(
            generation: tail?.generation ?? newestGeneration + 1,
            sequence: tail?.sequence ?? 0,
            reason: reason,
            previous: tail?.digest ?? newestDigest,
            time: time,
            pageSize: open.pageSize,
            pageCount: count,
            chunkPages: options.chunkPages,
            log: place,
            store: path,
            inode: open.inode,
            fileSalt: salt,
            slots: slotsDigest,
            chunks: chunks
        )
        if isFirst, let end = endBefore(manifest) {
            tail = end
            if let newestSnapshot { noteSnapshot(newestSnapshot.manifest) }
            return
        }
        let bytes = try manifest.bytes()
        let name = ObjectName.snapshot(generation: manifest.generation, sequence: manifest.sequence)
        if var tail {
            tail.snapshot = manifest.sequence
            try put(Writing(name: name, bytes: bytes, tail: tail))
        } else {
            // If it is there, and that is not known, the next call finds it.
            try storage.require(bytes, as: name)
            noteEnd(name, bytes)
        }
        lastSnapshot = ContinuousClock.now
        report.madeSnapshot = true
        guard isFirst else { return }
        newestGeneration = manifest.generation
        tail = Tail(
            generation: manifest.generation,
            sequence: 0,
            digest: try ObjectDigest.of(bytes),
            place: place,
            time: time,
            slots: slotsDigest,
            snapshot: 0,
            bound: PageBound(pageCount: count)
        )
    }

    /// The end of the repository, if the store is still just as it is there: pages that are written get another ciphertext. A
    /// store that nobody uses between two calls of a timer needs no generation for each.
    private func endBefore(_ manifest: SnapshotManifest) -> Tail? {
        guard let (last, end) = newestSnapshot, reason == .logUnseen, manifest.log == .none,
            last.chunks == manifest.chunks, last.pageCount == manifest.pageCount, last.pageSize == manifest.pageSize,
            last.slots == manifest.slots
        else { return nil }
        return end
    }

    /// Ships those chunks of the store that are not in the repository.
    /// - Returns: the digests of all of them, and the first bytes of the store.
    private func shipChunks(
        _ source: PageSource,
        _ cipher: PageCipher,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) -> (digests: [String], salt: [UInt8]) {
        var known = Set<String>()
        for object in try storage.objects(under: ObjectName.chunks) {
            if case .chunk(let digest)? = ObjectName(object.name) { known.insert(digest) }
        }
        let totals = source.totals
        let report = ProgressReport(totals: totals, progress: progress)
        let memory = ChunkMemory()
        let shipping = ChunkShipping(
            storage: storage,
            known: known,
            memory: memory,
            requireTime: requireTime
        )
        // What was shipped before a failure is there all the same.
        defer {
            shipping.end()
            healed += shipping.healed
            self.report.newSnapshotBytes += shipping.newBytes
        }
        var salt: [UInt8] = []
        let blank = BlankPages()
        var stop: DatabaseError?
        let chunkPages = options.chunkPages
        let pipeline = PagePipeline(
            partSize: Int(chunkPages) * totals.size,
            partCount: (totals.count + chunkPages - 1) / chunkPages
        )
        try pipeline.forEachRun { () throws(DatabaseError) in
            SnapshotWorker(source, settings.parameters.usesHMAC ? try cipher.copy() : nil, blank, chunkPages, memory)
        } deliver: { numbers, chunk in
            if salt.isEmpty { salt = Array(chunk.bytes.prefix(Key.saltByteCount)) }
            do throws(DatabaseError) {
                try shipping.add(chunk)
                try report(.copy, min(numbers.upperBound * chunkPages, totals.count))
            } catch {
                stop = error
            }
            return stop == nil
        }
        if let stop { throw stop }
        let digests = try shipping.finish()
        if try blank.requireAll(in: source, cipher) { try requireFree(source, report) }
        return (digests, salt)
    }

    /// Makes sure that no tree has the pages that are not authentic. An older list of free pages is as authentic as the present
    /// one, and with the next snapshots the retention may remove the last repository that has these pages whole.
    private func requireFree(_ source: PageSource, _ report: ProgressReport) throws(DatabaseError) {
        let problem = try StructureCheck(connection: source.scan.connection).pageProblem { () throws(DatabaseError) in
            try report(.copy, source.totals.count)
        }
        guard let problem else { return }
        throw DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                Pages of the store are not as they were written, and not all of them are free (\(problem)). No snapshot was made. \
                Look at the store with `sealdb verify`, and restore it.
                """
        )
    }

    // MARK: The log

    /// Whether the log may begin anew once the read transaction needs nothing of it.
    var canBeRelieved: Bool {
        guard let reading, tail != nil else { return false }
        return reading.isShipped && !reading.position.isWholeInFile
    }

    var needsRelief: Bool { canBeRelieved && logBytes >= max(options.relievedAt, relieved) }

    /// Lets the log begin anew, which the read transaction keeps from it, if it is long enough.
    ///
    /// While another connection has the write lock, so that nobody adds to the log, what is not shipped yet is read into
    /// memory, the log is moved into the file, and a transaction begins that needs nothing of it. The next writer then begins
    /// it anew, unless others still read from it.
    func relieveLog() throws(DatabaseError) {
        guard let open = reading, canBeRelieved else { return }
        // Nothing of a log is moved into the file that whoever opens it does not see. The next call tells of it.
        guard try !open.log.isUnseenByOthers() else { return }
        // Nor into what somebody has put there.
        let found = try FileMark(path)
        guard let now = try open.current.logPosition(), try !isOverwritten(open, found, now) else { return }
        // Most of it. If a checkpoint fails, the log goes on to grow, and this is tried again.
        _ = try? open.other.checkpoint(.passive, schema: "main")
        relieved = options.relievedAt + logBytes
        var opening = try StoreOpening.existing(path, key: key, settings: settings, busyTimeout: 1)
        opening.takesLock = false
        let writer = try Replicator.connection(opening)
        defer { writer.close() }
        do throws(DatabaseError) {
            try writer.run("BEGIN IMMEDIATE")
        } catch {
            // Others write all the time. They are not made to wait for this.
            guard error.code == SQLITE_BUSY else { throw error }
            return
        }
        // Nothing was written.
        defer { _ = writer.rollBack() }
        try moveOn()
        guard let pending = reading?.pending, pending.count * Int64(open.pageSize) <= options.relievedAt else { return }
        while let block = try readBlock() {
            reading?.blocks.append(block)
            reading?.pending?.start = block.end
        }
        // See above.
        _ = try? reading?.other.checkpoint(.passive, schema: "main")
        try moveOnWithBlocks()
        if reading?.position.isWholeInFile == true { relieved = 0 }
    }

    /// Goes to a look behind which there is nothing new, while nobody can write. What is read already stays to be shipped.
    private func moveOnWithBlocks() throws(DatabaseError) {
        let blocks = reading?.blocks ?? []
        reading?.blocks = []
        defer { reading?.blocks = blocks }
        try moveOn()
    }
}
