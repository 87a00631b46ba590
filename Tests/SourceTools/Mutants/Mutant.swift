/// One mistake, which a variable of the environment switches on.
struct Mutant: Sendable {
    /// What is done to the code.
    enum Operator: String, CaseIterable, Sendable {
        case negated = "condition negated"
        case alwaysTrue = "condition always true"
        case alwaysFalse = "condition always false"
        case notAsked = "condition taken for true without being asked"
        case partDropped = "part of a condition dropped"
        case bindingFails = "binding fails"
        case bounds = "bounds"
        case andOr = "and, or"
        case offByOne = "off by one"
        case callDropped = "call dropped"
        case errorSwallowed = "error swallowed"
        case assignmentDropped = "assignment dropped"
        case deferDropped = "defer dropped"
        case earlyReturn = "returns at once"
        case swapped = "arguments swapped"
        case named = "named"
    }

    let id: Int
    /// Beneath `Sources`.
    let file: String
    let line: Int
    /// The innermost function or property.
    let function: String
    let operation: Operator
    /// What is changed, on one line.
    let original: String
    /// Which of those that are the same in all that is above, from 0.
    let repetition: Int

    /// What stays the same when other lines change.
    var signature: String { "\(file)|\(function)|\(operation.rawValue)|\(original)|\(repetition)" }

    var description: String { "\(id)  \(file):\(line)  \(function): \(operation.rawValue): \(original)" }
}
