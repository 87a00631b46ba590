/// What a store was at one moment: of which chunks its pages consist, and where its log ended.
struct SnapshotManifest: Sendable {
    /// Why a generation begins; or that a snapshot does not begin one.
    enum Reason: String, Sendable {
        /// The repository had none.
        case first
        /// The log began anew, or was changed, while no shipper saw it.
        case logUnseen = "log-unseen"
        /// The store's file is another one than before, as after a rotation.
        case replaced
        /// So it is, and what was last committed to the old one could not be read.
        case replacedUnseen = "replaced-unseen"
        /// The log, or its index, was removed or replaced while the store was open.
        case logReplaced = "log-replaced"
        /// Something else than SQLite has written to the file while the store was open.
        case overwritten
        /// The store was given another key in place.
        case rekeyed
        /// The last generation is not whole.
        case damaged
        /// The store has another place than before.
        case moved
        /// It shortens restores.
        case interval
    }

    let generation: Int64
    /// The number of the last segment that it includes; 0 at the beginning of a generation.
    let sequence: Int64
    let reason: Reason
    /// The digest of that segment; at the beginning of a generation, of the last object of the one before, if there is one.
    let previous: String?
    let time: RepositoryTime
    let pageSize: Int
    let pageCount: Int64
    let chunkPages: Int64
    let log: LogPlace
    /// The path of the store.
    let store: String
    /// The number of the store's inode.
    let inode: UInt64
    /// The first bytes of the store: its salt.
    let fileSalt: [UInt8]
    /// The digest of the store's key slots; `nil` if it has none.
    let slots: String?
    let chunks: [String]

    static let title = "SealedDB snapshot 1"
    /// No object has more.
    private static let mostBytesInChunk = 1 << 30

    func bytes() throws(DatabaseError) -> [UInt8] {
        var text = ObjectText(title: SnapshotManifest.title)
        text.add("generation", generation)
        text.add("sequence", sequence)
        text.add("reason", reason.rawValue)
        text.add("previous", previous ?? "-")
        text.add("time", time)
        text.add("page-size", pageSize)
        text.add("page-count", pageCount)
        text.add("chunk-pages", chunkPages)
        log.add(to: &text)
        text.add("store", ObjectText.escaped(store))
        text.add("inode", inode)
        text.add("file-salt", Hexadecimal.string(fileSalt))
        text.add("slots", slots ?? "-")
        text.add("chunks", chunks.count)
        for chunk in chunks { text.add("chunk", chunk) }
        return try text.sealed()
    }

    /// How many bytes the chunk with this index has.
    func byteCount(ofChunk index: Int) -> Int {
        let pages = min(chunkPages, pageCount - Int64(index) * chunkPages)
        return Int(pages) * pageSize
    }
}

extension SnapshotManifest {
    /// - Parameter name: its name, which says which one it is.
    init(parsing bytes: [UInt8], named name: ObjectName) throws(DatabaseError) {
        let text = try ObjectText(parsing: bytes, title: SnapshotManifest.title, of: name.text)
        generation = try text.number("generation")
        sequence = try text.number("sequence")
        guard name == .snapshot(generation: generation, sequence: sequence), text.byteCount == bytes.count else {
            throw .damagedObject(name.text, "it is that of another snapshot, or something follows it")
        }
        guard let reason = Reason(rawValue: try text.value("reason")) else { throw text.missing("reason") }
        self.reason = reason
        previous = try text.optional("previous")
        time = try text.time("time")
        pageSize = try LogPlace.pageSize(text)
        pageCount = try text.number("page-count", in: 1...Int64(UInt32.max))
        chunkPages = try text.number("chunk-pages", in: 1...1 << 20)
        guard Int(min(chunkPages, pageCount)) * pageSize <= SnapshotManifest.mostBytesInChunk else {
            throw text.missing("chunk-pages")
        }
        log = try LogPlace(text)
        guard let store = ObjectText.unescaped(try text.value("store")) else { throw text.missing("store") }
        self.store = store
        guard let inode = UInt64(try text.value("inode")) else { throw text.missing("inode") }
        self.inode = inode
        fileSalt = try text.bytes("file-salt", count: Key.saltByteCount)
        slots = try text.optional("slots") == nil ? nil : try text.digest("slots")
        chunks = text.values("chunk")
        guard Int64(chunks.count) == (pageCount + chunkPages - 1) / chunkPages,
            try text.number("chunks") == Int64(chunks.count), chunks.allSatisfy(ObjectDigest.isOne)
        else { throw text.missing("chunk") }
        try requireDifferentChunks(name)
    }

    /// Shippers make chunks of a MiB.
    private static let mostBytesOfZeros = 16 << 20

    /// Encrypted pages never repeat, only those that were never written do. A small object that is named many times would make a
    /// restore fill the disk.
    private func requireDifferentChunks(_ name: ObjectName) throws(DatabaseError) {
        var seen: Set<String> = []
        let repeated = Set(chunks.filter { !seen.insert($0).inserted })
        guard let digest = repeated.first else { return }
        let count = byteCount(ofChunk: 0)
        guard repeated.count == 1, count <= SnapshotManifest.mostBytesOfZeros,
            try ObjectDigest.of([UInt8](repeating: 0, count: count)) == digest
        else {
            throw .damagedObject(name.text, "it has the same pages more than once")
        }
    }
}

/// A place between two frames of a write-ahead log, which no other log has.
struct LogPlace: Sendable, Equatable {
    /// The 32 bytes at the beginning of the log; `nil` if there was no log.
    let header: [UInt8]?
    /// How many frames come before.
    var frame: Int64
    /// The checksum of all of these, as it stands in the last of them, or in the header.
    var checksum: [UInt8]

    static let checksumSize = 8

    static let none = LogPlace(header: nil, frame: 0, checksum: [UInt8](repeating: 0, count: checksumSize))

    init(header: [UInt8]?, frame: Int64, checksum: [UInt8]) {
        (self.header, self.frame, self.checksum) = (header, frame, checksum)
    }

    /// The beginning of a log.
    init(beginningOf header: [UInt8]) {
        self.init(header: header, frame: 0, checksum: Array(header[24..<32]))
    }

    var salts: ArraySlice<UInt8>? { header?[16..<24] }

    /// Whether these 32 bytes begin a log with pages of this size. <https://www.sqlite.org/walformat.html>
    static func isHeader(_ bytes: [UInt8], pageSize: Int) -> Bool {
        guard bytes.count == LogHeader.size else { return false }
        let header = LogHeader(bytes)
        return header.isWhole && header.pageSize == pageSize
    }

    // MARK: Text

    func add(to text: inout ObjectText) {
        text.add("log-header", header.map(Hexadecimal.string) ?? "-")
        text.add("log-frame", frame)
        text.add("log-checksum", Hexadecimal.string(checksum))
    }

    init(_ text: ObjectText) throws(DatabaseError) {
        let pageSize = try LogPlace.pageSize(text)
        if let hex = try text.optional("log-header") {
            guard let bytes = ObjectText.bytes(hex: hex), LogPlace.isHeader(bytes, pageSize: pageSize) else {
                throw text.missing("log-header")
            }
            header = bytes
        } else {
            header = nil
        }
        frame = try text.number("log-frame", in: 0...Int64(UInt32.max))
        checksum = try text.bytes("log-checksum", count: LogPlace.checksumSize)
    }

    static func pageSize(_ text: ObjectText) throws(DatabaseError) -> Int {
        let size = Int(try text.number("page-size", in: 512...65536))
        guard size & (size - 1) == 0 else { throw text.missing("page-size") }
        return size
    }
}
