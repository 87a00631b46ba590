import ArgumentParser
import Foundation
import SealedDB

/// The stores that a command works on.
struct StoreListOptions: ParsableArguments {
    @Argument(help: "The stores; - reads names from standard input, one on each line.", completion: .file())
    var stores: [String] = []

    @Option(help: ArgumentHelp("Read names of stores from a file, one on each line.", valueName: "list"))
    var fromFile: String?

    @Option(
        name: .customLong("from0"),
        help: ArgumentHelp("Read names of stores from a file, with a NUL after each.", valueName: "list")
    )
    var fromFileWithNULs: String?

    /// Whether a single store is given, by its name on the command line.
    var isSingle: Bool { stores.count == 1 && stores[0] != "-" && fromFile == nil && fromFileWithNULs == nil }

    /// The stores, in the order in which they are given. A store that is given again is left out.
    /// - Parameter others: the names to use if no names are given at all, such as those of a key map.
    func items(or others: [String] = []) throws -> [StoreItem] {
        var names: [String] = []
        for name in stores {
            names += name == "-" ? try StoreListOptions.names(in: "-", separator: 0x0a) : [name]
        }
        if let fromFile { names += try StoreListOptions.names(in: fromFile, separator: 0x0a) }
        if let fromFileWithNULs { names += try StoreListOptions.names(in: fromFileWithNULs, separator: 0) }
        let isGiven = !stores.isEmpty || fromFile != nil || fromFileWithNULs != nil
        if !isGiven { names = others }
        guard !names.isEmpty else {
            throw Failure(
                .usage,
                isGiven ? "The list names no store. Nothing was done." : "Name a store, or a list by --from-file."
            )
        }
        var known: Set<ExactText> = []
        var items: [StoreItem] = []
        for name in names {
            let item = try StoreItem(name)
            if known.insert(ExactText(item.identity)).inserted { items.append(item) }
        }
        return items
    }

    /// A name is shown by messages and kept by journals. The file of a key may have been given for a list.
    static func requireNoKey(_ name: String, _ list: String) throws(Failure) {
        do throws(DatabaseError) {
            // Of such a file, the end of a line may be a part of the name.
            for part in name.split(whereSeparator: \.isWhitespace) { try Key.requireName(String(part), of: "store") }
        } catch {
            throw Failure(.usage, "\(list) holds what may be a key, where a store's name should be. Nothing was done.")
        }
    }

    /// Of a list or key map, in bytes: room for some hundred thousand names.
    static let sizeLimit = 64 << 20

    /// The names in a list. Empty lines are ignored.
    private static func names(in path: String, separator: UInt8) throws(Failure) -> [String] {
        try InputFile(path: path).contents(upTo: sizeLimit).split(separator: separator).map { bytes throws(Failure) in
            guard let name = String(validating: bytes, as: UTF8.self) else {
                throw Failure(.data, "\(path) holds a name that is not UTF-8. Nothing was done.")
            }
            try requireNoKey(name, path)
            return name
        }
    }
}
