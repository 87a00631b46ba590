import Foundation

/// A value behind a lock that the thread sanitizer knows. It does not see through the slow path of
/// `Synchronization.Mutex`, and reports races where several threads wait for one.
// A mutex of the default kind, which is not moved and is unlocked by who locked it, has no errors to report.
// @unchecked: the value is only touched under the lock.
final class Guarded<Value>: @unchecked Sendable {
    // Both at an address of their own: a mutex must not move, and Swift would check each access to the value of a class.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    init(_ value: sending Value) {
        pthread_mutex_init(mutex, nil)  // Cannot fail: see above.
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(mutex)  // Cannot fail: see above.
        mutex.deallocate()
    }

    @inline(__always)
    func withLock<T>(_ body: (inout Value) throws -> T) rethrows -> T {
        // They cannot fail: see above.
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
