import Foundation

/// Limits what is written to a directory and read from it to a number of bytes a second.
///
/// Not for several threads at once.
final class TransferPace {
    private let bytesPerSecond: Double
    private let isEnding: () -> Bool
    /// The time at which all bytes so far are within the limit.
    private var paidUntil = ContinuousClock.now

    /// So many bytes are written at once.
    let bytesAtOnce: Int
    private static let pauses = 10.0

    /// - Parameter isEnding: whether nobody waits any more.
    init(bytesPerSecond: Int64, isEnding: @escaping () -> Bool) {
        self.bytesPerSecond = Double(max(1, bytesPerSecond))
        self.isEnding = isEnding
        bytesAtOnce = min(max(4096, Int(self.bytesPerSecond / TransferPace.pauses)), 1 << 20)
    }

    /// Waits for these bytes.
    func pay(_ count: Int) {
        paidUntil = max(paidUntil, .now) + .seconds(Double(count) / bytesPerSecond)
        while !isEnding() {
            let left = paidUntil - .now
            guard left > .zero else { return }
            // A signal may end the pause early.
            usleep(UInt32(min(left / .microseconds(1), 100_000)))
        }
        paidUntil = .now
    }
}
