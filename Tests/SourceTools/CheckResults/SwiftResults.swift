import SwiftParser
import SwiftSyntax

/// Our own functions that matter to the search, found by their declarations.
struct OwnNames {
    /// Those that tell of a failure by a result that the compiler lets anybody drop.
    private(set) var discardableResults: Set<String> = []
    /// In each file, the names of those that have the name of a call of the system, and take one argument without a label.
    private(set) var shadows: [String: Set<String>] = [:]

    init(_ sources: [SourceText]) {
        var withoutFailure: Set<String> = []
        for source in sources where source.isSwift {
            let visitor = Declarations(viewMode: .sourceAccurate)
            visitor.walk(Parser.parse(source: source.text))
            discardableResults.formUnion(visitor.discardableResults)
            withoutFailure.formUnion(visitor.withoutFailure)
            shadows[source.path] = visitor.withoutLabel
        }
        // Names of many: those that return nothing, or throw, are more. Whether an interruption reached anybody is of no
        // account.
        discardableResults.subtract(withoutFailure.union(["bind", "interrupt", "step"]))
    }

    private final class Declarations: SyntaxVisitor {
        var discardableResults: Set<String> = []
        var withoutFailure: Set<String> = []
        var withoutLabel: Set<String> = []

        override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
            let isDiscardable = node.attributes.contains { $0.trimmedDescription == "@discardableResult" }
            if isDiscardable, node.signature.returnClause?.type.trimmedDescription == "Bool" {
                discardableResults.insert(node.name.text)
            } else if node.signature.returnClause == nil, node.signature.effectSpecifiers?.throwsClause == nil {
                withoutFailure.insert(node.name.text)
            }
            if node.signature.parameterClause.parameters.first?.firstName.text == "_" {
                withoutLabel.insert(node.name.text)
            }
            return .visitChildren
        }
    }
}

/// The calls of SQLite, OpenSSL and the system whose result is dropped, every `try?`, every error that is caught and
/// not looked at, and our own functions that report a failure by their result.
func droppedResults(inSwift source: SourceText, _ ownNames: OwnNames) -> [DroppedResult] {
    let tree = Parser.parse(source: source.text)
    let search = Search(source, SourceLocationConverter(fileName: source.path, tree: tree), ownNames)
    search.walk(tree)
    return search.found.sorted { $0.line < $1.line }
}

private final class Search: SyntaxVisitor {
    private let converter: SourceLocationConverter
    private let ownNames: OwnNames
    private let shadows: Set<String>
    private(set) var found: [DroppedResult] = []

