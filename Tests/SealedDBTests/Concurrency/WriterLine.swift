@testable import SealedDB

/// What tests ask of the line before the connection that writes.
struct WriterLine {
    let writer: Writer

    var waitingCount: Int { writer.reception.look { $0.waitingCount(.writer) } }
    var busyCount: Int { writer.reception.look { $0.heldCount(.writer) } }
    var isRefusing: Bool { writer.reception.look { $0.isRefusing(0) } }

    func enter() throws -> Reception.Place { try writer.reception.enter(.writer, call: "test") }

    func leave(_ place: Reception.Place) {
        writer.database.enter()
        writer.reception.leave(place, writer.database)
    }
}

extension Writer {
    var lane: WriterLine { WriterLine(writer: self) }
    var isOpen: Bool { reception.look { $0.openCount(.writer) > 0 } }
}

/// Holds the writer while the calls come to wait behind it, one after the other.
func behindABarrier(
    _ access: any DatabaseAccess & WriterOwner,
    _ calls: [@Sendable () async throws -> Void]
) async throws -> [Task<Void, any Error>] {
    let (held, release) = (Gate(), Gate())
    let holder = Task {
        try await access.writeWithoutTransaction { _ in
            held.open()
            release.waitBlocking()
        }
    }
    await held.wait()
    var tasks: [Task<Void, any Error>] = []
    for call in calls {
        let count = access.sharedWriter.lane.waitingCount
        // All with one priority, so that they are served in this order.
        tasks.append(Task(priority: .medium) { try await call() })
        while access.sharedWriter.lane.waitingCount == count { await Task.yield() }
    }
    release.open()
    try await holder.value
    return tasks
}
