/// What a checkpoint has written from a damaged log into the file. Each page that is written has an IV of its own, so one that has
/// bytes of a frame, even if the rest of that is damaged, comes from it and from no other.
struct SalvagedCheckpoint {
    let store: Connection
    let cipher: PageCipher
    /// Where the newest page stands that is in the file, too; 0 if none is.
    private(set) var end: Int64 = 0
    /// The same of each page.
    private var ends: [Int64: Int64] = [:]
    /// Where the newest damaged version of each page stands.
    private var damaged: [Int64: Int64] = [:]
    /// Damaged frames that do not tell their page, and where they stand.
    private var unknown: [(page: [UInt8], isDestroyed: Bool, offset: Int64)] = []
    private static let limitOfUnknown = 64

    init(store: Connection, cipher: PageCipher) {
        (self.store, self.cipher) = (store, cipher)
    }

    mutating func note(_ page: [UInt8]?, _ number: Int64, at offset: Int64) throws(DatabaseError) {
        if let page, try stored(number) == page { noteEnd(of: number, offset) }
    }

    /// - Parameters:
    ///   - salts: those of the log. A frame that has others does not tell its page.
    ///   - sums: the checksums that the frame may continue.
    mutating func noteDamage(
        _ frame: SalvagedFrames.Frame,
        of salts: ArraySlice<UInt8>,
        behind sums: [LogChecksum],
        at offset: Int64
    ) throws(DatabaseError) {
        if frame.header.salts == salts {
            let number = frame.header.page
            damaged[number] = offset
            let stored = try authentic(number)
            if let page = frame.page, let stored, isSame(page, stored, number) { noteEnd(of: number, offset) }
            // The frame was written with the page that its checksum tells, whatever is there now.
            if let stored,
                sums.contains(where: { $0.adding(frame.header, stored[...]).bytes[...] == frame.header.checksum })
            {
                noteEnd(of: number, offset)
            }
        } else if let page = frame.page {
            unknown.append((page, !frame.header.mayBeOlder(thanLogOf: salts), offset))
            // A log of which little is left may have any number of them, and each is compared with all pages.
            if unknown.count > SalvagedCheckpoint.limitOfUnknown { unknown.removeFirst() }
        }
    }

    /// Looks for the frames that do not tell their page among these pages.
    mutating func settle(_ pages: some Sequence<Int64>) throws(DatabaseError) {
        guard !unknown.isEmpty else { return }
        for number in pages {
            guard let stored = try authentic(number) else { continue }
            for (page, isDestroyed, offset) in unknown where isSame(page, stored, number, isDestroyed: isDestroyed) {
                noteEnd(of: number, offset)
            }
        }
    }

    /// Takes note that the file has the page of a frame, or a newer one.
    mutating func noteEnd(of number: Int64, _ offset: Int64) {
        ends[number] = max(ends[number] ?? 0, offset)
        end = max(end, offset)
    }

    /// Whether a page is that of the file but for what was lost.
    /// - Parameter isDestroyed: whether that may be anything.
    private func isSame(_ page: [UInt8], _ stored: [UInt8], _ number: Int64, isDestroyed: Bool = false) -> Bool {
        // Where a power failure has left a part of an older page, the rest is of a newer one, and not lost.
        let places = zip(stride(from: 0, to: page.count, by: 8), stride(from: 8, through: page.count, by: 8))
        let isRestLost =
            isDestroyed || places.allSatisfy { page[$0..<$1] == stored[$0..<$1] || Set(page[$0..<$1]).count == 1 }
        // All versions of the first page begin with the same bytes.
        return isRestLost && LogOverlay.shareCiphertext(page, stored, from: cipher.clearBytes(ofPage: number))
    }

    private func authentic(_ number: Int64) throws(DatabaseError) -> [UInt8]? {
        guard let page = try stored(number), try cipher.isAuthentic(page, number: number) else { return nil }
        return page
    }

    private func stored(_ number: Int64) throws(DatabaseError) -> [UInt8]? {
        let size = cipher.parameters.pageSize
        guard number > 0 else { return nil }
        let page = try readable { () throws(DatabaseError) in
            try store.fileBytes(at: (number - 1) * Int64(size), count: size)
        }
        return page?.count == size ? page : nil
    }

    /// Whether the file has a newer version of a page than this one.
    func isNewer(than offset: Int64, of number: Int64) -> Bool { ends[number] ?? 0 > offset }

    /// The pages whose newest version, as far as frames tell their pages, is neither among these places of the log nor in the file.
    /// - Parameter end: where the last frame of a transaction that is committed stands.
    func outdated(_ pages: [Int64: Int64], pageCount: Int64, end: Int64) -> [Int64] {
        damaged.filter { number, offset in
            number > 0 && number <= pageCount && offset <= end
                && offset > max(pages[number] ?? 0, ends[number] ?? 0)
        }.keys.sorted()
    }
}
