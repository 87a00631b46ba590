extension PageCipher {
    /// Decrypts the page as ``decrypt(_:number:into:)`` does, with SQLite's magic where the first page has the salt.
    /// - Throws: if OpenSSL fails. This says nothing about the page.
    func open(
        _ page: UnsafeRawBufferPointer,
        number: Int64,
        into target: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        try decrypt(page, number: number, into: target)
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
        try keys.fillRandomly(UnsafeMutableRawBufferPointer(rebasing: page[contentSize...]))
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
        try authenticate(page, number: number)
    }

    /// Writes a page that was encrypted with the key of this cipher, under the salt of this cipher: its ciphertext and IV
    /// are kept, and it gets a code of its own.
    /// - Parameters:
    ///   - page: an authentic page, only read during the call.
    ///   - target: room for a page. It must not overlap the page.
    /// - Throws: if OpenSSL fails. The page must not be used then.
    func reseal(
        _ page: UnsafeRawBufferPointer,
        number: Int64,
        into target: UnsafeMutableRawBufferPointer
    ) throws(DatabaseError) {
        precondition(page.count == parameters.pageSize && target.count == page.count, "A page has the size of a page.")
        target.copyMemory(from: page)
        if number == 1, parameters.plaintextHeaderSize == 0 { target.copyBytes(from: salt) }
        try authenticate(target, number: number)
    }

    /// Writes the code of a page into it.
    private func authenticate(_ page: UnsafeMutableRawBufferPointer, number: Int64) throws(DatabaseError) {
        guard parameters.usesHMAC, let start = page.baseAddress else { return }
        let end = contentSize + 16
        let covered = UnsafeRawBufferPointer(rebasing: page[clearBytes(ofPage: number)..<end])
        try keys.authenticate(covered, number: number, code: start + end)
    }
}
