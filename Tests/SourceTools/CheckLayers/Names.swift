import SwiftSyntax

/// The names of the types that a file declares for others.
final class Declarations: SyntaxVisitor {
    private var names: Set<String> = []

    static func of(_ source: SourceFileSyntax) -> Set<String> {
        let visitor = Declarations(viewMode: .sourceAccurate)
        visitor.walk(source)
        return visitor.names
    }

    private func note(_ name: TokenSyntax, _ modifiers: DeclModifierListSyntax) -> SyntaxVisitorContinueKind {
        let isForOthers = !modifiers.contains { ["private", "fileprivate"].contains($0.name.text) }
        if isForOthers { names.insert(name.text) }
        return isForOthers ? .visitChildren : .skipChildren
    }

    override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind { note(node.name, node.modifiers) }
    override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind { note(node.name, node.modifiers) }
    override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind { note(node.name, node.modifiers) }
    override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind { note(node.name, node.modifiers) }
    override func visit(_ node: TypeAliasDeclSyntax) -> SyntaxVisitorContinueKind { note(node.name, node.modifiers) }
}

/// The names by which a file may mean a type of another.
final class Uses: SyntaxVisitor {
    struct Use {
        let name: String
        let line: Int
    }

    private var uses: [Use] = []
    private let converter: SourceLocationConverter

    private init(_ source: SourceFileSyntax) {
        converter = SourceLocationConverter(fileName: "", tree: source)
        super.init(viewMode: .sourceAccurate)
    }

    static func of(_ source: SourceFileSyntax) -> [Use] {
        let visitor = Uses(source)
        visitor.walk(source)
        return visitor.uses
    }

    private func note(_ name: TokenSyntax) {
        guard name.text.first?.isUppercase == true else { return }
        uses.append(Use(name: name.text, line: name.startLocation(converter: converter).line))
    }

    override func visit(_ node: IdentifierTypeSyntax) -> SyntaxVisitorContinueKind {
        note(node.name)
        return .visitChildren
    }

    override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
        // Behind a point it belongs to what stands before it.
        if let member = node.parent?.as(MemberAccessExprSyntax.self), member.declName.id == node.id {
            return .skipChildren
        }
        note(node.baseName)
        return .visitChildren
    }
}
