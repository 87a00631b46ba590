import SwiftOperators
import SwiftParser
import SwiftSyntax

/// Puts every mutant of a file into its text, each behind a question to `sealeddb_mutated`.
///
/// Text is only inserted, and never a line: so the compiler's messages name the lines of the original.
final class Rewriter: SyntaxVisitor {
    private let file: String
    private let source: [UInt8]
    private let converter: SourceLocationConverter
    private let isExcluded: (Mutant) -> Bool
    private(set) var mutants: [Mutant] = []
    private var nextID: Int

    private var openings: [Int: [String]] = [:]
    private var closings: [Int: [String]] = [:]
    private var counts: [String: Int] = [:]

    /// The functions, properties and closures that one is in, and what each returns (`nil` for closures).
    private var functions: [(name: String, returned: String?, isInit: Bool, body: Syntax?)] = []

    /// - Parameter isExcluded: those that do not compile.
    init(file: String, text: String, firstID: Int, isExcluded: @escaping (Mutant) -> Bool) {
        self.file = file
        source = Array(text.utf8)
        nextID = firstID
        self.isExcluded = isExcluded
        let tree = Parser.parse(source: text)
        let folded = OperatorTable.standardOperators.foldAll(tree) { _ in }
        converter = SourceLocationConverter(fileName: file, tree: folded)
        super.init(viewMode: .sourceAccurate)
        walk(folded)
    }

    var endID: Int { nextID }

