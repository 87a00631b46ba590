internal import CSealedDBSystem
import Foundation

/// A repository in a directory, on a local disk or mounted.
///
/// An object gets its name when it is whole and synced. Its name is synced before it counts. Two machines that mount the
/// directory are only kept apart if its file system passes locks on (NFS does, most file systems over FUSE do not).
final class DirectoryStorage: RepositoryStorage {
    let path: String
    var name: String { path }
    /// Directories whose names are durable.
    private var durable: Set<String> = []
    /// Directories of which all names are durable that somebody else has given.
    private var synchronized: Set<String> = []
    /// The open file of the lease; -1 without one.
    private var leaseDescriptor: Int32 = -1
    /// The directory, when it was last leased.
    private var directory: FileIdentity?
    /// The descriptor of that directory, which leads there whatever has its path; -1 without one.
    private var held: Int32 = -1
    /// `nil` for as fast as it will go.
    private let pace: TransferPace?

    private static let leaseName = "lease"
    /// Unfinished objects have this and 16 hex digits as their name. No object has.
    private static let unfinished = ".sealdb-"
    private static let deepest = 4

    /// - Parameter creates: whether the directory is made if it is missing. Its parent must be there.
    init(_ path: String, creates: Bool, pace: TransferPace? = nil) throws(DatabaseError) {
        self.pace = pace
        if creates, try FileSystem.statusIfPresent(path) == nil {
            try StoreName.requireNoPart(path)
            try DirectoryStorage.make(path)
            try FileSystem.synchronizeDirectory(of: path)
        }
        guard let resolved = FileSystem.resolve(path) else {
            throw .system("Cannot open the repository \(path)", reason: .noSuchFile)
        }
        let status = try FileSystem.status(resolved)
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw DatabaseError(
                extendedCode: SQLITE_CANTOPEN,
                reason: .notRegularFile,
                message: "\(resolved) is not a directory, as a repository is. Nothing was changed."
            )
        }
        self.path = resolved
        // Whoever made it may have been killed before its name was durable. Where its parent cannot be opened, it was made by
        // somebody else.
        if creates { try? FileSystem.synchronizeDirectory(of: resolved) }
    }

    deinit {
        release()
    }

    /// Makes a directory unless it is there. Its name is not durable by that.
    private static func make(_ path: String) throws(DatabaseError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw .system("Cannot make the directory \(path)", reason: .cannotCreate)
        }
    }

    /// Does something by paths, and makes sure afterwards that the leased directory is in its place: another one there would take
    /// what is written, and answer for what is read.
    private func inPlace<T>(_ body: () throws(DatabaseError) -> T) throws(DatabaseError) -> T {
        let result = try body()
        guard leaseDescriptor >= 0, let directory, try !directory.isNamed(path) else { return result }
        throw notInPlace()
    }

    /// Makes sure that an object is in the leased directory itself. For a moment, its path may have led to another one.
    /// - Parameter object: `nil` for one that was found.
    private func requireHeld(_ name: String, _ object: UnfinishedObject?) throws(DatabaseError) {
        guard held >= 0, FileSystem.exists("\(heldPath)/.") else { return }
        let own = "\(heldPath)/\(name)"
        guard try object?.isNamed == true ? object!.file.isAt(own) : FileSystem.statusIfPresent(own) != nil else {
            throw notInPlace()
        }
    }

    private var heldPath: String { "/proc/self/fd/\(held)" }

    private func notInPlace() -> DatabaseError {
        (durable, synchronized) = ([], [])
        return DatabaseError(
            extendedCode: SQLITE_CORRUPT,
            reason: .damaged,
            message: """
                \(path) is another directory than the one that was leased, as if a copy were being put in its place. What was \
                written there last is not reported as shipped. See what is done to it.
                """
        )
    }

    // MARK: FollowedStore

    func objects(under part: String) throws(DatabaseError) -> [StoredObject] {
        var found: [StoredObject] = []
        try inPlace { () throws(DatabaseError) in
            try visit(part, depth: 0) { name, status throws(DatabaseError) in
                guard !DirectoryStorage.isUnfinished(name.nameOfPath) else { return }
                found.append(StoredObject(name: name, size: Int64(status.st_size)))
            }
        }
        return found
    }

    /// Calls `body` with each regular file below a part; "" for all.
    private func visit(
        _ part: String,
        depth: Int,
        _ body: (String, stat) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let directory = part.isEmpty ? path : "\(path)/\(part)"
        guard let names = FileSystem.names(in: directory) else {
            let number = errno
            // Nothing was written there yet. But the repository itself must be there.
            if number == ENOENT, !part.isEmpty, try FileSystem.statusIfPresent(path) != nil { return }
            throw .system("Cannot read \(directory)", reason: .ioError, number: number)
        }
        for name in names.sorted() {
            let whole = part.isEmpty ? name : "\(part)/\(name)"
            // What was removed meanwhile is not there.
            guard let status = try FileSystem.statusIfPresent("\(path)/\(whole)") else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG: try body(whole, status)
            case S_IFDIR where depth < DirectoryStorage.deepest: try visit(whole, depth: depth + 1, body)
            // What is left out of a list counts as removed, and what only that needs would be removed, too.
            case let kind where kind != S_IFDIR && ObjectName.isOfRepository(whole): throw foreign("\(path)/\(whole)")
            default: continue
            }
        }
    }

    func read(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]? {
        try inPlace { () throws(DatabaseError) in try bytes(name, limit: limit) }
    }

    private func bytes(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]? {
        try requireOwnDirectories(of: name)
        guard let file = try FileReader("\(path)/\(name)") else {
            // That a disk is not mounted must not look like a repository without this object.
            _ = try FileSystem.status(path)
            return nil
        }
        let size = Int(clamping: try file.size())
        guard min(size, limit ?? size) <= DirectoryStorage.mostBytes else {
            throw .damagedObject("\(path)/\(name)", "it has \(size) bytes, and no object has so many")
        }
        guard let bytes = try file.bytes(at: 0, count: min(size, limit ?? size)) else {
            throw .damagedObject("\(path)/\(name)", "it was cut off while it was read")
        }
        pace?.pay(bytes.count)
        return bytes
    }

    // MARK: Writing

    private static func isUnfinished(_ name: String) -> Bool {
        name.begins(with: unfinished) && name.utf8.count == unfinished.utf8.count + 16
            && name.utf8.dropFirst(unfinished.utf8.count).allSatisfy { Hexadecimal.value(of: $0) != nil }
    }

    func write(_ objects: [NewObject]) throws(DatabaseError) -> [Bool] {
        var unfinished: [UnfinishedObject?] = []
        defer { for object in unfinished { object?.discard() } }
        try makeDirectories(of: objects.map(\.name))
        for object in objects {
            let target = "\(path)/\(object.name)"
            guard try FileSystem.statusIfPresent(target) == nil else {
                // Whoever wrote it may have been killed before its name was durable.
                try FileSystem.synchronizeDirectory(of: target)
                unfinished.append(nil)
                continue
            }
            unfinished.append(try begin(object.bytes, target))
        }
        let isNew = try inPlace { () throws(DatabaseError) in try finish(unfinished, replaces: false) }
        for (object, file) in zip(objects, unfinished) { try requireHeld(object.name, file) }
        return isNew
    }

    func replace(_ bytes: [UInt8], as name: String) throws(DatabaseError) {
        try makeDirectories(of: [name])
        let object = try begin(bytes, "\(path)/\(name)")
        defer { object.discard() }
        // It is not refused.
        _ = try inPlace { () throws(DatabaseError) in try finish([object], replaces: true) }
        try requireHeld(name, object)
    }

    /// Gives objects their names.
    ///
    /// Syncing the first has the disk store the most part of all, which is why they are not finished one by one.
    /// - Returns: for each, whether it has got its name.
    private func finish(_ objects: [UnfinishedObject?], replaces: Bool) throws(DatabaseError) -> [Bool] {
        for object in objects { try object?.synchronize() }
        var isNew: [Bool] = []
        for object in objects { isNew.append(try object?.takeName(replaces: replaces) ?? false) }
        // Also where somebody else has given the name meanwhile.
        var directories = Set<String>()
        for case let object? in objects where !directories.contains(FileSystem.directory(of: object.target)) {
            do throws(DatabaseError) {
                try FileSystem.synchronizeDirectory(of: object.target)
                directories.insert(FileSystem.directory(of: object.target))
            } catch {
                // Whether the names are durable is not known, and a failed sync is not repeated: they are written anew.
                for case let other? in objects
                where other.isNamed && !directories.contains(FileSystem.directory(of: other.target)) {
                    unlink(other.target)  // If it stays, it holds what it should.
                }
                synchronized = []
                throw error
            }
        }
        return isNew
    }

    /// Writes an object under a name that nobody looks for.
    private func begin(_ bytes: [UInt8], _ target: String) throws(DatabaseError) -> UnfinishedObject {
        let new = "\(FileSystem.directory(of: target))/\(DirectoryStorage.unfinished)\(try FileSystem.randomName())"
        let object = try UnfinishedObject(new, target: target)
        do throws(DatabaseError) {
            let written = bytes.withUnsafeBytes { bytes in
                Result { () throws(DatabaseError) in try self.write(bytes, to: object.file) }
            }
            try written.get()
            try object.file.beginWriting(0..<Int64(bytes.count))
        } catch {
            object.discard()
            throw error.naming(target, insteadOf: new)
        }
        return object
    }

    private func write(_ bytes: UnsafeRawBufferPointer, to file: NewFile) throws(DatabaseError) {
        guard let pace else { return try file.write(bytes, at: 0) }
        var done = 0
        while done < bytes.count {
            let part = bytes[done..<min(done + pace.bytesAtOnce, bytes.count)]
            try file.write(UnsafeRawBufferPointer(rebasing: part), at: Int64(done))
            pace.pay(part.count)
            done = part.endIndex
        }
    }

    /// No object has more: anybody may have put a file there.
    private static let mostBytes = 1 << 30

    /// A link in the place of a directory would lead to files that are not the repository's.
    private func requireOwnDirectories(of name: String) throws(DatabaseError) {
        var directory = path
        for part in name.split(separator: "/").dropLast() {
            directory += "/\(part)"
            guard let status = try FileSystem.statusIfPresent(directory) else {
                // An older copy of the repository that was put in its place has fewer.
                durable.remove(directory)
                synchronized = []
                continue
            }
            guard status.st_mode & S_IFMT != S_IFDIR else { continue }
            throw foreign(directory)
        }
    }

    private func foreign(_ path: String) -> DatabaseError {
        DatabaseError(
            extendedCode: SQLITE_CANTOPEN,
            reason: .notRegularFile,
            message: """
                \(path) is a link, or something else than a directory or a file, so it is no part of the repository. Nothing was \
                read or written there. Put in its place what it leads to, or remove it.
                """
        )
    }

    func makeDurable(_ names: [String]) throws(DatabaseError) {
        try inPlace { () throws(DatabaseError) in try synchronize(names) }
    }

    private func synchronize(_ names: [String]) throws(DatabaseError) {
        for name in names {
            var target = "\(path)/\(name)"
            while target != path {
                let directory = FileSystem.directory(of: target)
                if !synchronized.contains(directory) {
                    try FileSystem.synchronizeDirectory(of: target)
                    synchronized.insert(directory)
                }
                target = directory
            }
        }
    }

    /// Makes the directories that these objects need, and their names durable.
    private func makeDirectories(of names: [String]) throws(DatabaseError) {
        var new: [String] = []
        for name in names {
            try requireOwnDirectories(of: name)
            var directory = path
            for part in name.split(separator: "/").dropLast() {
                directory += "/\(part)"
                // Who takes the repository away and puts another one there is found out by its mark.
                guard !durable.contains(directory), !new.contains(directory) else { continue }
                try DirectoryStorage.make(directory)
                new.append(directory)
            }
        }
        var parents = Set<String>()
        for directory in new where parents.insert(FileSystem.directory(of: directory)).inserted {
            try FileSystem.synchronizeDirectory(of: directory)
        }
        durable.formUnion(new)
    }

    func remove(_ name: String) throws(DatabaseError) {
        try inPlace { () throws(DatabaseError) in try unlinkDurably(name) }
    }

    private func unlinkDurably(_ name: String) throws(DatabaseError) {
        try requireOwnDirectories(of: name)
        let target = "\(path)/\(name)"
        guard unlink(target) == 0 else {
            let number = errno
            guard number == ENOENT else { throw .system("Cannot remove \(target)", reason: .ioError, number: number) }
            // Whoever has removed it may have been killed before that was durable.
            guard try FileSystem.statusIfPresent(FileSystem.directory(of: target)) != nil else { return }
            return try FileSystem.synchronizeDirectory(of: target)
        }
        try FileSystem.synchronizeDirectory(of: target)
    }

    // MARK: Lease

    @discardableResult
    func lease(known mark: RepositoryMark?) throws(DatabaseError) -> Bool {
        let now = try FileIdentity(ofExisting: path)
        let isSame = directory.map { before in now.map { $0.isSame(as: before) } ?? false } ?? true
        if !isSame {
            // Of this one nothing is known.
            (durable, synchronized) = ([], [])
            giveBackLease()
        }
        try takeLease(known: mark)
        if directory == nil || !isSame {
            // In an overlay, the lease is the first that is written, and gives the directory another time of creation.
            directory = try holdsLease() ? FileIdentity(ofExisting: path) : now
        }
        if held < 0 { try hold() }
        return isSame
    }

    /// Opens the leased directory. Without a descriptor, or without /proc, only the path is looked at.
    private func hold() throws(DatabaseError) {
        held = FileSystem.keep(path)
        guard held >= 0, FileSystem.exists("\(heldPath)/."), try directory?.isNamed("\(heldPath)/.") == false else {
            return
        }
        giveBackLease()
        throw notInPlace()
    }

    private func takeLease(known mark: RepositoryMark?) throws(DatabaseError) {
        let file = "\(path)/\(DirectoryStorage.leaseName)"
        if leaseDescriptor >= 0 {
            if try holdsLease() { return }
            // It was removed: somebody else may have leased it.
            giveBackLease()
        }
        // Otherwise a file would be left where a disk is not mounted.
        if mark != nil { _ = try RepositoryMark.existing(self) }
        let descriptor = sealeddb_open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw .system("Cannot open \(file)", reason: .cannotCreate) }
        guard sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 1) == 0 else {
            let number = errno
            // Nothing was written to it, here and in `release()`.
            close(descriptor)
            guard number == EAGAIN || number == EACCES else {
                throw .system("Cannot lock \(file)", reason: .ioError, number: number)
            }
            let holders = LockHolders.ofDescriptions(file)
            let names = holders.isEmpty ? "another process" : holders.joined(separator: ", ")
            throw DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: "\(path) is being written to by \(names). Nothing was shipped. One store has one shipper."
            )
        }
        leaseDescriptor = descriptor
        try visit("", depth: 0) { name, _ throws(DatabaseError) in
            guard DirectoryStorage.isUnfinished(name.nameOfPath) else { return }
            // It does no harm if it stays.
            unlink("\(path)/\(name)")
        }
    }

    /// Whether the lease at the path is the one that is held.
    private func holdsLease() throws(DatabaseError) -> Bool {
        let file = "\(path)/\(DirectoryStorage.leaseName)"
        let named = try FileSystem.statusIfPresent(file)
        var status = stat()
        guard fstat(leaseDescriptor, &status) == 0 else {
            throw .system("Cannot examine \(file)", reason: .ioError)
        }
        return named?.isSameFile(as: status) ?? false
    }

    func release() {
        giveBackLease()
        // Whoever leases it next goes on at its end, as another process would.
        directory = nil
    }

    private func giveBackLease() {
        guard leaseDescriptor >= 0 else { return }
        sealeddb_unlock_and_close(leaseDescriptor)
        leaseDescriptor = -1
        if held >= 0 { close(held) }  // Nothing can be written through it.
        held = -1
    }
}
