import Foundation

/// What a follower knows of its replica, as it stands in a file beside that.
///
/// It is written before what it announces is done, so that the next follower finds out how far that came.
struct FollowerState: Sendable, Equatable {
    /// A commit that the replica holds, and the end of the replica's own log then.
    struct ReplicaMoment: Sendable, Equatable {
        let place: RepositoryPlace
        /// The frames of its log.
        var frameCount: Int64
        /// The salts of its log, and the checksum of the last of the frames; empty without frames.
        var salts: [UInt8]
        var checksum: [UInt8]

        static let none = [UInt8](repeating: 0, count: LogPlace.checksumSize)

        /// - Parameter place: what the file alone holds, without a log.
        init(inFile place: RepositoryPlace) {
            self.init(place: place, frameCount: 0, salts: ReplicaMoment.none, checksum: ReplicaMoment.none)
        }

        init(place: RepositoryPlace, frameCount: Int64, salts: [UInt8], checksum: [UInt8]) {
            (self.place, self.frameCount, self.salts, self.checksum) = (place, frameCount, salts, checksum)
        }

        /// Whether the log ends so.
        func isEnd(_ position: LogPosition) -> Bool {
            frameCount > 0 && position.frameCount == frameCount && position.salts == salts
                && position.checksum == checksum && position.pageCount == place.pageCount
        }
    }

    /// What changes when somebody writes to a file.
    struct Mark: Sendable, Equatable {
        let size: Int64
        let changes: String

        /// - Parameter settles: whether to wait until a later write gets a later time.
        static func of(_ path: String, settles: Bool) throws(DatabaseError) -> Mark {
            let status = try FileSystem.status(path)
            let (written, changed) = (status.st_mtim, status.st_ctim)
            if settles {
                // If the clock was put back, the mark still tells writes by their size, and those after that time.
                _ = FileSystem.waitForClock(toPass: written)
                _ = FileSystem.waitForClock(toPass: changed)
            }
            return Mark(
                size: Int64(status.st_size),
                changes: "\(written.tv_sec).\(written.tv_nsec).\(changed.tv_sec).\(changed.tv_nsec)"
            )
        }
    }

    /// A file by which a replica can be told from others.
    struct Identity: Sendable, Equatable {
        let inode: UInt64
        /// Its first bytes.
        let salt: [UInt8]
        let pageSize: Int
    }

    /// The number of the repository.
    let repository: String
    /// The replica's file.
    let identity: Identity
    /// The file that is about to take its place, and holds what the intent says; `nil` if none is.
    var successor: Identity?
    /// The digest of the slots of that file.
    var successorSlots: String?
    /// What the replica holds.
    var done: ReplicaMoment
    /// What it holds as soon as what is being added to its log is whole; `nil` if nothing is.
    var intent: ReplicaMoment?
    /// The file as it was when all of its log had been moved there; `nil` while its log has frames.
    var mark: Mark?
    /// The file as it was when nothing of its log had been moved there, or when the follower had last moved a part there; `nil`
    /// while the log has no frames, and if it is not known.
    var base: Mark?
    /// The slots beside it.
    var slots: ReplicaSlots

    private static let title = "SealedDB follower 1"

    fileprivate func bytes(_ number: Int64) throws(DatabaseError) -> [UInt8] {
        var text = ObjectText(title: FollowerState.title)
        text.add("number", number)
        text.add("repository", repository)
        identity.add(to: &text, "")
        text.add("successor", successor == nil ? "-" : "yes")
        successor?.add(to: &text, "successor-")
        done.add(to: &text, "done-")
        text.add("intent", intent == nil ? "-" : "yes")
        intent?.add(to: &text, "intent-")
        mark?.add(to: &text, "mark")
        if mark == nil { text.add("mark", "-") }
        base?.add(to: &text, "base")
        text.add("successor-slots", successorSlots ?? "-")
        text.add("slots", slots.digest ?? "-")
        text.add("other-slots", slots.others.isEmpty ? "-" : slots.others.joined(separator: " "))
        text.add("slots-put", slots.arePut ? "yes" : "-")
        return try text.sealed()
    }

    /// Whether the bytes may be those of a state that was not written to its end: its title is there, or nothing of its first
    /// sector.
    fileprivate static func mayBeginOne(_ bytes: [UInt8]) -> Bool {
        let first = bytes.prefix(512)
        let line = Array("\(title)\n".utf8)
        return first.allSatisfy { $0 == 0 } || first.starts(with: line) || line.starts(with: first)
    }

