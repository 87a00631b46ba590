extension PageCipher {
    /// Decrypts the page as ``decrypt(_:number:into:)`` does, with SQLite's magic where the first page has the salt.
    /// - Throws: if OpenSSL fails. This says nothing about the page.
    func open(
        _ page: UnsafeRawBufferPointer,
        number: Int64,
        into target: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        guard decrypt(page, number: number, into: target) else { throw .cryptographyFailed }
        if number == 1 { target.copyBytes(from: StoreHeader.plaintextMagic) }
    }

    /// Encrypts a page with a fresh random IV, and authenticates it, as SQLCipher does.
    /// - Parameters:
    ///   - contents: what SQLite sees of the page: at least ``contentSize`` bytes. Only read during the call.
    ///   - page: room for a page. It must not overlap the contents.
    /// - Throws: if OpenSSL fails. The page must not be used then.
    func seal(
        _ contents: UnsafeRawBufferPointer,
        number: Int64,
        into page: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        precondition(page.count == parameters.pageSize, "A page has the size of a page.")
        // SQLCipher also fills what the IV and the code leave over of the reserved bytes.
        try PageKeys.fillRandomly(UnsafeMutableRawBufferPointer(rebasing: page[contentSize...]))
        try sealWithOwnIV(contents, number: number, into: page)
    }

    /// The same with the IV that stands in the reserved bytes of `page`. An IV must be used only once.
    func sealWithOwnIV(
        _ contents: UnsafeRawBufferPointer,
        number: Int64,
        into page: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        precondition(contents.count >= contentSize, "A page has contents.")
        // A page is never empty, so it has an address.
        let start = page.baseAddress!
        let (clear, iv) = (clearBytes(ofPage: number), start + contentSize)
        if number == 1, parameters.plaintextHeaderSize == 0 {
            page.copyBytes(from: salt)
        } else {
            page.copyMemory(from: UnsafeRawBufferPointer(rebasing: contents[..<clear]))
        }
        try keys.encrypt(
            UnsafeRawBufferPointer(rebasing: contents[clear..<contentSize]),
            iv: iv,
            into: start + clear
        )
        guard parameters.usesHMAC else { return }
        let covered = UnsafeRawBufferPointer(rebasing: page[clear..<(contentSize + 16)])
        try keys.authenticate(covered, number: number, code: iv + 16)
    }
}
