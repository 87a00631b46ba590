/// Where the objects of a repository lie: a directory, or a place beside it that has the same few calls.
///
/// An object is written whole, under a name that does not exist yet, and never changed. Names consist of parts with slashes
/// between them, and sort by age where that matters. What is written is durable when the call returns.
protocol RepositoryStorage: AnyObject {
    /// What messages call it.
    var name: String { get }

    /// The objects whose names begin with this part and a slash, in no order. Things that are no objects are left out.
    func objects(under part: String) throws(DatabaseError) -> [StoredObject]

    /// The bytes of an object; `nil` if there is none of this name.
    /// - Parameter limit: at most so many, from its beginning.
    func read(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]?

    /// Writes objects, durably.
    /// - Returns: for each, false if one of its name is there, which is durable too then, and is left as it is.
    /// - Throws: after an error any of them may be there. Those that are hold what they should.
    func write(_ objects: [NewObject]) throws(DatabaseError) -> [Bool]

    /// Makes the names of objects durable that are there, and may have been written by a process that was killed.
    func makeDurable(_ names: [String]) throws(DatabaseError)

    /// Writes an object in the place of one that is damaged, durably, and in one step.
    func replace(_ bytes: [UInt8], as name: String) throws(DatabaseError)

    /// Removes an object, durably. One that is not there counts as removed.
    func remove(_ name: String) throws(DatabaseError)

    /// Keeps other shippers away until ``release()``, and removes what one that was killed has left unfinished.
    /// - Parameter mark: that of the repository, if it has been there before. Nothing is left in what is none any more.
    /// - Returns: false if the objects lie in another place than at the last call: what was written may not be there.
    /// - Throws: ``DatabaseError/Reason/busy`` if another one is at work.
    @discardableResult
    func lease(known mark: RepositoryMark?) throws(DatabaseError) -> Bool

    /// Gives the lease back. Without one, nothing happens.
    func release()
}

struct NewObject: Sendable {
    let name: String
    let bytes: [UInt8]
}

struct StoredObject: Sendable {
    let name: String
    let size: Int64
}

extension RepositoryStorage {
    func read(_ name: String) throws(DatabaseError) -> [UInt8]? { try read(name, limit: nil) }

    /// Sees to it that an object of this name holds these bytes.
    ///
    /// One that has its digest as its name can only hold them: if it holds others, it is damaged, and written again.
    /// - Throws: ``DatabaseError/Reason/alreadyExists`` if there is another one with other bytes.
    @discardableResult
    func require(_ bytes: [UInt8], as name: ObjectName) throws(DatabaseError) -> ObjectWriting {
        let isNew = try write([NewObject(name: name.text, bytes: bytes)])
        if isNew == [true] { return .new }
        return try requireWritten(bytes, as: name)
    }

    /// Does the same for an object of whose name there is one already.
    func requireWritten(_ bytes: [UInt8], as name: ObjectName) throws(DatabaseError) -> ObjectWriting {
        // What is longer need not be read to its end.
        guard try read(name.text, limit: bytes.count + 1) != bytes else { return .there }
        guard name.isDigest else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: """
                    \(name.text) in \(self.name) is there already and holds something else: another shipper writes to this \
                    repository. Nothing was changed there. See that only one does, and start it again.
                    """
            )
        }
        do throws(DatabaseError) {
            try replace(bytes, as: name.text)
        } catch {
            throw error.adding(
                context: "\(name.text) in \(self.name) is damaged, and could not be written again. Nothing else changed"
            )
        }
        return .healed
    }
}

/// What was done so that an object holds what it should.
enum ObjectWriting {
    /// Nothing.
    case there
    case new
    /// It was damaged, and was written again.
    case healed
}

extension DatabaseError {
    /// For what is in a repository and is not as it was written.
    static func damagedObject(_ name: String, _ problem: String) -> DatabaseError {
        DatabaseError(extendedCode: SQLITE_CORRUPT, reason: .damaged, message: "\(name) is damaged: \(problem).")
    }
}
