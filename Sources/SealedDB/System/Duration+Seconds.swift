extension Duration {
    /// The duration in seconds, as locks, clocks and FMDB have it.
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

    /// A duration of at most some 30,000 years, forwards or back; 0 for what is no number. `Duration.seconds(_:)` ends the
    /// process for more, and FMDB code passes what it likes, such as infinity.
    init(clampingSeconds seconds: Double) {
        self = .seconds(seconds.isNaN ? 0 : max(-1e12, min(seconds, 1e12)))
    }
}
