/// Writes the pages of a store to a new file, under another key or the same one, on all processors.
///
/// Each page of the source is authenticated, decrypted, encrypted with a fresh IV and written. It is then read back from
/// the file, compared with what was written, decrypted, and compared with what the source's page holds.
///
/// Also under the same key, the new file has a salt of its own. With the salt of the source, a log of the source that is
/// left beside the copy would be taken for the copy's own; see ``LogDamage/requireOwnPages(ofStore:onlyReads:cipher:store:)``. With
/// the salt, the key of the codes is another one, and the key that is derived from a passphrase. A raw key encrypts pages
/// as it is, so their ciphertext is copied as it is, and each page gets a new code. A page that is changed on the way is
/// encrypted anew: no IV is used for two contents.
///
/// A free page need not be authentic; see ``FreePages``. The new file gets one that holds zeros.
struct PageTransfer {
    /// The journal mode of the new file, as its header has it.
    enum Mode {
        /// As the source has it.
        case kept
        case wal
    }

    private(set) var source: PageSource
    let mode: Mode
    /// The page that SQLite neither reads nor writes. It is not copied.
    var lockPage: Int64
    let sourceCipher: PageCipher
    let targetCipher: PageCipher
    /// Whether the pages of both files are encrypted with the same key, and have the same plaintext header.
    private let hasSameKey: Bool
    /// The pages of the source that are copied as zeros.
    private(set) var blank = BlankPages()

    /// How many bytes are compared before the system is told to begin to write them to the disk.
    private static let bytesInPart: Int64 = 1 << 20
    /// Whether others commit to this disk meanwhile, and should not wait long for it.
    var sharesDisk = false
    /// How many parts the disk then writes at a time.
    private static let mostPartsUnderWay = 2

    /// - Parameter sealing: how the new file is encrypted. It must have a key, and the layout of the source.
    init(_ source: PageSource, to sealing: Sealing, _ mode: Mode) throws(DatabaseError) {
        guard let key = sealing.key else { throw .notOpen }
        precondition(sealing.hasLayout(of: source.sealing), "Pages of the same form are copied.")
        (self.source, self.mode) = (source, mode)
        lockPage = PageScan.lockPage(pageSize: source.totals.size)
        let (parameters, others) = (sealing.settings.parameters, source.scan.settings.parameters)
        let (sourceSecret, sourceSalt) = try source.scan.pageKey()
        sourceCipher = try PageCipher(key: sourceSecret, salt: sourceSalt, parameters: others)
        // The salt of the new file is that of the key or of the settings, or else a new one.
        let given = try key.embeddedSalt() ?? sealing.settings.salt
        let salt = if let given { given } else { try PageKeys.randomBytes(count: Key.saltByteCount) }
        let secret = try key.encryptionKey(salt: salt, by: parameters.keyDerivation)
        targetCipher = try PageCipher(key: secret, salt: salt, parameters: parameters)
        hasSameKey =
            secret.isEqual(to: sourceSecret) && parameters.plaintextHeaderSize == others.plaintextHeaderSize
    }

    /// Whether the page is copied as it is encrypted.
    func keepsCiphertext(ofPage number: Int64) -> Bool { hasSameKey && !amends(number) }

    /// The same transfer, of the store as it is at another moment.
    init(_ source: PageSource, continuing former: PageTransfer) {
        self = former
        self.source = source
    }

    /// Writes all pages. The file must be empty. It is not synced.
    /// - Parameter progress: called with the number of pages that are written and compared. If it throws, the call ends.
    func run(
        into file: NewFile,
        progress: (_ completedPages: Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let totals = source.totals
        if totals.count > 0 { try copy(1...totals.count, into: file, progress: progress) }
        guard try file.mark().size == totals.count * Int64(totals.size) else {
            throw PageTransfer.different(totals.count)
        }
    }

    /// Writes these pages to their places.
    /// - Parameter progress: called with the last of the pages that are written and compared, of which none is left out. If
    ///   it throws, the call ends.
    func copy(
        _ numbers: ClosedRange<Int64>,
        into file: NewFile,
        progress: (_ lastPage: Int64) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let pageSize = Int64(source.totals.size)
        let pipeline = PagePipeline(pageSize: source.totals.size, pages: numbers)
        var completed = numbers.lowerBound - 1
        var begun = completed * pageSize
        var partsUnderWay: [Range<Int64>] = []
        var stop: DatabaseError?
        blank.forget()
        try pipeline.forEachRun { () throws(DatabaseError) in
            try TransferWorker(self, file, pageCount: pipeline.pagesInRun)
        } deliver: { run, written in
            do throws(DatabaseError) {
                // Runs come in the order of the pages, and none is left out.
                guard run.lowerBound == completed + 1, written == run.count else {
                    throw PageTransfer.different(completed + 1)
                }
                completed = run.upperBound
                let end = completed * pageSize
                if end - begun >= PageTransfer.bytesInPart {
                    if partsUnderWay.count >= PageTransfer.mostPartsUnderWay {
                        try file.awaitWriting(partsUnderWay.removeFirst())
                    }
                    let isUnderWay = try file.beginWriting(begun..<end)
                    if isUnderWay, sharesDisk { partsUnderWay.append(begun..<end) }
                    begun = end
                }
                try progress(completed)
            } catch {
                stop = error
            }
            return stop == nil
        }
        if let stop { throw stop }
        guard completed == numbers.upperBound else { throw PageTransfer.different(completed + 1) }
        try requireFree(file)
    }

    /// Makes sure that the pages that were copied as zeros are free. Call it when no worker reads the source.
    func requireFree(_ file: NewFile) throws(DatabaseError) {
        if try blank.requireAll(in: source, sourceCipher) { file.holdsBlank = true }
    }

    /// Whether ``amend(_:number:)`` changes this page.
    private func amends(_ number: Int64) -> Bool { number == 1 && mode == .wal }

    /// Gives the first page, decrypted, the journal mode of the new file.
    /// https://www.sqlite.org/fileformat.html#file_format_version_numbers
    func amend(_ contents: UnsafeMutableRawBufferPointer, number: Int64) {
        guard amends(number) else { return }
        for offset in [18, 19] { contents[offset] = 2 }
    }

    static func different(_ number: Int64) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .unverified,
            message: """
                The new file did not verify and was discarded: page \(number), read back, is not what was written. Look at \
                the disk, and try again.
                """
        )
    }

    static func damaged(_ number: Int64) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                Page \(number) of the store is not as it was written: its authentication code is wrong. Look at the store \
                with `sealdb verify`, and restore a backup.
                """
        )
    }
}