    fileprivate static func parse(
        _ bytes: [UInt8],
        _ name: String
    ) throws(DatabaseError) -> (number: Int64, state: FollowerState) {
        let text = try ObjectText(parsing: bytes, title: title, of: name)
        let identity = try Identity(text, "")
        let successor = try text.optional("successor") == nil ? nil : try Identity(text, "successor-")
        let others = try text.optional("other-slots")?.split(separator: " ").map(String.init) ?? []
        guard others.allSatisfy(ObjectDigest.isOne) else { throw text.missing("other-slots") }
        let slots = ReplicaSlots(
            digest: try text.optional("slots") == nil ? nil : try text.digest("slots"),
            others: others,
            arePut: try text.optional("slots-put") != nil
        )
        let state = FollowerState(
            repository: try text.value("repository"),
            identity: identity,
            successor: successor,
            successorSlots: try text.optional("successor-slots") == nil ? nil : try text.digest("successor-slots"),
            done: try ReplicaMoment(text, "done-", pageSize: identity.pageSize),
            intent: try text.optional("intent") == nil
                ? nil : try ReplicaMoment(text, "intent-", pageSize: (successor ?? identity).pageSize),
            mark: try text.optional("mark") == nil ? nil : try Mark(text, "mark"),
            base: text.values("base").isEmpty ? nil : try Mark(text, "base"),
            slots: slots
        )
        return (try text.number("number"), state)
    }
}

extension FollowerState.Mark {
    fileprivate func add(to text: inout ObjectText, _ name: String) { text.add(name, "\(size) \(changes)") }

    fileprivate init(_ text: ObjectText, _ name: String) throws(DatabaseError) {
        let parts = try text.value(name).split(separator: " ").map(String.init)
        guard parts.count == 2, let size = Int64(parts[0]) else { throw text.missing(name) }
        self.init(size: size, changes: parts[1])
    }
}

extension FollowerState.Identity {
    /// - Parameter path: that of the file.
    init(_ path: String, salt: [UInt8], pageSize: Int) throws(DatabaseError) {
        self.init(inode: UInt64(try FileSystem.status(path).st_ino), salt: salt, pageSize: pageSize)
    }

    fileprivate func add(to text: inout ObjectText, _ prefix: String) {
        text.add(prefix + "inode", inode)
        text.add(prefix + "file-salt", Hexadecimal.string(salt))
        text.add(prefix + "page-size", pageSize)
    }

    fileprivate init(_ text: ObjectText, _ prefix: String) throws(DatabaseError) {
        guard let inode = UInt64(try text.value(prefix + "inode")) else { throw text.missing(prefix + "inode") }
        let size = Int(try text.number(prefix + "page-size", in: 512...65536))
        guard size & (size - 1) == 0 else { throw text.missing(prefix + "page-size") }
        self.init(
            inode: inode,
            salt: try text.bytes(prefix + "file-salt", count: Key.saltByteCount),
            pageSize: size
        )
    }
}

extension FollowerState.ReplicaMoment {
    fileprivate func add(to text: inout ObjectText, _ prefix: String) {
        text.add(prefix + "generation", place.generation)
        text.add(prefix + "sequence", place.sequence)
        text.add(prefix + "frame", place.frame)
        text.add(prefix + "digest", place.digest)
        text.add(prefix + "time", place.time)
        text.add(prefix + "page-count", place.pageCount)
        text.add(prefix + "log-header", place.log.header.map(Hexadecimal.string) ?? "-")
        text.add(prefix + "log-frame", place.log.frame)
        text.add(prefix + "log-checksum", Hexadecimal.string(place.log.checksum))
        text.add(prefix + "own-frames", frameCount)
        text.add(prefix + "own-salts", Hexadecimal.string(salts))
        text.add(prefix + "own-checksum", Hexadecimal.string(checksum))
    }

