/// A key, or a source from which a key is read when it is first needed, and again when the key no longer fits.
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

    /// The key as it was last read. If several threads ask at the same time, it is read only once.
    func key() throws(DatabaseError) -> Key {
        try known.withLock { known -> Result<Key, DatabaseError> in
            if let known { return .success(known) }
            return read(into: &known)
        }.get()
    }

    /// Reads the source again, because the stale key does not fit. Returns its key, or `nil` if that is the stale one
    /// or the source cannot be read again.
    func newKey(insteadOf stale: Key) throws(DatabaseError) -> Key? {
        guard let source, source.isRepeatable else { return nil }
        let key = try known.withLock { known -> Result<Key, DatabaseError> in
            if let known, known != stale { return .success(known) }
            var read: Key?
            let result = self.read(into: &read)
            // If the key is equal, the old object is kept, together with the keys that were derived from it.
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
