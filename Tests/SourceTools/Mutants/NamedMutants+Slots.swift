extension NamedMutant {
    /// The slots of a store open it with the keys that should, and with no other.
    static let slots: [NamedMutant] = [
        .init(
            "the key of a session may leave its ring",
            "SealedDB/Cipher/Slots/SlotSession.swift",
            .statement,
            "try keySlots.key.keepInRing(hold)",
            "_ = hold"
        ),
        .init(
            "the key that a new slot is to replace may leave its ring",
            "SealedDB/Cipher/Slots/SlotSession.swift",
            .statement,
            "try keySlots.key.keepInRingIfThere(hold)",
            "_ = hold"
        ),
        .init(
            "the new key of a slot may leave its ring",
            "SealedDB/Cipher/Slots/SlotSession.swift",
            .statement,
            "try new.keepInRing(hold)",
            "_ = new"
        ),
        .init(
            "a backup has the slots of its beginning",
            "SealedDB/Cipher/Slots/SlotCopy.swift",
            .expression,
            "$0.bytes != sealed.bytes",
            "$0.bytes.isEmpty"
        ),
        .init(
            "the key of a backup may leave its ring",
            "SealedDB/Cipher/Copying/NewStore.swift",
            .statement,
            "try storeKey?.keepInRing(copy.keyHold)",
            "_ = storeKey"
        ),
        .init(
            "the second file of slots is written first",
            "SealedDB/Keys/Slots/SlotFiles.swift",
            .expression,
            "store + SlotFiles.ending",
            "store + SlotFiles.secondEnding"
        ),
        .init(
            "the directory of a file of slots is not synced",
            "SealedDB/Keys/Slots/SlotFiles+Writing.swift",
            .statement,
            "try FileSystem.synchronizeDirectory(of: path)",
            "_ = path"
        ),
        .init(
            "the old slot goes in the generation in which the new one comes",
            "SealedDB/Cipher/Slots/KeySlots+Replacing.swift",
            .statement,
            "table.slots[index].label = table.freeLabel(slot.label)",
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
            "try beforeSwap()",
            "_ = beforeSwap"
        ),
        .init(
            "the old data key is forgotten before the swap is known to be durable",
            "SealedDB/Cipher/Slots/KeySlots+Changes.swift",
            .statement,
            "try FileSystem.synchronizeDirectory(of: now.files.store)",
            "_ = now.files.store"
        ),
        .init(
            "a re-encryption that failed after the swap forgets the old data key",
            "SealedDB/Cipher/Slots/KeySlots+Reencrypting.swift",
            .expression,
            "$0 != newSalt",
            "!$0.isEmpty"
        ),
        .init(
            "slots that another data key has written are overwritten",
            "SealedDB/Keys/Slots/SlotFiles+Writing.swift",
            .expression,
            "try owner.owns(slots)",
            "slots.bytes.count > 0"
        ),
        .init(
            "slots of another store are taken for those of a copy that was cut off",
            "SealedDB/Cipher/Slots/SlotCopy.swift",
            .expression,
            "copy.slots?.bytes == sealed.bytes",
            "copy.slots != nil"
        ),
        .init(
            "slots that a living process makes are removed",
            "SealedDB/Cipher/Slots/StoreOpening+Slots.swift",
            .expression,
            "sealeddb_lock(descriptor, Int32(F_WRLCK), 0, 0) == 0",
            "descriptor >= 0"
        ),
        .init(
            "the slots of a store that was moved are removed with a leftover of another kind",
            "SealedDB/Cipher/Slots/StoreOpening+Slots.swift",
            .expression,
            "TemporaryFile.leftovers(of: store, mark: SlotFiles.markOfNew)",
            "TemporaryFile.leftovers(of: store)"
        ),
        .init(
            "a pin is not looked at",
            "SealedDB/Cipher/Slots/SlotPin.swift",
            .expression,
            "found.generation >= generation",
            "found.generation > 0"
        ),
        .init(
            "the slot of the very key is removed",
            "SealedDB/Cipher/Slots/KeySlots+Changes.swift",
            .expression,
            "opened.slot?.label == label",
            "opened.slot?.label == nil"
        ),
    ]
}
