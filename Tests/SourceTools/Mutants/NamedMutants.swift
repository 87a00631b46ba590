import Foundation

/// A mistake that was made once, or that somebody put in and no test noticed. Each must be found.
///
/// Beside the mistakes that ``Rewriter`` makes everywhere, these are written out: a piece of a file and what stands there
/// instead. A piece that is gone, or is there twice, ends the run, so that the table keeps up with the sources.
struct NamedMutant: Sendable {
    enum Form: Sendable {
        /// Both pieces are expressions of the same type.
        case expression
        /// Both are statements, of which nothing that follows uses a name.
        case statement
    }

    let name: String
    /// Beneath `Sources`.
    let file: String
    let form: Form
    let text: String
    let replacement: String

    init(_ name: String, _ file: String, _ form: Form, _ text: String, _ replacement: String) {
        self.name = name
        self.file = file
        self.form = form
        self.text = text
        self.replacement = replacement
    }

    /// What the check says of a place that is gone, or is there twice.
    private func problem(placeCount: Int) -> String {
        "The mutant \"\(name)\" has \(placeCount) places in \(file) instead of one, by its text: \(text)"
    }

    /// Looks whether each mistake has one place in the sources.
    /// - Throws: a ``Problem`` that tells of all that have not.
    static func check(package: String) throws {
        var problems: [String] = []
        var sources: [String: String] = [:]
        for mutant in all {
            if sources[mutant.file] == nil {
                let path = "\(package)/Sources/\(mutant.file)"
                sources[mutant.file] =
                    FileManager.default.fileExists(atPath: path)
                    ? try String(contentsOfFile: path, encoding: .utf8) : ""
            }
            do {
                // A mistake may hide the place of a later one.
                sources[mutant.file] = try mutant.inserted(into: sources[mutant.file]!, question: "true")
            } catch let problem as Problem {
                problems.append("\(problem)")
            }
        }
        guard problems.isEmpty else { throw Problem(problems.joined(separator: "\n")) }
        say("Each of the \(all.count) mistakes of the table has its place.")
    }

    /// Puts the mistake into the file, behind a question, and on the lines where it was.
    /// - Parameter question: whether it is on.
    func inserted(into source: String, question: String) throws -> String {
        let places = source.ranges(of: text)
        guard places.count == 1 else { throw Problem(problem(placeCount: places.count)) }
        let both =
            switch form {
            case .expression: "(\(question) ? (\(replacement)) : (\(text)))"
            case .statement: "if \(question) { \(replacement) } else { \(text) }"
            }
        return source.replacingCharacters(in: places[0], with: both)
    }
}

extension StringProtocol {
    fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
        self[..<range.lowerBound] + text + self[range.upperBound...]
    }
}
