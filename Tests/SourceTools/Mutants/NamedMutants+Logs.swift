extension NamedMutant {
    /// What a damaged log would undo is refused, and what it still has is saved.
    static let logs: [NamedMutant] = [
        .init(
            "a log without its header is dropped beside a part of it in the file",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "!inFile(log.pages, pageSize: pageSize, isOneEnough: true).isEmpty",
            "false"
        ),
        .init(
            "a page of which the log's copy is damaged does not count as in the file",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "LogOverlay.shareCiphertext(page, stored, from: clearCount(ofPage: number))",
            "false"
        ),
        .init(
            "a page of which the log's number is damaged does not count as in the file",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "if let own { pages.append(UnusedPage(number: own.page, offset: frame.offset)) }",
            ""
        ),
        .init(
            "an older page behind the header of a new frame counts as in the file",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "previousSum.adding(header, page[...]).bytes[...] == header.checksum",
            "true"
        ),
        .init(
            "a recovery takes an older page behind the header of a new frame for newer than the log",
            "SealedDB/Cipher/Recovery/SalvagedCheckpoint.swift",
            .expression,
            "page[$0..<$1] == stored[$0..<$1] || Set(page[$0..<$1]).count == 1",
            "true"
        ),
        .init(
            "nobody is told that a store is attached without some of its transactions",
            "SealedDB/Cipher/Opening/StoreAttachment.swift",
            .expression,
            "lostTransactions > 0",
            "false"
        ),
        .init(
            "zeros at the beginning of a log hide what follows",
            "SealedDB/Cipher/Logs/HeadlessLog.swift",
            .expression,
            "frame.header.page > 0",
            "true"
        ),
        .init(
            "what is no frame of the log ends a transaction",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "!hasBegun || standing.isOfLog && commits",
            "!hasBegun || commits"
        ),
        .init(
            "a recovery takes the older frames behind a log that began anew",
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            .expression,
            "isProven || header.salts == start.salts",
            "true"
        ),
        .init(
            "a recovery ends at a damaged page behind a damaged checksum",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "frame.header.salts == salts ? nil : false",
            "false"
        ),
        .init(
            "a recovery from a log without codes undoes what the file has",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "damage.inFile(damage.tail())",
            "[]"
        ),
        .init(
            "a recovery leaves out a record of a journal with a damaged checksum",
            "SealedDB/Cipher/Recovery/JournalRecords.swift",
            .expression,
            "record?.nonce == nonce ? true : try isCounted(place)",
            "record?.nonce == nonce"
        ),
        .init(
            "a child that is being started keeps the lock of a file that is given up",
            "SealedDB/System/NewFile.swift",
            .expression,
            "sealeddb_unlock_and_close(descriptor)",
            "_ = close(descriptor)"
        ),
        .init(
            "a failure of OpenSSL passes for a wrong key",
            "SealedDB/Engine/Pages/PageWatch.swift",
            .expression,
            "failure.isOfSystem",
            "failure.code == SQLITE_IOERR"
        ),
        .init(
            "a check of the structure ends at the first expression that fails",
            "SealedDB/Cipher/Verification/StructureCheck.swift",
            .statement,
            "isOfTable = isOfTable || answer.failure != nil",
            "if answer.failure != nil { break }"
        ),
        .init(
            "nobody is told that a store is opened without some of its transactions",
            "SealedDB/Cipher/Opening/StoreOpening.swift",
            .expression,
            "lostTransactions > 0",
            "false"
        ),
        .init(
            "frames behind the header of an older log are not looked for",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "if standing.continuesNewer { noteNewer(frame.header) }",
            ""
        ),
        .init(
            "the first frame of a log whose header was lost does not count",
            "SealedDB/Cipher/Logs/LogHeader.swift",
            .expression,
            "start.step(to: sum)[..<4] == BigEndian.bytes(UInt32(page.count))[...]",
            "false"
        ),
        .init(
            "pages of an older log are read in the place of newer ones of the file",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "newerCommitCount > 0 && hasTransactions",
            "false"
        ),
        .init(
            "a recovery takes the header of an older log for that of its frames",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "saltsOfNewerLog(than: header)",
            "Optional<ArraySlice<UInt8>>.none"
        ),
        .init(
            "what two power failures leave counts as damage",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "previous?.isOfLog != false",
            "false"
        ),
        .init(
            "a part of an older transaction hides the newer log behind it",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "transactionsBehindHeader(ofLogWith: tail?.newerSalts)",
            "transactionsBehindHeader(ofLogWith: nil)"
        ),
        .init(
            "the frames behind a newer log that has lost its header count as those of the log",
            "SealedDB/Cipher/Logs/HeadlessLog.swift",
            .expression,
            "isFirstOfOlderLog(frame)",
            "false"
        ),
        .init(
            "a recovery takes the frames behind a newer log that has lost its header for that log",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "beforeGap.map { $0.page > 0 && claim.mayBeOlder(thanLogOf: $0.salts) } == true",
            "false"
        ),
        .init(
            "what became of a lost header passes for the frame of a newer log",
            "SealedDB/Cipher/Logs/HeadlessLog.swift",
            .expression,
            "(1...limit).contains(beforePrevious.page)",
            "true"
        ),
        .init(
            "frames whose headers were lost are not looked for in the file",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "pages.union(lostFramesInFile(tail, isOneEnough).keys)",
            "pages"
        ),
        .init(
            "a frame that another log has left, whose page the file has by its number, counts as lost",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "page.ownNumber != number && store.sharesCiphertext(page.bytes, stored, number: number)",
            "store.sharesCiphertext(page.bytes, stored, number: number)"
        ),
        .init(
            "a frame that was lost before a whole one is not proven by that",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "tail.isLost(gap, of: stored, number: number)",
            "false"
        ),
        .init(
            "a frame of which the disk has kept the header of an older log is not looked for in the file",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "store.hasEnd(of: atEnd.bytes, stored)",
            "false"
        ),
        .init(
            "what a torn transaction has left at the end of a log passes for a frame that the disk has not written",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "tail.isFrameAtEndContinued",
            "true"
        ),
        .init(
            "a header that the disk has kept is not known by the older frame that continues it",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "isFrameAtEndContinued = frame.header.salts == frameAtEnd.header.salts",
            ""
        ),
        .init(
            "the frame behind one whose checksum was lost is not looked for in the file",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "isOfLog(standing, behindLostChecksum: previous)",
            "false"
        ),
        .init(
            "salts that were lost are those of an older log",
            "SealedDB/Cipher/Logs/LogFrame.swift",
            .expression,
            "hasPossiblePage && !hasLostSalts && LogFrameHeader.mayFollow(self.salts, salts)",
            "hasPossiblePage && LogFrameHeader.mayFollow(self.salts, salts)"
        ),
        .init(
            "a log of another version is one that SQLite reads",
            "SealedDB/Cipher/Logs/LogHeader.swift",
            .expression,
            "version == LogHeader.knownVersion",
            "true"
        ),
        .init(
            "a recovery without a frame that the disk has not written is called complete",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "tail.hasFramesBehindOthers",
            "false"
        ),
        .init(
            "a recovery puts an older page over that of a frame whose header was lost",
            "SealedDB/Cipher/Recovery/SalvagedLogs.swift",
            .expression,
            "try LogDamage.lostFrames(inFileOfStore: path, openIn: store)",
            "[Int64: Int64]()"
        ),
        .init(
            "frames without headers are looked for among the pages that the log uses",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "isOpening && pageCount > LogDamage.mostPagesAtOpening",
            "true"
        ),
        .init(
            "a frame with other salts that is whole counts as lost",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "!isPossible(frame.header)",
            "true"
        ),
        .init(
            "a page whose checksum was lost with its beginning is not looked for in the file",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "frame.hasOwnPage || frame.header.hasLostChecksum",
            "frame.hasOwnPage"
        ),
        .init(
            "a recovery from a log with lost headers is called complete",
            "SealedDB/Cipher/Recovery/StoreRecovery.swift",
            .expression,
            "try LogDamage.hasLostFrames(ofStore: path, openIn: store)",
            "false"
        ),
        .init(
            "a recovery stops at a changed salt",
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            .expression,
            "try frames.isRestored(frame, behind: known, stored)",
            "false"
        ),
        .init(
            "numbers of an older frame in a header that the disk wrote in part prove a commit",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "[frame.provenByItself].first(where: isPossible)",
            "Optional<ProvenFrame>.none"
        ),
        .init(
            "frames of a log with other salts pass for damaged ones of this log",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "others.isEmpty",
            "true"
        ),
        .init(
            "a checksum that was changed hides that the file has the page of its frame",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "frame.hasOwnPage || frame.header.hasLostChecksum",
            "false"
        ),
        .init(
            "a recovery ends before a frame of which a part of the checksum was changed",
            "SealedDB/Cipher/Recovery/SalvagedChain.swift",
            .expression,
            "computed.sharesWord(with: stored)",
            "false"
        ),
        .init(
            "the first whole frame of a log without a header is not asked for",
            "SealedDB/Cipher/Logs/HeadlessLog.swift",
            .statement,
            "add(previous, previousOffset)",
            ""
        ),
        .init(
            "a page passes for its frame's own because one word of the checksum is right",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .statement,
            "pages.append(UnusedPage(claimedBy: frame))",
            "if !frame.hasOwnPage { pages.append(UnusedPage(claimedBy: frame)) }"
        ),
        .init(
            "the first page of a store with a header in clear is not compared in part",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "LogOverlay.shareCiphertext(page, stored, from: clearCount(ofPage: number))",
            "(number > 1 || !StoreHeader.hasMagic(start)) && LogOverlay.shareCiphertext(page, stored, from: clearCount(ofPage: number))"
        ),
        .init(
            "a plaintext database that reserves bytes counts as encrypted",
            "SealedDB/Cipher/Logs/LogDamage.swift",
            .expression,
            "!StoreHeader.isPlaintext(start)",
            "start[20] >= 16"
        ),
        .init(
            "a recovery believes numbers that no frame can have",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "proven.isPossible(upTo: limit)",
            "proven.page > 0"
        ),
        .init(
            "a recovery bounds what an earlier frame tells by the file of now",
            "SealedDB/Cipher/Recovery/SalvagedFrames.swift",
            .expression,
            "found.isPossible(upTo: .max)",
            "found.isPossible(upTo: limit)"
        ),
        .init(
            "older frames continue the log behind a header over two sectors",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "(standing.isWhole || frame.hasOwnPage)",
            "true"
        ),
        .init(
            "the numbers of an older frame tell a commit",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "(standing.isWhole || !numbersEnd.isMultiple(of: 512))",
            "true"
        ),
        .init(
            "a frame of a transaction that was rolled back tells a commit by its page",
            "SealedDB/Cipher/Logs/LogTail.swift",
            .expression,
            "!isSecondBreak",
            "true"
        ),
    ]
}
