/// A key, or the source that it is read from when it is first needed, and again when it no longer fits.
final class SourcedKey: Sendable {
    let source: KeySource?
    private let known: Guarded<Key?>

    init(_ key: Key) {
        source = nil
        known = Guarded(key)
    }

    init(_ source: KeySource) {
        self.source = source
        known = Guarded(nil)
    }

    /// The key as last read; those who ask at the same time cause one reading.
    func key() throws(DatabaseError) -> Key {
        try known.withLock { known -> Result<Key, DatabaseError> in
            if let known { return .success(known) }
            return read(into: &known)
        }.get()
    }

    /// The key that the source has now, if it is not this one, which does not fit.
    func newKey(insteadOf stale: Key) throws(DatabaseError) -> Key? {
        guard let source, source.isRepeatable else { return nil }
        let key = try known.withLock { known -> Result<Key, DatabaseError> in
            if let known, known != stale { return .success(known) }
            var read: Key?
            let result = self.read(into: &read)
            // An equal key stays the same object, with what was derived from it.
            if let read, read != stale { known = read }
            return result
        }.get()
        return key == stale ? nil : key
    }

    private func read(into known: inout Key?) -> Result<Key, DatabaseError> {
        Result { () throws(DatabaseError) in
            guard let source else { preconditionFailure("A key without a source is known from the start.") }
            let key = try source.key()
            known = key
            return key
        }
    }
}
