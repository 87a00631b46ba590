import SealedDB

/// Makes names that were added to the directory of the file, or removed from it, durable.
/// - Parameter state: what the message says at its end.
func synchronizeDirectory(of path: String, orSay state: String = "") throws(Failure) {
    do throws(DatabaseError) {
        try FileSystem.synchronizeDirectory(of: path)
    } catch {
        throw Failure(.inputOutput, state.isEmpty ? error.message : "\(error.message) \(state)")
    }
}
