/// Where a configuration gets its keys from. All copies share what was read, so that many connections read and derive a
/// key only once.
enum KeyOrigin: Sendable {
    case key(Key)
    case source(SourcedKey)
    case ring(RingHolder)

    /// Holds a key ring as it was last read.
    final class RingHolder: Sendable {
        private let ring: Guarded<KeyRing>

        init(_ ring: KeyRing) {
            self.ring = Guarded(ring)
        }

        var ringAsRead: KeyRing { ring.withLock { $0 } }

        /// The ring, read again from its file if it has one. If the file cannot be read, returns the ring as it was
        /// last read, and the error: its keys may still fit.
        func currentOrAsRead() -> (KeyRing, DatabaseError?) {
            do throws(DatabaseError) {
                let read = try ringAsRead.readAgain()
                return ring.withLock { ring in
                    ring = read
                    return (ring, nil)
                }
            } catch {
                return (ringAsRead, error)
            }
        }
    }

    /// Calls `body` with one key after the other, until one does not throw ``DatabaseError/Reason/wrongKey``.
    /// - Parameter adopted: a key that the store got from a rotation. It is tried first.
    func open<T>(
        _ name: String,
        adopted: Key?,
        _ body: (Key) throws(DatabaseError) -> T
    ) throws(DatabaseError) -> (T, FittingKey) {
        // Checked before a key is read or asked for.
        try Engine.requireCodec()
        if let adopted {
            do throws(DatabaseError) {
                return (try body(adopted), fitting(adopted))
            } catch {
                guard error.reason == .wrongKey else { throw error }
            }
        }
        switch self {
        case .key(let key):
            return (try body(key), FittingKey(key: key))
        case .source(let source):
            switch try source.attempt(body) {
            case .opened(let result, let key): return (result, FittingKey(key: key))
            case .wrongKey(let error):
                throw source.source.map { error.adding(context: "With the \($0)") } ?? error
            case .unreadable(let error): throw error
            }
        case .ring(let holder):
            let (ring, problem) = holder.currentOrAsRead()
            do throws(DatabaseError) {
                let opened = try ring.open(name, wrap: { $0 }) { (key, _) throws(DatabaseError) in try body(key) }
                return (opened.result, FittingKey(key: opened.key, id: opened.id, needsRotation: !opened.isActive))
            } catch {
                guard let problem, error.reason == .wrongKey else { throw error }
                throw problem.adding(context: "\(name) does not open with the keys that were read before")
            }
        }
    }

    /// Describes a key that a rotation gave the store.
    func fitting(_ key: Key) -> FittingKey {
        guard case .ring(let holder) = self else { return FittingKey(key: key) }
        let (ring, _) = holder.currentOrAsRead()
        let id = ring.id(of: key)
        return FittingKey(key: key, id: id, needsRotation: id != ring.activeID)
    }
}

/// The key that opened a store, and how it relates to the key ring.
struct FittingKey: Sendable {
    let key: Key
    /// The id in the key ring; `nil` if there is no ring, or if the key is not in it.
    var id: String?
    var needsRotation = false
}

extension SourcedKey {
    /// The result of trying a key.
    enum Attempt<T, E: Error> {
        case opened(T, Key)
        case wrongKey(E)
        case unreadable(DatabaseError)
    }

    /// Calls `body` with the key as it was last read. If that is the wrong key, reads the source again and calls `body`
    /// with its key, if it is another one.
    func attempt<T, E: Error>(_ body: (Key) throws(E) -> T) throws(E) -> Attempt<T, E> {
        let key: Key
        let mismatch: E
        switch Result(catching: { () throws(DatabaseError) in try self.key() }) {
        case .success(let known): key = known
        case .failure(let error): return .unreadable(error)
        }
        do throws(E) {
            return .opened(try body(key), key)
        } catch {
            guard (error as? DatabaseError)?.reason == .wrongKey else { throw error }
            mismatch = error
        }
        switch Result(catching: { () throws(DatabaseError) in try newKey(insteadOf: key) }) {
        case .success(nil): return .wrongKey(mismatch)
        case .success(let newKey?):
            do throws(E) {
                return .opened(try body(newKey), newKey)
            } catch {
                guard (error as? DatabaseError)?.reason == .wrongKey else { throw error }
                return .wrongKey(error)
            }
        case .failure(let error): return .unreadable(error)
        }
    }
}