    /// - Parameter prefix: what makes `sealeddb_mutated` known to the file.
    func rewritten(prefix: String) -> String {
        guard !openings.isEmpty else { return String(decoding: source, as: UTF8.self) }
        var result = Array(prefix.utf8)
        for offset in 0...source.count {
            for text in closings[offset] ?? [] { result += text.utf8 }
            for text in openings[offset] ?? [] { result += text.utf8 }
            if offset < source.count { result.append(source[offset]) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    // MARK: Insertions

    private func start(_ node: some SyntaxProtocol) -> Int { node.positionAfterSkippingLeadingTrivia.utf8Offset }
    private func end(_ node: some SyntaxProtocol) -> Int { node.endPositionBeforeTrailingTrivia.utf8Offset }

    private func wrap(_ node: some SyntaxProtocol, _ before: String, _ after: String) {
        openings[start(node), default: []].append(before)
        closings[end(node), default: []].insert(after, at: 0)
    }

    /// The question whether the new mutant is on; `nil` for one that does not compile.
    /// - Parameter place: where the text is inserted, if that is not where the node is.
    private func question(
        _ operation: Mutant.Operator,
        _ node: some SyntaxProtocol,
        at place: TokenSyntax? = nil
    ) -> String? {
        let words = node.trimmedDescription.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let original = words.count > 90 ? String(words.prefix(89)) + "…" : words
        let key = "\(functions.last?.name ?? "")|\(operation.rawValue)|\(original)"
        let repetition = counts[key, default: 0]
        counts[key] = repetition + 1
        let mutant = Mutant(
            id: nextID,
            file: file,
            line: converter.location(for: (place.map(Syntax.init) ?? Syntax(node)).positionAfterSkippingLeadingTrivia)
                .line,
            function: functions.last?.name ?? "",
            operation: operation,
            original: original,
            repetition: repetition
        )
        nextID += 1
        guard !isExcluded(mutant) else { return nil }
        mutants.append(mutant)
        return "sealeddb_mutated(\(mutant.id))"
    }

    /// The text of an expression, to be used a second time; `nil` if it is too much for that.
    private func copy(_ node: some SyntaxProtocol) -> String? {
        let text = node.trimmedDescription
        guard text.utf8.count <= 200, !["{", "//", "/*", "\"\"\"", "#"].contains(where: text.contains) else {
            return nil
        }
        return text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    // MARK: Named mutants

    /// What is there already behind a question is left as it is; what it stands for is not.
    private func isQuestion(_ node: some SyntaxProtocol) -> Bool {
        node.trimmedDescription.hasPrefix("sealeddb_mutated(")
    }

    override func visit(_ node: IfExprSyntax) -> SyntaxVisitorContinueKind {
        guard isQuestion(node.conditions) else { return .visitChildren }
        if let original = node.elseBody { walk(original) }
        return .skipChildren
    }

    // MARK: Functions

    private var isInBody: Bool { !functions.isEmpty }

    private func isInlined(_ attributes: AttributeListSyntax) -> Bool {
        attributes.contains { attribute in
            let text = attribute.trimmedDescription
            return ["@inlinable", "@usableFromInline", "@inline(__always)", "@_transparent", "@available"]
                .contains(where: text.hasPrefix)
        }
    }

    private func enter(
        _ name: String,
        _ attributes: AttributeListSyntax,
        returned: String?,
        isInit: Bool = false,
        _ body: CodeBlockSyntax?
    ) -> SyntaxVisitorContinueKind {
        // What never returns must not.
        guard let body, returned != "Never", !isInlined(attributes) else { return .skipChildren }
        functions.append((name, returned, isInit, Syntax(body)))
        if !isInit { returnAtOnce(body.leftBrace, body.statements, returned) }
        walk(body)
        functions.removeLast()
        return .skipChildren
    }

    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
        let returned = node.signature.returnClause?.type.trimmedDescription ?? "Void"
        return enter(node.name.text, node.attributes, returned: returned, node.body)
    }

    override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind {
        enter("init", node.attributes, returned: "", isInit: true, node.body)
    }

    override func visit(_ node: DeinitializerDeclSyntax) -> SyntaxVisitorContinueKind {
        enter("deinit", node.attributes, returned: "Void", node.body)
    }

    override func visit(_ node: AccessorDeclSyntax) -> SyntaxVisitorContinueKind {
        let returned = node.accessorSpecifier.text == "get" ? "" : "Void"
        return enter(functions.last?.name ?? "accessor", node.attributes, returned: returned, node.body)
    }

    override func visit(_ node: VariableDeclSyntax) -> SyntaxVisitorContinueKind {
        node.attributes.isEmpty ? .visitChildren : .skipChildren
    }

    override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
        guard let accessors = node.accessorBlock else { return .visitChildren }
        let returned = node.typeAnnotation?.type.trimmedDescription ?? ""
        functions.append((node.pattern.trimmedDescription, returned, false, Syntax(accessors)))
        if case .getter(let statements) = accessors.accessors {
            returnAtOnce(accessors.leftBrace, statements, returned)
        }
        walk(accessors)
        functions.removeLast()
        return .skipChildren
    }

    override func visit(_ node: SubscriptDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: FunctionParameterClauseSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: AttributeListSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
    override func visit(_ node: EnumCaseElementSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

    override func visit(_ node: ClosureExprSyntax) -> SyntaxVisitorContinueKind {
        let returned = node.signature?.returnClause?.type.trimmedDescription
        functions.append((functions.last?.name ?? "closure", returned, false, Syntax(node)))
        walk(node.statements)
        functions.removeLast()
        return .skipChildren
    }

    private func returnAtOnce(_ brace: TokenSyntax, _ statements: CodeBlockItemListSyntax, _ returned: String?) {
        guard let returned, let first = statements.first else { return }
        let values: [String]
        switch returned {
        case "Void", "()": values = [""]
        case "Bool": values = [" true", " false"]
        case "Int", "Int32", "Int64", "UInt32", "Double": values = [" 0"]
        case "String": values = [" \"\""]
        case _ where returned.hasSuffix("?"): values = [" nil"]
        case _ where returned.hasPrefix("[") && returned.hasSuffix("]"):
            values = [returned.contains(": ") && !returned.contains("(") ? " [:]" : " []"]
        default: return
        }
        // What a single expression returned without the word must be returned with it now.
        let isExpression = statements.count == 1 && !values[0].isEmpty && first.item.is(ExprSyntax.self)
        if statements.count == 1, !values[0].isEmpty, first.item.is(ExpressionStmtSyntax.self) { return }
        for value in values {
            guard let question = question(.earlyReturn, first, at: brace) else { continue }
            openings[end(brace), default: []].append(" if \(question) { return\(value) }; ")
        }
        if isExpression { openings[start(first), default: []].append("return ") }
    }

    // MARK: Conditions

    private enum Use { case branch, loop, value }

    private func mutateCondition(_ node: ExprSyntax, _ use: Use) {
        guard isInBody, !node.is(BooleanLiteralExprSyntax.self) else { return }
        var before = "(", after = ")"
        func add(_ operation: Mutant.Operator, _ form: (String) -> (String, String)) {
            guard let question = question(operation, node) else { return }
            let (left, right) = form(question)
            before = left + before
            after += right
        }
        // A loop that does not end is found by the clock alone.
        if use != .loop { add(.negated) { ("(", " != \($0))") } }
        if use == .branch {
            add(.alwaysTrue) { ("(", " || \($0))") }
            // No autoclosure has the condition in it: it may throw a certain type of error.
            if containsCall(node) { add(.notAsked) { ("(\($0) ? true : ", ")") } }
        }
        if use != .value { add(.alwaysFalse) { ("(", " && !\($0))") } }
        wrap(node, before, after)
    }

    private func containsCall(_ node: ExprSyntax) -> Bool {
        let search = CallSearch(viewMode: .sourceAccurate)
        search.walk(node)
        return search.found
    }

    private final class CallSearch: SyntaxVisitor {
        var found = false
        override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
            found = true
            return .skipChildren
        }
    }

    override func visit(_ node: ConditionElementSyntax) -> SyntaxVisitorContinueKind {
        guard isInBody else { return .visitChildren }
        let isLoop = node.parent?.parent?.is(WhileStmtSyntax.self) == true
        switch node.condition {
        case .expression(let expression): mutateCondition(expression, isLoop ? .loop : .branch)
        case .optionalBinding(let binding):
            if let value = binding.initializer?.value {
                if let question = question(.bindingFails, binding) { wrap(value, "(\(question) ? nil : (", "))") }
            } else if let question = question(.bindingFails, binding) {
                let name = binding.pattern.trimmedDescription
                closings[end(binding), default: []].insert(" = (\(question) ? nil : \(name))", at: 0)
            }
        default: break
        }
        return .visitChildren
    }

    override func visit(_ node: RepeatStmtSyntax) -> SyntaxVisitorContinueKind {
        mutateCondition(node.condition, .loop)
        return .visitChildren
    }

    override func visit(_ node: WhereClauseSyntax) -> SyntaxVisitorContinueKind {
        mutateCondition(node.condition, .branch)
        return .visitChildren
    }

    override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
        if isQuestion(node.condition) {
            walk(node.elseExpression)
            return .skipChildren
        }
        mutateCondition(node.condition, .branch)
        return .visitChildren
    }

    override func visit(_ node: ReturnStmtSyntax) -> SyntaxVisitorContinueKind {
        if let expression = node.expression, functions.last?.returned == "Bool" { mutateCondition(expression, .value) }
        return .visitChildren
    }

    /// Leaves one part of several out.
    private func mutatePart(_ operand: ExprSyntax, of sign: String) {
        if let inner = operand.as(InfixOperatorExprSyntax.self)?.operator.trimmedDescription,
            ["&&", "||"].contains(inner)
        {
            return
        }
        guard let question = question(.partDropped, operand) else { return }
        wrap(operand, "((", sign == "&&" ? ") || \(question))" : ") && !\(question))")
    }

    // MARK: Operators

    private static let bounds = ["<": "<=", "<=": "<", ">": ">=", ">=": ">"]

    override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        guard isInBody, let sign = node.operator.as(BinaryOperatorExprSyntax.self)?.operator.text,
            let left = copy(node.leftOperand), let right = copy(node.rightOperand)
        else { return .visitChildren }
        if let other = Rewriter.bounds[sign] {
            if let question = question(.bounds, node) {
                wrap(node, "(\(question) ? (\(left) \(other) \(right)) : (", "))")
            }
        } else if sign == "&&" || sign == "||" {
            if let question = question(.andOr, node) {
                wrap(node, "(\(question) ? (\(left) \(sign == "&&" ? "||" : "&&") \(right)) : (", "))")
            }
            for operand in [node.leftOperand, node.rightOperand] { mutatePart(operand, of: sign) }
        } else if sign == "+" || sign == "-", right == "1" {
            if let question = question(.offByOne, node) { wrap(node, "(\(question) ? (\(left)) : (", "))") }
        }
        return .visitChildren
    }

    // MARK: Statements

    private static let endless: Set<String> = [
        "fatalError", "preconditionFailure", "exit", "_exit", "abort", "dispatchMain", "settleUnchanged",
    ]

    override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
        guard isInBody, case .expr(let expression) = node.item else { return .visitChildren }
        let isAlone = (node.parent?.as(CodeBlockItemListSyntax.self)?.count ?? 0) == 1
        if isAlone, isValue(node) {
            if functions.last?.returned == "Bool", isBody(node) { mutateCondition(expression, .value) }
            return .visitChildren
        }
        if let assignment = expression.as(InfixOperatorExprSyntax.self) {
            mutateAssignment(assignment)
            return .visitChildren
        }
        var call = expression
        var isTried = false
        while true {
            if let inner = call.as(TryExprSyntax.self) {
                isTried = isTried || inner.questionOrExclamationMark == nil
                call = inner.expression
            } else if let inner = call.as(AwaitExprSyntax.self) {
                call = inner.expression
            } else {
                break
            }
        }
        if let assignment = call.as(InfixOperatorExprSyntax.self) { mutateAssignment(assignment) }
        guard let called = call.as(FunctionCallExprSyntax.self) else { return .visitChildren }
        mutateCall(expression, called, isTried: isTried)
        return .visitChildren
    }

