import Foundation

/// The free pages of a store whose contents nobody reads: the leaves of its list of free pages.
/// <https://www.sqlite.org/fileformat.html#the_freelist>
///
/// SQLite need not write such a page. With a rollback journal, without `secure_delete`, a page that a transaction takes
/// and frees again stays as the system made it when the file grew: zeros, without a code. Nor does a journal keep what
/// stood in a free page that a transaction takes. If the power fails before it is committed, the page is free again, with
/// half of what was written to it. SQLCipher's `cipher_integrity_check` calls such pages damaged; nothing is.
///
/// The list is only believed if all its pages are authentic. What somebody puts in the place of a page in use does not
/// stand in a free one, so it is damage.
final class FreePages {
    private let pageCount: Int64
    private let cipher: PageCipher
    private let read: (_ number: Int64, _ page: UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Bool
    /// `nil` as long as nobody has asked.
    private var leaves: PageSet?

    /// - Parameters:
    ///   - pageCount: that of the store.
    ///   - cipher: that of the store. Only one thread may use it meanwhile.
    ///   - read: fills its buffer with a page as it stands in the store; false if there is none.
    init(
        pageCount: Int64,
        cipher: PageCipher,
        read: @escaping (_ number: Int64, _ page: UnsafeMutableRawBufferPointer) throws(DatabaseError) -> Bool
    ) {
        (self.pageCount, self.cipher, self.read) = (pageCount, cipher, read)
    }

    /// Whether the page is a leaf of the list. False for all pages if the list is not whole.
    func contains(_ number: Int64) throws(DatabaseError) -> Bool {
        if leaves == nil { leaves = try list() ?? PageSet() }
        return leaves?.contains(number) ?? false
    }

    private func list() throws(DatabaseError) -> PageSet? {
        guard cipher.parameters.usesHMAC else { return nil }
        let pageSize = cipher.parameters.pageSize
        let lockPage = PageScan.lockPage(pageSize: pageSize)
        let stored = PageBuffer(pageSize: pageSize, pageCount: 1)
        let scratch = try SecretScratch(count: pageSize)
        func load(_ number: Int64) throws(DatabaseError) -> Bool {
            let page = stored.page(0)
            guard try read(number, page), try cipher.isAuthentic(UnsafeRawBufferPointer(page), number: number) else {
                return false
            }
            try cipher.open(UnsafeRawBufferPointer(page), number: number, into: scratch.bytes)
            return true
        }
        func number(at offset: Int) -> Int64 {
            Int64(UInt32(bigEndian: scratch.bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        guard try load(1) else { return nil }
        let mostLeaves = Int64((pageSize - Int(scratch.bytes[20])) / 4 - 2)
        let count = number(at: 36)
        var trunk = number(at: 32)
        var (trunks, leaves) = (PageSet(), PageSet())
        func isNew(_ number: Int64) -> Bool {
            (2...max(2, pageCount)).contains(number) && number != lockPage && !trunks.contains(number)
                && !leaves.contains(number)
        }
        while trunk != 0 {
            guard isNew(trunk), trunks.count + leaves.count < count, try load(trunk) else { return nil }
            trunks.insert(trunk)
            let leafCount = number(at: 4)
            guard leafCount <= mostLeaves else { return nil }
            for index in 0..<Int(leafCount) {
                let leaf = number(at: 8 + 4 * index)
                guard isNew(leaf) else { return nil }
                leaves.insert(leaf)
            }
            trunk = number(at: 0)
        }
        return trunks.count + leaves.count == count ? leaves : nil
    }
}
