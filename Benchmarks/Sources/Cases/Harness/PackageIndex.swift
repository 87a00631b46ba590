import Foundation

/// Real data: the packages that this machine's package manager knows.
///
/// The file holds records that end with a line feed, of fields that end with a tab; within a field both are spaces.
final class PackageIndex {
    static let columns = ["name", "version", "section", "maintainer", "depends", "description"]
    static let createTable = """
        CREATE TABLE package (
            id INTEGER PRIMARY KEY, name TEXT, version TEXT, section TEXT, maintainer TEXT, depends TEXT, description TEXT
        )
        """
    static let insert = """
        INSERT INTO package (name, version, section, maintainer, depends, description) VALUES (?, ?, ?, ?, ?, ?)
        """

    /// The fields of all records, one after the other.
    let texts: [String]
    /// The same as C has them, in one piece of memory; never freed.
    let pointers: [UnsafePointer<CChar>?]
    let lengths: [Int32]
    /// Names to look up, in an order that no cache can foresee.
    let names: [String]

    var count: Int { texts.count / Self.columns.count }
    var bytes: Int { lengths.reduce(0) { $0 + Int($1) } }

    init(_ path: String) throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: data.count)
        _ = memory.initialize(from: data)
        var texts: [String] = []
        var pointers: [UnsafePointer<CChar>?] = []
        var lengths: [Int32] = []
        var start = 0
        for index in memory.indices where memory[index] == UInt8(ascii: "\t") || memory[index] == UInt8(ascii: "\n") {
            let field = UnsafeBufferPointer(rebasing: memory[start..<index])
            texts.append(String(decoding: field, as: UTF8.self))
            pointers.append(UnsafeRawPointer(memory.baseAddress! + start).assumingMemoryBound(to: CChar.self))
            lengths.append(Int32(field.count))
            start = index + 1
        }
        guard !texts.isEmpty, texts.count.isMultiple(of: Self.columns.count) else {
            throw Failure("\(path) is not a package index of \(Self.columns.count) fields.")
        }
        self.texts = texts
        self.pointers = pointers
        self.lengths = lengths
        let names = stride(from: 0, to: texts.count, by: Self.columns.count).map { texts[$0] }
        var random = Random(seed: 11)
        self.names = (0..<500).map { _ in names[Int(random.next() % UInt64(names.count))] }
    }
}