    private func mutateCall(_ statement: ExprSyntax, _ call: FunctionCallExprSyntax, isTried: Bool) {
        let name = call.calledExpression.trimmedDescription
        guard !Rewriter.endless.contains(name), !["self.init", "super.init", "init"].contains(name) else { return }
        if let question = question(.callDropped, statement) { wrap(statement, "if !\(question) { ", " }") }
        guard isTried, let text = copy(statement), let question = question(.errorSwallowed, statement) else { return }
        // The first `try` of the text becomes a `try?`.
        let quiet = text.replacing("try ", with: "try? ", maxReplacements: 1)
        wrap(statement, "if \(question) { \(text.hasPrefix("_ =") ? "" : "_ = ")\(quiet) } else { ", " }")
    }

    private func mutateAssignment(_ assignment: InfixOperatorExprSyntax) {
        let sign = assignment.operator.trimmedDescription
        if assignment.leftOperand.is(DiscardAssignmentExprSyntax.self) {
            guard sign == "=" else { return }
            var value = assignment.rightOperand
            var isTried = false
            if let inner = value.as(TryExprSyntax.self) {
                isTried = inner.questionOrExclamationMark == nil
                value = inner.expression
            }
            if let call = value.as(FunctionCallExprSyntax.self) {
                mutateCall(ExprSyntax(assignment), call, isTried: isTried)
            }
            return
        }
        guard sign == "=" || ["+=", "-=", "|=", "&="].contains(sign), functions.last?.isInit == false,
            !functions.contains(where: { $0.isInit })
        else { return }
        guard sign != "=" || !isFirstValue(assignment.leftOperand) else { return }
        // The whole statement, which may begin with `try`.
        var statement = ExprSyntax(assignment)
        while let parent = statement.parent?.as(ExprSyntax.self) { statement = parent }
        if let question = question(.assignmentDropped, statement) { wrap(statement, "if !\(question) { ", " }") }
    }

