extension KeyRotation {
    /// Whether the store has the new key already, such as after a rotation whose end nobody saw. If it has, that is made
    /// durable; nothing else is changed.
    /// - Throws: ``DatabaseError`` if the store cannot be opened for another reason than its key.
    public func isDone() throws(DatabaseError) -> Bool {
        guard let path = FileSystem.resolve(path) else { throw .system("Cannot open \(path)", reason: .noSuchFile) }
        let opening = StoreOpening(path: path, key: newKey, settings: settings, busyTimeout: busyTimeout)
        do throws(DatabaseError) {
            // May write, so that it takes away what a killed process left beside the store.
            try opening.open().close()
        } catch {
            guard error.reason == .wrongKey else { throw error }
            return false
        }
        try FileSystem.synchronizeDirectory(of: path)
        do throws(DatabaseError) {
            try newKey.confirm()
        } catch {
            throw error.adding(context: "\(path) has the new key")
        }
        return true
    }
}
