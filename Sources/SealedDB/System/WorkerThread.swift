internal import CSealedDBSystem
import Foundation

/// A thread of its own for work that keeps a processor busy. Tasks do not share it, and as a rule signals go to other threads.
package final class WorkerThread: Sendable {
    private let thread: pthread_t

    private final class Beginning: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread that calls `body`. ``join()`` must follow.
    /// - Parameter takesSignals: whether the thread gets the signals that the calling one does.
    /// - Returns: `nil` if the system has no thread to give.
    package init?(takesSignals: Bool = false, _ body: @escaping @Sendable () -> Void) {
        var mask = sigset_t()
        // It fails only for an unknown way to change the mask.
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        let context = Unmanaged.passRetained(
            Beginning { [mask] in
                if takesSignals {
                    var mask = mask
                    // It fails only for an unknown way to change the mask.
                    pthread_sigmask(SIG_SETMASK, &mask, nil)
                }
                body()
            }
        )
        var thread = pthread_t()
        let code = sealeddb_start_thread(
            &thread,
            { context in
                // The thread owns what it was given.
                Unmanaged<Beginning>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        guard code == 0 else {
            context.release()
            return nil
        }
        self.thread = thread
    }

    /// Waits until the body has returned and what it held is released. Call it once.
    package func join() {
        // Fails only for a thread that was waited for already, or that waits for itself.
        pthread_join(thread, nil)
    }

    /// How many processors the calling thread may run on.
    static var processorCount: Int { Int(sealeddb_processor_count()) }
}
