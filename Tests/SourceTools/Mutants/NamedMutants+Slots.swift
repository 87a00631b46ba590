extension NamedMutant {
    /// The slots of a store open it with the keys that should, and with no other.
    static let slots: [NamedMutant] = [
        .init(
            "the second file of slots is written first",
            "SealedDB/Keys/Slots/SlotFiles.swift",
            .expression,
            "store + SlotFiles.ending",
            "store + SlotFiles.secondEnding"
        ),
        .init(
            "the directory of a file of slots is not synced",
            "SealedDB/Keys/Slots/SlotFiles.swift",
            .statement,
            "try FileSystem.synchronizeDirectory(of: path)",
            "_ = path"
        ),
        .init(
            "the old slot goes in the generation in which the new one comes",
            "SealedDB/Cipher/Slots/KeySlots+Replacing.swift",
            .statement,
            "table.slots[index].label = table.freeLabel(old.label)",
            "table.slots.remove(at: index)"
        ),
        .init(
            "the code of slots is not checked",
            "SealedDB/Keys/Slots/SealedSlots.swift",
            .expression,
            "try KeyWrapping.isEqual(code, SealedSlots.code(signed, table.store, under: secret))",
            "!code.isEmpty"
        ),
        .init(
            "nothing is bound to a wrap",
            "SealedDB/Keys/Slots/SlotTable+Text.swift",
            .expression,
            "lines.joined(separator: \"\\n\")",
            "lines[0]"
        ),
        .init(
            "an older file of slots is used",
            "SealedDB/Cipher/Slots/Connection+SlotMemory.swift",
            .expression,
            "memory.generation > table.generation",
            "memory.generation < 0"
        ),
        .init(
            "an older second file brings a removed slot back",
            "SealedDB/Keys/Slots/OpenedSlots.swift",
            .expression,
            "refusedGeneration ?? 0 <= sealed.table.generation",
            "(refusedGeneration ?? 0) < Int64.max"
        ),
        .init(
            "slots are not looked at right before the swap of a re-encryption",
            "SealedDB/Cipher/Rotation/StoreReplacement.swift",
            .statement,
            "try beforeSwap?()",
            "_ = beforeSwap"
        ),
    ]
}
