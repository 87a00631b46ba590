import Foundation

/// Rotations of stores with slots: the slot of the old key is replaced.
extension KeyRotation {
    var hasSlots: Bool { KeySlots.exist(beside: path) }

    func slots(_ key: Key) -> KeySlots {
        KeySlots(path: path, key: key, cipherSettings: settings, busyTimeout: .seconds(busyTimeout))
    }

    func planOfSlots() throws(DatabaseError) -> Plan {
        try requireNothingToKeep()
        guard oldKey != newKey else { throw KeyRotation.sameKey }
        let slots = slots(oldKey)
        let opening = try slots.opening()
        try newKey.confirm()
        return try opening.look { connection throws(DatabaseError) in
            guard try slots.slots(opening, connection).slot != nil else {
                throw .malformedKey("The data key itself has no slot to replace. Add one for the new key.")
            }
            let totals = try PageTotals(of: connection)
            let file = opening.path ?? path
            return Plan(
                path: file,
                fileSize: Int64(try FileSystem.status(file).st_size),
                pageCount: totals.count,
                pageSize: totals.size,
                journalMode: try connection.storedJournalMode(Sealing(key: oldKey, settings: settings)),
                freeSpace: try FileSystem.freeSpace(at: FileSystem.directory(of: file)),
                neededSpace: Int64(4 * SlotsParser.sizeLimit),
                estimatedSeconds: 0
            )
        }
    }

    func replaceSlot() throws(DatabaseError) -> Report {
        let start = DispatchTime.now().uptimeNanoseconds
        try requireNothingToKeep()
        let report = try slots(oldKey).replace(with: newKey)
        let size: PageTotals
        do throws(DatabaseError) {
            size = try StoreOpening.existing(path, key: newKey, settings: settings).look {
                connection throws(DatabaseError) in try PageTotals(of: connection)
            }
        } catch {
            throw error.adding(context: "The store has the new key, but could not be looked at again")
        }
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        return Report(path: report.path, pageCount: size.count, pageSize: size.size, seconds: seconds)
    }

    private func requireNothingToKeep() throws(DatabaseError) {
        guard oldFileSuffix != nil else { return }
        throw .notAllowed(
            "\(path) has key slots, so a rotation replaces no file that could be kept. Nothing was changed."
        )
    }
}
