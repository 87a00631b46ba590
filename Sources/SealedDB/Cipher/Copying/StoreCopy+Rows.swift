/// Copies whose page layout is another than the source's.
extension StoreCopy {
    /// Refuses a source whose structure is damaged. A write that the disk has lost leaves an older page, which is authentic: the
    /// copy would hold the rows to which SQLite still finds a way, and have new indexes, which no longer tell that others are
    /// missing.
    /// - Parameter source: a connection in a transaction, that of the copy.
    func requireSoundSource(_ source: Connection, _ own: Sealing, _ report: ProgressReport) throws(DatabaseError) {
        let findings: StructureCheck.Findings
        do throws(DatabaseError) {
            // Rows that violate a CHECK constraint may be older than it.
            let accept = "PRAGMA ignore_check_constraints = ON"
            if try StoredPages.canRead(source) {
                let (connection, reader) = try SourcePages(reading: source, own).open()
                defer { connection.close() }
                findings = try reader.explaining { () throws(DatabaseError) in
                    try connection.run(accept)
                    try StructureCheck.keepPages(connection)
                    return try StructureCheck(connection: connection).findings(.deep, report)
                }
            } else {
                try source.run(accept)
                findings = try StructureCheck(connection: source).findings(.deep, report)
            }
        } catch {
            guard error.isOfStructure else { throw error }
            throw StoreCopy.damagedSource([error.message], isPlaintext: own.key == nil)
        }
        guard findings.problems.isEmpty else {
            throw StoreCopy.damagedSource(findings.problems, isPlaintext: own.key == nil)
        }
    }

