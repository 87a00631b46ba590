import Foundation

/// A value behind a lock that the thread sanitizer knows. It does not see through the slow path of
/// `Synchronization.Mutex`, and reports races where several threads wait for one.
// @unchecked: the value is only touched under the lock.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: sending Value) { self.value = value }

    func withLock<T>(_ body: (inout Value) throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
