// A function that throws says what, and one of FMDB's that fails by its result says how; or it is like another one, which it
// names.

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

    /// Whether a caller can ignore that the function failed.
    var returnsFailure: Bool {
        text.contains("@discardableResult") && (text.hasSuffix("-> Bool") || text.hasSuffix("-> (any Error)?"))
    }

    var saysHowItFails: Bool {
        (!throwsErrors || comment.contains("- Throws: ")) && (!returnsFailure || comment.contains("Returns"))
            || comment.hasPrefix("Like ``")
    }
}
