/// Mistakes that were made once, or that others put in and no test noticed. Each must be found.
struct NamedMutant {
    let name: String
    let file: String
    let function: String
    let operation: Mutant.Operator
    /// What the changed code has in it.
    let text: String
    /// Which of several that fit.
    var index = 0

    static let all: [NamedMutant] = []

    func mutant(among mutants: [Mutant]) -> Mutant? {
        let fitting = mutants.filter {
            $0.file.hasSuffix(file) && $0.function == function && $0.operation == operation
                && $0.original.contains(text)
        }
        return index < fitting.count ? fitting[index] : nil
    }
}