    fileprivate init(_ text: ObjectText, _ prefix: String, pageSize: Int) throws(DatabaseError) {
        var header: [UInt8]?
        if let hex = try text.optional(prefix + "log-header") {
            guard let bytes = ObjectText.bytes(hex: hex), LogPlace.isHeader(bytes, pageSize: pageSize) else {
                throw text.missing(prefix + "log-header")
            }
            header = bytes
        }
        let count = LogPlace.checksumSize
        self.init(
            place: RepositoryPlace(
                generation: try text.number(prefix + "generation", in: 1...ObjectName.lastNumber),
                sequence: try text.number(prefix + "sequence", in: 0...ObjectName.lastNumber),
                frame: try text.number(prefix + "frame", in: 0...Int64(UInt32.max)),
                digest: try text.digest(prefix + "digest"),
                log: LogPlace(
                    header: header,
                    frame: try text.number(prefix + "log-frame", in: 0...Int64(UInt32.max)),
                    checksum: try text.bytes(prefix + "log-checksum", count: count)
                ),
                time: try text.time(prefix + "time"),
                pageCount: try text.number(prefix + "page-count", in: 1...Int64(UInt32.max))
            ),
            frameCount: try text.number(prefix + "own-frames", in: 0...Int64(UInt32.max)),
            salts: try text.bytes(prefix + "own-salts", count: count),
            checksum: try text.bytes(prefix + "own-checksum", count: count)
        )
    }
}

/// The file in which a follower keeps its state. It has room for two, of which the older one is overwritten, so that one is
/// whole at each moment. As long as it is open, no other follower has the replica.
final class FollowerFile {
    private let file: OwnFile
    private var number: Int64 = 0
    /// The last one that was written; `nil` for a replica that is not there yet.
    private(set) var state: FollowerState?

    private static let room = 4096

    /// The name of the file that belongs to a replica.
    static func path(of replica: String) -> String {
        "\(FileSystem.directory(of: replica))/.\(FileSystem.name(of: replica)).sealdb-follow"
    }

    /// The name of what is put together to become the replica, or a part of it. Only the follower has it, and removes what has
    /// it.
    static func pathOfNext(_ replica: String) -> String { TemporaryFile.fixedPath(beside: replica, mark: "next") }

    /// - Parameter replica: its path.
    /// - Throws: ``DatabaseError/Reason/busy`` if another follower has it.
    init(of replica: String) throws(DatabaseError) {
        let path = FollowerFile.path(of: replica)
        file = try OwnFile(path, creates: true)
        guard try file.lock() else {
            let holders = LockHolders.ofDescriptions(path)
            let names = holders.isEmpty ? "another process" : holders.joined(separator: ", ")
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: "\(replica) follows its repository already, by \(names). Nothing was changed."
            )
        }
        guard try file.isNamed() else {
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: "\(path) was replaced in this moment. Nothing was changed. Try again."
            )
        }
        // The first two are looked at: a process may have been killed, or the machine stopped, while one was written. A
        // follower never writes behind them.
        let rooms = try (0...2).map { index throws(DatabaseError) in
            try file.bytes(at: index * FollowerFile.room, count: FollowerFile.room)
        }
        for bytes in rooms.dropLast() {
            do throws(DatabaseError) {
                let found = try FollowerState.parse(bytes, path)
                if found.number > number { (number, state) = (found.number, found.state) }
            } catch {
                // One that was cut off, or never written, is none.
                guard error.reason == .damaged else { throw error }
            }
        }
        guard state != nil || rooms[2].isEmpty && rooms.allSatisfy(FollowerState.mayBeginOne) else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .alreadyExists,
                message: """
                    \(path) was not written by a follower of this version, which keeps there what it knows of \(replica). \
                    Nothing was changed. Move that file away, or give the copy another name.
                    """
            )
        }
        try FileSystem.synchronizeDirectory(of: path)
    }

    /// Whether the path still leads to this file.
    func isNamed() throws(DatabaseError) -> Bool { try file.isNamed() }

    /// Removes the file. For one without a state.
    func remove() {
        // If this cannot be told, or the file stays, the next follower takes it.
        guard (try? file.isNamed()) == true else { return }
        unlink(file.path)
    }

    /// Writes a state, durably.
    func write(_ new: FollowerState) throws(DatabaseError) {
        let bytes = try new.bytes(number + 1)
        guard bytes.count <= FollowerFile.room else {
            throw .notAllowed("The state of the follower has \(bytes.count) bytes, for which there is no room.")
        }
        let filled = bytes + [UInt8](repeating: 0, count: FollowerFile.room - bytes.count)
        try file.write(filled, at: Int((number + 1) % 2) * FollowerFile.room)
        try file.synchronize()
        (number, state) = (number + 1, new)
    }
}
