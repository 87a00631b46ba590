/// A page of a B-tree, read without SQLite. <https://www.sqlite.org/fileformat.html#b_tree_pages>
struct TreePage {
    enum Kind: UInt8 {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13

        var isTable: Bool { self == .tableInterior || self == .tableLeaf }
        var isLeaf: Bool { self == .indexLeaf || self == .tableLeaf }
    }

    struct Cell {
        /// The page below this cell; `nil` on a leaf.
        var child: Int64?
        var rowID: Int64 = 0
        /// `nil` on an interior page of a table, which holds no records.
        var payload: Payload?
    }

    /// A record, of which the end may stand on other pages.
    struct Payload {
        let size: Int
        let local: [UInt8]
        /// The first page of the rest.
        let overflow: Int64?
    }

    let kind: Kind
    private(set) var cells: [Cell] = []
    /// The last page below; `nil` on a leaf.
    private(set) var lastChild: Int64?
    /// Whether each cell could be read.
    private(set) var isWhole = true

    /// - Returns: `nil` if the bytes are not a page of a tree.
    init?(_ page: [UInt8], number: Int64, usableSize: Int) {
        let start = number == 1 ? 100 : 0
        guard let kind = Kind(rawValue: page[start]), usableSize <= page.count else { return nil }
        self.kind = kind
        let count = Int(page[start + 3]) << 8 | Int(page[start + 4])
        let headerSize = kind.isLeaf ? 8 : 12
        guard start + headerSize + 2 * count <= usableSize else { return nil }
        if !kind.isLeaf { lastChild = BigEndian.number(page[(start + 8)..<(start + 12)]) }
        cells.reserveCapacity(count)
        for index in 0..<count {
            let pointer = start + headerSize + 2 * index
            let offset = Int(page[pointer]) << 8 | Int(page[pointer + 1])
            var reader = ByteReader(page[..<usableSize], from: offset)
            guard offset >= start + headerSize + 2 * count, let cell = TreePage.cell(kind, &reader, usableSize) else {
                isWhole = false
                continue
            }
            cells.append(cell)
        }
    }

    private static func cell(_ kind: Kind, _ reader: inout ByteReader, _ usableSize: Int) -> Cell? {
        var cell = Cell()
        if !kind.isLeaf {
            guard let child = reader.number(4) else { return nil }
            cell.child = child
        }
        if kind == .tableInterior { return cell }
        guard let size = reader.varint(), size >= 0, size <= 0x7fff_ffff else { return nil }
        if kind == .tableLeaf {
            guard let rowID = reader.varint() else { return nil }
            cell.rowID = rowID
        }
        let localSize = localSize(ofPayload: Int(size), isTable: kind.isTable, usableSize)
        guard let local = reader.bytes(localSize) else { return nil }
        var overflow: Int64?
        if localSize < size {
            guard let page = reader.number(4) else { return nil }
            overflow = page
        }
        cell.payload = Payload(size: Int(size), local: Array(local), overflow: overflow)
        return cell
    }

    /// How much of a record stands on the page itself.
    /// <https://www.sqlite.org/fileformat.html#cell_payload_overflow_pages>
    private static func localSize(ofPayload size: Int, isTable: Bool, _ usableSize: Int) -> Int {
        let most = isTable ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
        if size <= most { return size }
        let least = (usableSize - 12) * 32 / 255 - 23
        let local = least + (size - least) % (usableSize - 4)
        return local <= most ? local : least
    }
}

/// Reads numbers from bytes, and nothing behind their end.
struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ bytes: ArraySlice<UInt8>, from position: Int) {
        self.bytes = bytes
        self.position = position
    }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, position >= bytes.startIndex, count <= bytes.endIndex - position else { return nil }
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// A number in big-endian order.
    mutating func number(_ count: Int) -> Int64? { bytes(count).map { BigEndian.number($0) } }

    /// <https://www.sqlite.org/fileformat.html#varint>
    mutating func varint() -> Int64? {
        var value: UInt64 = 0
        for index in 0..<9 {
            guard let byte = bytes(1)?.first else { return nil }
            if index == 8 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7f)
            if byte < 0x80 { return Int64(bitPattern: value) }
        }
        return nil
    }
}
