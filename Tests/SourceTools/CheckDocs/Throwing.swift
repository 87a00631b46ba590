// A function that throws says what, or is like another one, which it names.

extension Declaration {
    /// `rethrows` is what the caller throws, and a parameter that throws is not the function.
    var throwsErrors: Bool {
        var depth = 0
        let outside = text.filter { character in
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            return depth == 0
        }
        return kind != "swift.enum.case" && outside.split { !$0.isLetter }.contains("throws")
    }

    var saysWhatIsThrown: Bool { comment.contains("- Throws: ") || comment.hasPrefix("Like ``") }
}
