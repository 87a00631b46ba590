extension NamedMutant {
    /// All pages are looked at, and what was found in one of them is not lost.
    static let pages: [NamedMutant] = [
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
            "try deliver(numbers, outcome.get())",
            "(try? outcome.get()).map { deliver(numbers, $0) } ?? true"
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
    ]
}
