/// The pages of a store that are not authentic, for which a copy has pages without contents, as long as it is not known
/// that they are free; see ``FreePages``.
final class BlankPages: Sendable {
    private struct State {
        var pages = PageSet()
        var isFirstKnown = false
    }

    private let state = Guarded(State())

    func note(_ number: Int64) { state.withLock { $0.pages.insert(number) } }

    /// For a copy that begins anew with the pages that were noted.
    func forget() { state.withLock { $0 = State() } }

    /// Makes sure that the first one is free: a damaged store is refused soon, and not when all of it is copied. Call it
    /// while nobody else reads the source.
    func requireFirst(in source: PageSource, _ cipher: PageCipher) throws(DatabaseError) {
        let first = state.withLock { state -> Int64? in
            guard !state.isFirstKnown, let first = state.pages.run(from: 1, limit: 1) else { return nil }
            state.isFirstKnown = true
            return first.lowerBound
        }
        guard let first else { return }
        var pages = PageSet()
        pages.insert(first)
        try source.requireFree(pages, cipher)
    }

    /// Makes sure that all are free, and forgets them. Call it when nobody else reads the source.
    /// - Returns: whether there were any. An older list of free pages is as authentic as the present one: whether a tree
    ///   has one of them, only the structure of the copy tells.
    func requireAll(in source: PageSource, _ cipher: PageCipher) throws(DatabaseError) -> Bool {
        let pages = state.withLock { state in
            defer { state = State() }
            return state.pages
        }
        guard !pages.isEmpty else { return false }
        try source.requireFree(pages, cipher)
        return true
    }
}
