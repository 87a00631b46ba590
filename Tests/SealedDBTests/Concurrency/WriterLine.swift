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
