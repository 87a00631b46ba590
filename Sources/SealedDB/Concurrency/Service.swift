// Package trait ServiceLifecycle.
#if ServiceLifecycle
    public import ServiceLifecycle

    /// A queue as a service: list it before the services that use it, so that it is shut down after them.
    extension DatabaseQueue: Service {
        /// Waits for the graceful shutdown of the service group, and then as ``DatabaseAccess/shutDown()``. If the group
        /// is cancelled, running statements are stopped.
        public func run() async throws {
            // It throws when the task is cancelled, which is a reason to shut down as well.
            try? await gracefulShutdown()
            await shutDown()
        }
    }

    /// A pool as a service: list it before the services that use it, so that it is shut down after them.
    extension DatabasePool: Service {
        /// Waits for the graceful shutdown of the service group, and then as ``DatabaseAccess/shutDown()``. If the group
        /// is cancelled, running statements are stopped.
        public func run() async throws {
            // It throws when the task is cancelled, which is a reason to shut down as well.
            try? await gracefulShutdown()
            await shutDown()
        }
    }
#endif
