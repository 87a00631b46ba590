// Package trait ServiceLifecycle.
#if ServiceLifecycle
    public import ServiceLifecycle

    /// Runs a queue as a service. List it before the services that use it, so that it shuts down after them.
    extension DatabaseQueue: Service {
        /// Waits for the graceful shutdown of the service group, and then shuts down as ``DatabaseAccess/shutDown()``
        /// does. If the group is cancelled, running statements are stopped.
        public func run() async throws {
            // `gracefulShutdown()` throws if the task is cancelled. That too is a reason to shut down.
            try? await gracefulShutdown()
            await shutDown()
        }
    }

    /// Runs a pool as a service. List it before the services that use it, so that it shuts down after them.
    extension DatabasePool: Service {
        /// Waits for the graceful shutdown of the service group, and then shuts down as ``DatabaseAccess/shutDown()``
        /// does. If the group is cancelled, running statements are stopped.
        public func run() async throws {
            // `gracefulShutdown()` throws if the task is cancelled. That too is a reason to shut down.
            try? await gracefulShutdown()
            await shutDown()
        }
    }
#endif