    init(_ source: SourceText, _ converter: SourceLocationConverter, _ ownNames: OwnNames) {
        self.converter = converter
        self.ownNames = ownNames
        shadows = ownNames.shadows[source.path] ?? []
        super.init(viewMode: .sourceAccurate)
    }

    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        if let name = name(of: node), isDropped(ExprSyntax(node)) { note(name + "(…)", Syntax(node)) }
        return .visitChildren
    }

    override func visit(_ node: TryExprSyntax) -> SyntaxVisitorContinueKind {
        if node.questionOrExclamationMark?.text == "?" { note("try?", Syntax(node)) }
        return .visitChildren
    }

    override func visit(_ node: CatchClauseSyntax) -> SyntaxVisitorContinueKind {
        if node.body.statements.isEmpty { note("catch {}", Syntax(node)) }
        return .visitChildren
    }

    private func note(_ text: String, _ node: Syntax) {
        var statement = self.statement(around: node)
        // What is said of a `defer`, and of a function or loop with one statement, is said of what is in it.
        while let list = statement.parent?.as(CodeBlockItemListSyntax.self), let owner = list.parent?.parent,
            owner.is(DeferStmtSyntax.self)
                || list.count == 1 && (owner.is(DeclSyntax.self) || owner.is(ForStmtSyntax.self))
        {
            statement = self.statement(around: owner)
            if statement.is(MemberBlockItemSyntax.self) { break }
        }
        found.append(
            .init(
                text: text,
                line: converter.location(for: node.positionAfterSkippingLeadingTrivia).line,
                statementLine: converter.location(for: statement.positionAfterSkippingLeadingTrivia).line
            )
        )
    }

    private func statement(around node: Syntax) -> Syntax {
        var node = node
        while let parent = node.parent, !node.is(CodeBlockItemSyntax.self), !node.is(MemberBlockItemSyntax.self) {
            node = parent
        }
        return node
    }

    /// The name of a call whose result counts.
    private func name(of call: FunctionCallExprSyntax) -> String? {
        if let callee = call.calledExpression.as(DeclReferenceExprSyntax.self) {
            let name = callee.baseName.text
            if ownNames.discardableResults.contains(name) { return throwsItsFailure(call) ? nil : name }
            // C's functions have no labels; our own may have their names.
            guard CallNames.hasResult(inSwift: name), call.arguments.allSatisfy({ $0.label == nil }),
                !call.arguments.isEmpty, !shadows.contains(name)
            else { return nil }
            return name
        }
        if let callee = call.calledExpression.as(MemberAccessExprSyntax.self) {
            let name = callee.declName.baseName.text
            if ["Glibc", "Musl", "Foundation"].contains(callee.base?.trimmedDescription) {
                return CallNames.hasResult(inSwift: name) ? name : nil
            }
            return ownNames.discardableResults.contains(name) && !throwsItsFailure(call) ? name : nil
        }
        return nil
    }

    /// Whether a `try` is before this call of a function of our own.
    private func throwsItsFailure(_ call: FunctionCallExprSyntax) -> Bool {
        var node = Syntax(call)
        while let parent = node.parent, parent.is(ExprSyntax.self) || parent.is(ExprListSyntax.self) {
            if parent.is(TryExprSyntax.self) { return true }
            node = parent
        }
        return false
    }

    /// Whether nobody gets the value of this expression.
    private func isDropped(_ expression: ExprSyntax) -> Bool {
        guard let parent = expression.parent else { return true }
        if parent.is(TryExprSyntax.self) || parent.is(AwaitExprSyntax.self) || parent.is(UnsafeExprSyntax.self)
            || parent.is(ForceUnwrapExprSyntax.self)
        {
            return isDropped(parent.cast(ExprSyntax.self))
        }
        if let list = parent.as(ExprListSyntax.self) {
            // `_ = call()` is a sequence of three.
            return list.first?.is(DiscardAssignmentExprSyntax.self) == true && list.last?.id == expression.id
        }
        if let initializer = parent.as(InitializerClauseSyntax.self),
            let binding = initializer.parent?.as(PatternBindingSyntax.self)
        {
            return binding.pattern.is(WildcardPatternSyntax.self)
        }
        guard let item = parent.as(CodeBlockItemSyntax.self), let list = item.parent?.as(CodeBlockItemListSyntax.self)
        else { return false }
        return list.count > 1 || !returnsItsOnlyExpression(list)
    }

    /// Whether a body with one expression returns its value, to somebody who looks at it.
    private func returnsItsOnlyExpression(_ list: CodeBlockItemListSyntax) -> Bool {
        guard let parent = list.parent else { return false }
        if let closure = parent.as(ClosureExprSyntax.self) {
            if let type = closure.signature?.returnClause?.type { return !isVoid(type) }
            guard let call = call(with: closure) else { return true }
            if let callee = call.calledExpression.as(MemberAccessExprSyntax.self),
                callee.declName.baseName.text == "forEach"
            {
                return false
            }
            return !isDropped(ExprSyntax(call))
        }
        if parent.is(AccessorBlockSyntax.self) { return true }
        guard parent.is(CodeBlockSyntax.self), let owner = parent.parent else { return false }
        if let function = owner.as(FunctionDeclSyntax.self) {
            guard let type = function.signature.returnClause?.type else { return false }
            return !isVoid(type)
        }
        return owner.as(AccessorDeclSyntax.self)?.accessorSpecifier.text == "get"
    }

    /// The call that gets this closure as an argument.
    private func call(with closure: ClosureExprSyntax) -> FunctionCallExprSyntax? {
        if let call = closure.parent?.as(FunctionCallExprSyntax.self) { return call }
        return closure.parent?.as(LabeledExprSyntax.self)?.parent?.parent?.as(FunctionCallExprSyntax.self)
    }

    private func isVoid(_ type: TypeSyntax) -> Bool { ["Void", "()"].contains(type.trimmedDescription) }
}
