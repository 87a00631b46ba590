internal import CSealedDBSystem
import Foundation

/// What a database holds at one moment, decrypted, for connections that copy it and compute its digest at the same time.
/// Each page is read and authenticated once, as long as they read the same part.
final class SourcePages: Sendable {
    let totals: PageTotals
    private let state: Guarded<State>

    fileprivate struct State {
        let stored: StoredPages
        /// `nil` for plaintext.
        let cipher: PageCipher?
        var ahead: ReadAhead
        /// The pages that were wanted last. A page has one place, by its number.
        let kept: KeptPages
    }

    /// - Parameters:
    ///   - stored: the pages. Nobody else reads them meanwhile.
    ///   - cipher: that of the store; `nil` for plaintext. It belongs to this object alone.
    init(_ stored: StoredPages, _ cipher: PageCipher?) throws(DatabaseError) {
        totals = stored.totals
        // Only the thread that has the lock uses what is in here.
        nonisolated(unsafe) let state = State(
            stored: stored,
            cipher: cipher,
            ahead: ReadAhead(pageSize: stored.totals.size),
            kept: try KeptPages(pageSize: stored.totals.size)
        )
        self.state = Guarded(state)
    }

    /// The pages that a connection in a read transaction sees.
    convenience init(reading connection: Connection, _ sealing: Sealing) throws(DatabaseError) {
        guard let key = sealing.key else {
            try self.init(StoredPages(reading: connection), nil)
            return
        }
        let source = try PageSource(reading: connection, key: key, settings: sealing.settings)
        try self.init(source.pages, source.scan.pageCipher())
    }

    /// Opens what the pages hold, without a key.
    func open() throws(DatabaseError) -> (Connection, SourceReader) {
        let reader = SourceReader(self)
        return (try ServedFile(reader).open(), reader)
    }

    /// Copies a part of a page.
    /// - Throws: if it is not as it was written.
    fileprivate func copy(
        _ number: Int64,
        from start: Int,
        into target: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        try state.withLock { state in
            Result { () throws(DatabaseError) in
                let page = try state.page(number)
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: page[start..<start + target.count]))
            }
        }.get()
    }
}

extension SourcePages.State {
    /// The page as SQLite sees it.
    fileprivate mutating func page(_ number: Int64) throws(DatabaseError) -> UnsafeRawBufferPointer {
        guard number != PageScan.lockPage(pageSize: stored.totals.size) else { throw SourcePages.lockPageAsked }
        if let page = kept.page(number) { return page }
        let page = UnsafeRawBufferPointer(
            try ahead.page(number, upTo: stored.totals.count) { [stored] numbers, buffer throws(DatabaseError) in
                try stored.read(numbers, into: buffer)
            }
        )
        guard let cipher else { return try kept.keep(number) { $0.copyMemory(from: page) } }
        if cipher.parameters.usesHMAC {
            guard try cipher.isAuthentic(page, number: number) else { throw PageTransfer.damaged(number) }
        }
        return try kept.keep(number) { opened throws(DatabaseError) in
            try cipher.open(page, number: number, into: opened)
            // SQLCipher leaves IV and code there. In a damaged structure SQLite may look at them.
            UnsafeMutableRawBufferPointer(rebasing: opened[cipher.contentSize...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: page[cipher.contentSize...]))
        }
    }
}

extension SourcePages {
    /// SQLite never asks for this page, unless a structure is damaged.
    fileprivate static var lockPageAsked: DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: "The structure of the database is damaged: it uses the page of SQLite's locks."
        )
    }
}

/// Decrypted pages that may be wanted again soon.
final class KeptPages {
    private let pageSize: Int
    /// The number of the page in each place; 0 for none.
    private var numbers: [Int64]
    // Lives as long as this object, which is used under a lock.
    private let bytes: UnsafeMutableRawBufferPointer

    private static let mostBytes = 1 << 23

    /// - Parameter allocate: gives memory, which `free` takes back; `nil` if there is none. With less than wanted, more pages
    ///   are read twice.
    init(
        pageSize: Int,
        allocate: (_ byteCount: Int) -> UnsafeMutableRawPointer? = { malloc($0) }
    ) throws(DatabaseError) {
        var count = max(1, KeptPages.mostBytes / pageSize)
        var start = allocate(count * pageSize)
        while start == nil, count > 1 {
            count /= 2
            start = allocate(count * pageSize)
        }
        guard let start else {
            throw DatabaseError(
                extendedCode: SQLITE_NOMEM,
                message: "There is no memory for a page of the store. Nothing was changed. Try again with more memory."
            )
        }
        self.pageSize = pageSize
        numbers = [Int64](repeating: 0, count: count)
        bytes = .init(start: start, count: count * pageSize)
    }

    /// How many pages are kept at most.
    var count: Int { numbers.count }

    deinit {
        sealeddb_wipe(bytes.baseAddress, bytes.count)
        free(bytes.baseAddress)
    }

    private func place(_ number: Int64) -> Int { Int(number % Int64(numbers.count)) }

    private func bytes(_ place: Int) -> UnsafeMutableRawBufferPointer {
        .init(rebasing: bytes[place * pageSize..<(place + 1) * pageSize])
    }

    func page(_ number: Int64) -> UnsafeRawBufferPointer? {
        let place = place(number)
        return numbers[place] == number ? UnsafeRawBufferPointer(bytes(place)) : nil
    }

    /// Has a page filled in, and returns it. It is kept only if this succeeds.
    func keep(
        _ number: Int64,
        _ fill: (UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> UnsafeRawBufferPointer {
        let place = place(number)
        numbers[place] = 0
        try fill(bytes(place))
        numbers[place] = number
        return UnsafeRawBufferPointer(bytes(place))
    }
}

/// Gives SQLite the pages of a ``SourcePages``, for one connection.
final class SourceReader: FileContents {
    let size: Int64
    /// Why no page is read any more. Whatever SQLite says then does not count.
    private(set) var failure: DatabaseError?
    private let pages: SourcePages
    private let goOn: () throws(DatabaseError) -> Void
    /// How many pages SQLite has asked for.
    private(set) var readCount: Int64 = 0

    /// - Parameter goOn: called before each page. If it throws, no page is read any more.
    init(_ pages: SourcePages, _ goOn: @escaping () throws(DatabaseError) -> Void = {}) {
        (self.pages, self.goOn) = (pages, goOn)
        size = pages.totals.count * Int64(pages.totals.size)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int32 {
        guard failure == nil else { return SQLITE_IOERR_READ }
        do throws(DatabaseError) {
            try goOn()
            readCount += 1
            let pageSize = pages.totals.size
            var done = 0
            while done < buffer.count {
                let place = offset + Int64(done)
                let start = Int(place % Int64(pageSize))
                let count = min(pageSize - start, buffer.count - done)
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count])
                try pages.copy(place / Int64(pageSize) + 1, from: start, into: part)
                done += count
            }
            return SQLITE_OK
        } catch {
            failure = error
            return SQLITE_IOERR_READ
        }
    }

    /// Runs statements that read through this object. If a page could not be read, the error says why.
    func explaining<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        do throws(DatabaseError) {
            let result = try body()
            if let failure { throw failure }
            return result
        } catch {
            throw failure ?? error
        }
    }
}
