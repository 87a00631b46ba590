extension BinaryInteger {
    /// The number with its noun: "1 page", "2 pages".
    package func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}
