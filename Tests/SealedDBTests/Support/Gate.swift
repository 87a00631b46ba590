import Foundation

@testable import SealedDB

/// Something that tasks and threads wait for, until it is opened.
final class Gate: Sendable {
    private let state = Guarded((isOpen: false, waiting: [CheckedContinuation<Void, Never>]()))
    private let semaphore = DispatchSemaphore(value: 0)

    func open() {
        let waiting = state.withLock { state in
            defer { state = (true, []) }
            return state.waiting
        }
        semaphore.signal()
        for continuation in waiting { continuation.resume() }
    }

    /// Parks the thread.
    func waitBlocking() {
        semaphore.wait()
        semaphore.signal()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// Values that several threads add.
final class Log<Value: Sendable>: Sendable {
    private let state = Guarded<[Value]>([])

    func add(_ value: Value) { state.withLock { $0.append(value) } }

    func removeAll() { state.withLock { $0 = [] } }

    var values: [Value] { state.withLock { $0 } }
}

/// How many threads this process has.
func threadCount() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).count
}
