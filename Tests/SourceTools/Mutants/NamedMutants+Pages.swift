extension NamedMutant {
    /// All pages are looked at, and what was found in one of them is not lost.
    static let pages: [NamedMutant] = [
        .init(
            "a frame of an earlier log is taken for one of this",
            "SealedDB/Cipher/Logs/LogFollower.swift",
            .expression,
            "old.salts == new.salts",
            "true"
        ),
        .init(
            "frames are taken that the index does not have",
            "SealedDB/Cipher/Logs/LogFollower.swift",
            .expression,
            "sum.bytes == new.checksum",
            "true"
        ),
        .init(
            "a log that was missed is not noticed",
            "SealedDB/Cipher/Logs/LogFollower.swift",
            .expression,
            "new.changeCount &- changeCount > commitCount",
            "false"
        ),
        .init(
            "pages of a log that begins anew are read from it",
            "SealedDB/Cipher/Logs/LogFollower.swift",
            .statement,
            "if new.isWholeInFile { offsets = [:] }",
            ""
        ),
        .init(
            "what was changed since the last snapshot is not copied again",
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            .statement,
            "for page in changed { pending.insert(page) }",
            ""
        ),
        .init(
            "what was committed after the last snapshot is not noticed",
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            .expression,
            "end.hasSameEnd(as: reading.position)",
            "true"
        ),
        .init(
            "what was written to the file after the last snapshot is not noticed",
            "SealedDB/Cipher/Rotation/FollowedCopy.swift",
            .expression,
            "state.hasSameFile(as: copied)",
            "true"
        ),
        .init(
            "SQLite checks the structure of pages that are not authentic",
            "SealedDB/Cipher/Verification/AuthenticPages.swift",
            .expression,
            "try cipher.isAuthentic(page, number: number)",
            "true"
        ),
        .init(
            "a page with another mark is taken for the one that was authenticated",
            "SealedDB/Cipher/Verification/PageMarks.swift",
            .expression,
            "try marker.mark(page, number: number) == marks[Int(number - 1)]",
            "true"
        ),
        .init(
            "a page that was exchanged during a check is not told",
            "SealedDB/Cipher/Verification/IntegrityReport.swift",
            .statement,
            "if let page = pages?.damagedPage { damagedPages.append(page) }",
            ""
        ),
        .init(
            "a read that fails is told as damage of the structure",
            "SealedDB/Cipher/Verification/AuthenticPages.swift",
            .statement,
            "failure = error",
            "isRefused = true"
        ),
        .init(
            "a page that is in use and not authentic is copied",
            "SealedDB/Cipher/Copying/PageSource.swift",
            .statement,
            "guard !pages.isEmpty else { return }",
            "return"
        ),
        .init(
            "a page that is in use and not authentic is no damage",
            "SealedDB/Cipher/Pages/PageScan.swift",
            .expression,
            "try list.contains(number)",
            "true"
        ),
        .init(
            "a list of free pages is believed that is not authentic",
            "SealedDB/Cipher/Pages/FreePages.swift",
            .expression,
            "try cipher.isAuthentic(UnsafeRawBufferPointer(page), number: number)",
            "true"
        ),
        .init(
            "the last page of a run is left out",
            "SealedDB/Cipher/Pages/RunLine.swift",
            .expression,
            "min((run + 1) * pagesInRun, pageCount)",
            "min(run * pagesInRun + max(1, pagesInRun - 1), pageCount)"
        ),
        .init(
            "the last run of pages is left out",
            "SealedDB/Cipher/Pages/RunLine.swift",
            .expression,
            "(pageCount + pagesInRun - 1) / pagesInRun",
            "pageCount / pagesInRun"
        ),
        .init(
            "what came of pages is delivered in any order",
            "SealedDB/Cipher/Pages/RunLine.swift",
            .expression,
            "outcomes.removeValue(forKey: delivered)",
            "outcomes.popFirst()?.value"
        ),
        .init(
            "pages are taken however slow the caller is",
            "SealedDB/Cipher/Pages/RunLine.swift",
            .expression,
            "taken - delivered < mostAhead",
            "true"
        ),
        .init(
            "the failure of a worker is ignored",
            "SealedDB/Cipher/Pages/PagePipeline.swift",
            .expression,
            "try deliver(pages(numbers), outcome.get())",
            "(try? outcome.get()).map { deliver(pages(numbers), $0) } ?? true"
        ),
        .init(
            "pages are taken after a failure",
            "SealedDB/Cipher/Pages/RunLine.swift",
            .statement,
            "if case .failure = outcome { isOver = true }",
            ""
        ),
        .init(
            "nobody waits for the threads of a check",
            "SealedDB/Cipher/Pages/PagePipeline.swift",
            .statement,
            "for thread in threads { thread.join() }",
            ""
        ),
        .init(
            "the code of a page does not cover its number",
            "SealedDB/System/Cryptography.swift",
            .expression,
            "UInt32(truncatingIfNeeded: number)",
            "UInt32(truncatingIfNeeded: number & 0xff)"
        ),
        .init(
            "the page of the locks is damaged",
            "SealedDB/Cipher/Pages/CodeWorker.swift",
            .expression,
            "number != lockPage",
            "number > 0"
        ),
        .init(
            "a page that cannot be read ends the check",
            "SealedDB/Cipher/Pages/PageScan.swift",
            .statement,
            "guard error.code == SQLITE_IOERR, error.extendedCode != SQLITE_IOERR_FSTAT else { throw error }",
            "guard error.code == SQLITE_DONE else { throw error }"
        ),
        .init(
            "the last page of a run is left out of a copy",
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            .statement,
            "try file.write(UnsafeRawBufferPointer(written.pages(numbers.count)), at: offset)",
            "try file.write(UnsafeRawBufferPointer(written.pages(numbers.count - 1)), at: offset)"
        ),
        .init(
            "a run of pages is written in another place",
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            .expression,
            "(numbers.lowerBound - 1) * Int64(pageSize)",
            "numbers.lowerBound * Int64(pageSize)"
        ),
        .init(
            "a page of a copy has the code of another number",
            "SealedDB/Cipher/Pages/PageCipher+Writing.swift",
            .statement,
            "try keys.authenticate(covered, number: number, code: start + end)",
            "try keys.authenticate(covered, number: number + 1, code: start + end)"
        ),
        .init(
            "all pages of a copy have one IV",
            "SealedDB/Cipher/Pages/PageCipher+Writing.swift",
            .statement,
            "try keys.fillRandomly(UnsafeMutableRawBufferPointer(rebasing: page[contentSize...]))",
            ""
        ),
        .init(
            "what was read back of a copy is not compared",
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            .expression,
            "page.hasSameBytes(as: UnsafeRawBufferPointer(written.page(index)), count: pageSize)",
            "true"
        ),
        .init(
            "the pages of a source are not authenticated",
            "SealedDB/Cipher/Copying/TransferWorker.swift",
            .expression,
            "try sourceCipher.isAuthentic(page, number: number)",
            "true"
        ),
        .init(
            "a page that is changed on the way keeps its IV",
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            .expression,
            "hasSameKey && !amends(number)",
            "hasSameKey"
        ),
        .init(
            "a copy under the same key has the salt of its source",
            "SealedDB/Cipher/Copying/PageTransfer.swift",
            .expression,
            "try key.embeddedSalt() ?? sealing.settings.salt",
            "(sourceSalt as [UInt8]?)"
        ),
        .init(
            "a backup leaves out what is only in the log",
            "SealedDB/Cipher/Copying/StoredPages.swift",
            .expression,
            "try connection.view == nil ? StoredPages.log(connection) : nil",
            "nil as LogOverlay?"
        ),
        .init(
            "a log that lacks frames is enough for a backup",
            "SealedDB/Cipher/Copying/StoredPages.swift",
            .expression,
            "log.frameCount >= frameCount",
            "true"
        ),
        .init(
            "SQLCipher is not asked whether it can read what was written",
            "SealedDB/Cipher/Copying/SampleCheck.swift",
            .statement,
            "try tables[place].readSample(of: connection, count: max(2, SampleCheck.mostRows / chosen.count))",
            ""
        ),
        .init(
            "a backup in an open transaction sees what came after it",
            "SealedDB/Database/Files/Database+Backup.swift",
            .expression,
            "hasTransaction",
            "false"
        ),
    ]
}