    static func damagedSource(_ problems: [String], isPlaintext: Bool = false) -> DatabaseError {
        let sentences = problems.prefix(5).map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        return DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                The structure of the source is damaged: \(sentences.joined(separator: "; ")). The new file was discarded. \
                Keep a copy of the source. Restore a backup, or save what it holds with \
                \(isPlaintext ? "`.recover` of SQLite's shell" : "`sealdb recover`"). If all rows are there, REINDEX makes indexes \
                anew, and VACUUM drops pages that are never used.
                """
        )
    }

    /// - Parameter own: how the source is sealed, if its pages are read from its file.
    /// - Returns: the ``ContentDigest`` of the source.
    func copyRows(
        from source: Connection,
        _ own: Sealing?,
        _ sealing: Sealing,
        _ totals: PageTotals,
        setsWAL: Bool,
        report: ProgressReport
    ) throws(DatabaseError) -> [UInt8] {
        let connection = try openTarget(sealing)
        defer { connection.close() }
        if sealing.key == nil { try connection.run("PRAGMA page_size = \(totals.size)") }
        // Indexes are filled in the order of the rows, not in their own, which needs a large cache.
        try connection.run("PRAGMA cache_size = -65536")
        let pageSize = Int64(try connection.integer("PRAGMA page_size") ?? 4096)
        let digest = try source.snapshot { () throws(DatabaseError) in
            // A database without pages has none to be read.
            if let own, totals.count > 0, try StoredPages.canRead(source) {
                return try copyRows(SourcePages(reading: source, own), to: connection, report)
            }
            let read = try RowCopy(source: source, target: connection).run { pages throws(DatabaseError) in
                try report(.copy, min(pages * pageSize / Int64(totals.size), totals.count))
            }
            guard let read else { throw unverified("its source was not read") }
            return read
        }
        try report(.copy, totals.count)
        try finish(connection, setsWAL: setsWAL)
        return digest
    }

    /// Copies what the pages hold, and computes its digest on another thread.
    private func copyRows(
        _ pages: SourcePages,
        to connection: Connection,
        _ report: ProgressReport
    ) throws(DatabaseError) -> [UInt8] {
        let work = ParallelWork { report throws(DatabaseError) in
            let (source, reader) = try pages.open()
            defer { source.close() }
            source.acceptUnknownCollations()
            return try reader.explaining { () throws(DatabaseError) in
                // In a damaged structure, SQLite may follow pages without end that it has read already.
                try source.whileReading { _ throws(DatabaseError) in
                    try report(0)
                } _: { () throws(DatabaseError) in
                    try ContentDigest.of(source)
                }
            }
        }
        do throws(DatabaseError) {
            try copyRows(pages, connection, report) { () throws(DatabaseError) in
                // Without a digest, the copy is worth nothing. A record that is damaged could be copied as gigabytes.
                try work.requireNoFailure()
            }
            return try work.result { _ throws(DatabaseError) in try report(.copy, report.totals.count) }
        } catch {
            work.stop()
            throw error
        }
    }

    /// - Parameter goOn: called now and then. If it throws, the copy ends.
    private func copyRows(
        _ pages: SourcePages,
        _ connection: Connection,
        _ report: ProgressReport,
        goOn: @escaping () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let (source, schemaReader) = try pages.open()
        defer { source.close() }
        var count: Int64 = 0
        let tell = { () throws(DatabaseError) in
            try goOn()
            try report(.copy, min(count, report.totals.count))
        }
        let rows = SourceReader(pages) { () throws(DatabaseError) in
            count += 1
            try tell()
        }
        let served = try ServedFile(rows)
        try schemaReader.explaining { () throws(DatabaseError) in
            try rows.explaining { () throws(DatabaseError) in
                let copy = RowCopy(source: source, target: connection, served: served)
                // What is written can take long without a page that is read.
                try connection.whileReading { _ throws(DatabaseError) in
                    try tell()
                } _: { () throws(DatabaseError) in
                    _ = try copy.run { _ throws(DatabaseError) in try tell() }
                }
            }
        }
    }

    /// Verifies a file whose rows were written. What it holds is read on another thread while its pages are checked.
    /// - Parameter digest: the ``ContentDigest`` of what was written.
    func verifyRows(
        _ sealing: Sealing,
        digest: [UInt8],
        _ progress: ProgressReport
    ) throws(DatabaseError) -> PageTotals {
        let connection = try opening(sealing).open()
        defer { connection.close() }
        let isPlaintext = try StoreHeader.isPlaintext(connection.fileBytes(count: 100))
        guard isPlaintext == (sealing.key == nil) else {
            throw unverified(isPlaintext ? "it is plaintext" : "it is no plaintext database")
        }
        let isAuthenticated = sealing.key != nil && sealing.settings.parameters.usesHMAC
        // The phase begins before the file is read: what its caller finds in it now is what is compared.
        try progress(isAuthenticated ? .verify : .structure, 0)
        // Two connections that close at the same time would leave the log behind.
        let work = contents(sealing)
        let report: IntegrityReport
        let rows: [UInt8]
        do throws(DatabaseError) {
            // Rows that violate a CHECK constraint of the schema violated it in the source too.
            try connection.run("PRAGMA ignore_check_constraints = ON")
            report = try IntegrityReport.check(
                connection,
                path: path,
                sealing: sealing,
                report: progress.part(to: 0.9)
            )
            guard report.isSound, report.damagedFreePages.isEmpty else {
                let pages = report.pagesNotAsWritten.prefix(5).map { "page \($0)" }
                throw unverified((pages + report.structureProblems.prefix(5)).joined(separator: "; "))
            }
            let comparing = progress.of(PageTotals(count: report.pageCount, size: report.pageSize)).part(from: 0.9)
            try comparing(.compare, 0)
            rows = try work.result { read throws(DatabaseError) in try comparing(.compare, min(read, report.pageCount))
            }
            try comparing(.compare, report.pageCount)
        } catch {
            work.stop()
            throw error
        }
        guard rows == digest else { throw unverified("its contents are not those of the source") }
        guard connection.close() else { throw unverified("it could not be closed") }
        return PageTotals(count: report.pageCount, size: report.pageSize)
    }

    /// Computes the ``ContentDigest`` of the file on another thread, over a connection of its own.
    private func contents(_ sealing: Sealing) -> ParallelWork<[UInt8]> {
        let opening = opening(sealing)
        return ParallelWork { report throws(DatabaseError) in
            let connection = try opening.open()
            defer { connection.close() }
            connection.acceptUnknownCollations()
            let digest = try connection.whileReading { read throws(DatabaseError) in
                try report(read)
            } _: { () throws(DatabaseError) in
                try ContentDigest.of(connection)
            }
            guard connection.close() else {
                throw DatabaseError(
                    extendedCode: SQLITE_IOERR,
                    message: "A connection to the new file could not be closed."
                )
            }
            return digest
        }
    }
}
