import Foundation

/// A value behind a lock that the thread sanitizer understands. The sanitizer does not see through the slow path of
/// `Synchronization.Mutex`, and reports races where several threads wait for one.
// @unchecked: the value is only touched under the lock.
final class Guarded<Value>: @unchecked Sendable {
    // Both have an address of their own: a mutex must not move, and Swift would check each access to a stored property
    // of a class for exclusivity.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    init(_ value: sending Value) {
        pthread_mutex_init(mutex, nil)  // Cannot fail for a default mutex.
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(mutex)  // Cannot fail: the mutex is unlocked.
        mutex.deallocate()
    }

    @inline(__always)
    func withLock<T>(_ body: (inout Value) throws -> T) rethrows -> T {
        // These cannot fail: the mutex is of the default kind, never moves, and the locking thread unlocks it.
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