    /// Whether a local variable gets its first value, without which the code after it does not compile.
    private func isFirstValue(_ target: ExprSyntax) -> Bool {
        if target.is(TupleExprSyntax.self) { return true }
        guard let name = target.as(DeclReferenceExprSyntax.self)?.baseName.text else { return false }
        return functions.contains { function in
            guard let body = function.body else { return false }
            let search = UnsetVariables(viewMode: .sourceAccurate)
            search.walk(body)
            return search.names.contains(name)
        }
    }

    private final class UnsetVariables: SyntaxVisitor {
        var names: Set<String> = []
        override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
            if node.initializer == nil, node.accessorBlock == nil { names.insert(node.pattern.trimmedDescription) }
            return .visitChildren
        }
    }

    /// Whether the only statement of a list is the value of what it stands in.
    private func isValue(_ item: CodeBlockItemSyntax) -> Bool {
        guard let owner = item.parent?.parent else { return false }
        if owner.is(ClosureExprSyntax.self) { return true }
        if owner.is(AccessorBlockSyntax.self) { return true }
        if let switchCase = owner.as(SwitchCaseSyntax.self) {
            return switchCase.parent?.parent.map { isValue(of: $0) } ?? false
        }
        guard owner.is(CodeBlockSyntax.self), let holder = owner.parent else { return false }
        if let function = holder.as(FunctionDeclSyntax.self) { return function.signature.returnClause != nil }
        if let accessor = holder.as(AccessorDeclSyntax.self) { return accessor.accessorSpecifier.text == "get" }
        return holder.is(IfExprSyntax.self) ? isValue(of: holder) : false
    }

    /// Whether an `if` or a `switch` is an expression.
    private func isValue(of node: Syntax) -> Bool {
        guard let parent = node.parent else { return false }
        // The `else` of another.
        if parent.is(IfExprSyntax.self) { return isValue(of: parent) }
        guard parent.is(ExpressionStmtSyntax.self) || parent.is(CodeBlockItemSyntax.self) else { return true }
        let item = parent.as(CodeBlockItemSyntax.self) ?? parent.parent?.as(CodeBlockItemSyntax.self)
        guard let item, item.parent?.as(CodeBlockItemListSyntax.self)?.count == 1 else { return false }
        return isValue(item)
    }

    /// Whether a statement is the only one of a function or a property.
    private func isBody(_ item: CodeBlockItemSyntax) -> Bool {
        guard let owner = item.parent?.parent else { return false }
        return owner.is(AccessorBlockSyntax.self) || owner.parent?.is(FunctionDeclSyntax.self) == true
            || owner.parent?.is(AccessorDeclSyntax.self) == true
    }

    override func visit(_ node: DeferStmtSyntax) -> SyntaxVisitorContinueKind {
        guard isInBody, let question = question(.deferDropped, node) else { return .visitChildren }
        openings[end(node.body.leftBrace), default: []].append(" if !\(question) {")
        closings[start(node.body.rightBrace), default: []].insert("} ", at: 0)
        return .visitChildren
    }

    // MARK: Swapped

    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        guard isInBody, node.arguments.count == 2, let first = node.arguments.first, let second = node.arguments.last,
            first.label == nil, second.label == nil, isSameKind(first.expression, second.expression),
            let left = copy(first.expression), let right = copy(second.expression), left != right,
            let callee = copy(node.calledExpression), node.trailingClosure == nil,
            let question = question(.swapped, node)
        else { return .visitChildren }
        wrap(node, "(\(question) ? \(callee)(\(right), \(left)) : ", ")")
        return .visitChildren
    }

    /// The same property of two values, or two parameters of the same type.
    private func isSameKind(_ first: ExprSyntax, _ second: ExprSyntax) -> Bool {
        if let first = first.as(MemberAccessExprSyntax.self), let second = second.as(MemberAccessExprSyntax.self) {
            return first.declName.baseName.text == second.declName.baseName.text
        }
        return false
    }

    override func visit(_ node: StringLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        let parts = node.segments.compactMap { $0.as(ExpressionSegmentSyntax.self) }
        let text = node.segments.compactMap { $0.as(StringSegmentSyntax.self)?.content.text }.joined()
        // Messages are not looked at word by word.
        guard isInBody, parts.count == 2, !text.contains(" "), let whole = copy(node), text.contains("="),
            let question = question(.swapped, node)
        else { return .skipChildren }
        let (first, second) = (parts[0].trimmedDescription, parts[1].trimmedDescription)
        let other = whole.replacing(first, with: "\u{0}").replacing(second, with: first).replacing(
            "\u{0}",
            with: second
        )
        wrap(node, "(\(question) ? \(other) : ", ")")
        return .skipChildren
    }
}
