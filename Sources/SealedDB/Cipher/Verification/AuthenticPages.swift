import Foundation

/// The pages of a store, decrypted for SQLite's check of the structure, while other threads authenticate all of them.
///
/// SQLite gets no page that is not authentic: one that the others have not come to yet is authenticated here.
// @unchecked: only the thread of the check reads pages. What the others touch is guarded.
final class AuthenticPages: PageDecryption, @unchecked Sendable {
    private struct State {
        /// All pages up to this one are authentic.
        var last: Int64 = 0
        var readCount: Int64 = 0
        var isStopped = false
    }

    private let cipher: PageCipher
    /// The page as it is encrypted.
    private let stored: PageBuffer
    /// The page decrypted, if only a part of it is wanted.
    private let contents: SecretScratch
    private let state = Guarded(State())

    var pageSize: Int { cipher.parameters.pageSize }

    /// - Parameter cipher: belongs to this object alone. It must authenticate pages.
    init(_ cipher: PageCipher) throws(DatabaseError) {
        precondition(cipher.parameters.usesHMAC, "Pages without codes cannot be authenticated.")
        self.cipher = cipher
        stored = PageBuffer(pageSize: cipher.parameters.pageSize, pageCount: 1)
        contents = try SecretScratch(count: cipher.parameters.pageSize)
    }

    /// How many pages SQLite has read, each as often as it was read.
    var readCount: Int64 { state.withLock { $0.readCount } }

    /// Says that all pages up to this one are authentic. Any thread may call it.
    func noteAuthentic(upTo number: Int64) { state.withLock { $0.last = number } }

    /// Lets the check fail at the next page. Any thread may call it.
    func stop() { state.withLock { $0.isStopped = true } }

    func read(
        _ number: Int64,
        from start: Int,
        into target: UnsafeMutableRawBufferPointer,
        load: (UnsafeMutableRawBufferPointer) -> Int32
    ) -> Int32 {
        let now = state.withLock { state in
            state.readCount += 1
            return state
        }
        guard !now.isStopped else { return SQLITE_INTERRUPT }
        let page = stored.page(0)
        let code = load(page)
        guard code == SQLITE_OK else { return code }
        do throws(DatabaseError) {
            let page = UnsafeRawBufferPointer(page)
            if number > now.last {
                guard try cipher.isAuthentic(page, number: number) else { return SQLITE_CORRUPT }
            }
            guard start == 0, target.count == pageSize else {
                try cipher.open(page, number: number, into: contents.bytes)
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: contents.bytes[start..<start + target.count]))
                return SQLITE_OK
            }
            try cipher.open(page, number: number, into: target)
            // What SQLCipher keeps there is nothing to SQLite.
            UnsafeMutableRawBufferPointer(rebasing: target[cipher.contentSize...])
                .initializeMemory(as: UInt8.self, repeating: 0)
            return SQLITE_OK
        } catch {
            return error.extendedCode
        }
    }
}
