/// The object that makes a directory a repository. Its number tells a repository from another one that was mounted in its
/// place.
struct RepositoryMark: Sendable, Equatable {
    let identifier: String
    let time: RepositoryTime

    static let title = "SealedDB repository 1"

    private init(identifier: String, time: RepositoryTime) {
        (self.identifier, self.time) = (identifier, time)
    }

    /// Reads the mark; `nil` if there is none.
    init?(_ storage: any RepositoryStorage) throws(DatabaseError) {
        guard let bytes = try storage.read(ObjectName.mark.text) else { return nil }
        let name = "\(storage.name)/\(ObjectName.mark.text)"
        let text = try ObjectText(parsing: bytes, title: RepositoryMark.title, of: name)
        self.init(identifier: try text.value("id"), time: try text.time("time"))
    }

    /// Reads the mark of a repository that must be there.
    static func existing(_ storage: any RepositoryStorage) throws(DatabaseError) -> RepositoryMark {
        if let mark = try RepositoryMark(storage) { return mark }
        throw DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .noSuchFile,
            message: "\(storage.name) is no repository: it has no “\(ObjectName.mark.text)”. Is it mounted?"
        )
    }

    /// Makes a repository of a place that holds nothing of one.
    static func make(_ storage: any RepositoryStorage) throws(DatabaseError) -> RepositoryMark {
        guard try storage.objects(under: ObjectName.generations).isEmpty else {
            throw .damagedObject(
                storage.name,
                "it has generations, but no “\(ObjectName.mark.text)”. Nothing was shipped. Bring that file back"
            )
        }
        let mark = RepositoryMark(
            identifier: try FileSystem.randomName() + FileSystem.randomName(),
            time: RepositoryTime.now
        )
        var text = ObjectText(title: RepositoryMark.title)
        text.add("id", mark.identifier)
        text.add("time", mark.time)
        try storage.require(text.sealed(), as: .mark)
        return mark
    }
}
