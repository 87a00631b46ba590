/// The most pages that a store can have, by what is known of it.
///
/// SQLite writes each page by which a store grows to the log, but for the one that holds its locks. So a transaction that says
/// that the store has more pages than it ever had brings a frame for each of them, the last one among them. The digests of a
/// repository and the checksums of a log have no key: without this whoever can write there could have a restore make a file
/// of any size.
struct PageBound {
    /// The most pages that the store had up to here.
    private(set) var pageCount: Int64
    /// How many frames of the transaction that has not ended were read.
    private var frameCount: Int64 = 0
    /// The highest number of a page among these.
    private var lastPage: Int64 = 0

    init(pageCount: Int64) {
        self.pageCount = pageCount
    }

    /// Goes through frames that follow one another.
    /// - Returns: false if a transaction ends with more pages than there can be.
    mutating func read(_ frames: ArraySlice<UInt8>, pageSize: Int) -> Bool {
        let frameSize = LogFrameHeader.size + pageSize
        for start in stride(from: frames.startIndex, to: frames.endIndex, by: frameSize) {
            frameCount += 1
            lastPage = max(lastPage, LogFrameHeader(frames[start...]).page)
            let count = LogFrameHeader(frames[start...]).pageCount
            guard count > 0 else { continue }
            guard count <= max(pageCount, min(lastPage, pageCount + frameCount + 1)) else { return false }
            pageCount = max(pageCount, count)
            (frameCount, lastPage) = (0, 0)
        }
        return true
    }
}
