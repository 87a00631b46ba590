import Foundation

/// A whole copy of the store at one moment, which is put together beside a replica: to be compared with it, or to take its
/// place.
final class NextFile {
    let path: String
    let outcome: RepositoryRestore.RestoredParts
    var pageSize: Int { outcome.plan.manifest.pageSize }
    var pageCount: Int64 { outcome.plan.pageCount }

    private static let pagesAtOnce: Int64 = 64

    /// What an earlier one has read, and could not use or was cut off from, is not read from the repository again.
    /// - Parameter replica: whose follower's file this process has locked.
    init(
        of replica: String,
        _ storage: any RepositoryStorage,
        _ moment: RepositoryMoment,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError) {
        let path = FollowerFile.pathOfNext(replica)
        NextFile.removeFile(path)
        outcome = try RepositoryRestore(storage: storage, at: moment, to: path)
            .restored(leavesSlots: true, progress: progress) { () throws(DatabaseError) in
                try RestorePlace(
                    path,
                    replaces: false,
                    ignoresUnseenUsers: false,
                    resumption: "The next attempt goes on from there"
                )
            }
        self.path = path
    }

    /// Leaves what was read to the next one.
    func keep() {
        // If that fails, the next one reads all of it again.
        guard let leftover = try? TemporaryFile.path(beside: path, mark: RestorePlace.mark), rename(path, leftover) == 0
        else { return discard() }
    }

    func discard() { NextFile.discard(path) }

    /// Removes what this or an earlier follower has left. It is no store that anybody uses.
    static func discard(_ path: String) {
        TemporaryFile.removeLeftovers(of: path)
        removeFile(path)
    }

    private static func removeFile(_ path: String) {
        // What cannot be removed is found when the next one is made.
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    /// The numbers of the pages that are not the same in the file of the replica, without its log.
    func differentPages(
        from replica: KeylessLog,
        ignoringUnwritten: Bool = false
    ) throws(DatabaseError) -> [Int64] {
        var different: [Int64] = []
        let buffer = PageBuffer(pageSize: pageSize, pageCount: Int(NextFile.pagesAtOnce))
        try forEachRun { first, bytes throws(DatabaseError) in
            let count = bytes.count / pageSize
            let got = try replica.read(at: (first - 1) * Int64(pageSize), into: buffer.pages(count))
            for index in 0..<count {
                let page = bytes[(index * pageSize)..<((index + 1) * pageSize)]
                let isSame = (index + 1) * pageSize <= got && buffer.page(index).elementsEqual(page)
                guard !isSame, !ignoringUnwritten || page.contains(where: { $0 != 0 }) else { continue }
                different.append(first + Int64(index))
            }
        }
        return different
    }

    private func forEachRun(
        _ body: (_ first: Int64, _ bytes: [UInt8]) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let reader = try open()
        var first: Int64 = 1
        while first <= pageCount {
            let count = Int(min(NextFile.pagesAtOnce, pageCount - first + 1))
            try body(first, pages(reader, first, count))
            first += Int64(count)
        }
    }

    private func open() throws(DatabaseError) -> FileReader {
        guard let reader = try FileReader(path) else {
            throw .system("Cannot open \(path)", reason: .ioError, number: ENOENT)
        }
        return reader
    }

    private func pages(_ reader: FileReader, _ first: Int64, _ count: Int) throws(DatabaseError) -> [UInt8] {
        guard let bytes = try reader.bytes(at: (first - 1) * Int64(pageSize), count: count * pageSize) else {
            throw .damagedObject(path, "it has fewer pages than before")
        }
        return bytes
    }

    /// Reads some of the pages.
    func read(
        _ numbers: [Int64],
        _ add: (_ page: Int64, _ bytes: ArraySlice<UInt8>) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        let reader = try open()
        for number in numbers { try add(number, pages(reader, number, 1)[...]) }
    }
}
