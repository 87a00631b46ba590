/// Says that the retention has removed what followed a segment, up to the next snapshot or to the end of the generation,
/// so that this does not look like a loss.
///
/// It is written before anything is removed. So there may still be something behind it, if the retention was cut off.
struct RetentionCut: Sendable, Equatable {
    let generation: Int64
    /// The number of the last segment that is kept. A snapshot that was removed followed it.
    let sequence: Int64
    /// The digest of that segment.
    let previous: String

    static let title = "SealedDB cut 1"

    var name: ObjectName { .cut(generation: generation, sequence: sequence) }

    func bytes() throws(DatabaseError) -> [UInt8] {
        var text = ObjectText(title: RetentionCut.title)
        text.add("generation", generation)
        text.add("sequence", sequence)
        text.add("previous", previous)
        return try text.sealed()
    }
}

extension RetentionCut {
    /// - Parameter name: its name, which says which one it is.
    init(parsing bytes: [UInt8], named name: ObjectName) throws(DatabaseError) {
        let text = try ObjectText(parsing: bytes, title: RetentionCut.title, of: name.text)
        generation = try text.number("generation")
        sequence = try text.number("sequence")
        previous = try text.digest("previous")
        guard self.name == name, text.byteCount == bytes.count else {
            throw .damagedObject(name.text, "it is that of another segment, or something follows it")
        }
    }
}
