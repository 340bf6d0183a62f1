import type { Scope } from '../../runtime/store/rows.ts'
import { NOT_OWNER, type Store } from '../../runtime/store/store.ts'

/** The names of owners that are no callers begin so: of definitions, and of keys. */
const OWN_PRINCIPALS = 'urn:taskchart:'

/** Whether data belongs to a caller. */
export function isOfCallers({ principal }: Scope): boolean {
  return !principal.startsWith(OWN_PRINCIPALS)
}

/** The owner of the definitions of agents. */
const OWNER = { tenant: '', principal: `${OWN_PRINCIPALS}definitions` }

const YEAR_MS = 365 * 24 * 60 * 60 * 1000
/** How long a definition is stored after a process has used it, in milliseconds. It is written again a year before. */
const STORED_MS = 3 * YEAR_MS

/** So many contexts are tried: in a cluster each may belong to another node. */
const MOST_CONTEXTS = 100

type DefinitionStore = Required<Pick<Store, 'writeDefinition' | 'readDefinition'>>

/** The definitions of agents in a store: rows of the index of messages by key, whose owner is no caller. */
export function definitionsIn(store: Pick<Store, 'commit' | 'loadContext' | 'readSend'>): DefinitionStore {
  return {
    readDefinition: readDefinitionIn(store),
    writeDefinition: async (digest, text, atMs) => {
      const known = await store.readSend(OWNER, digest)
      if (known && known.expiresAtMs - atMs > YEAR_MS) return
      const reply = { messageId: digest, role: 'ROLE_AGENT' as const, parts: [{ text }] }
      const sends = [{ key: digest, fingerprint: '', atMs, expiresAtMs: atMs + STORED_MS, reply }]
      for (let i = 0; i < MOST_CONTEXTS; i += 1) {
        const key = { ...OWNER, contextId: `${digest} ${i}` }
        const { commit: expected = 0, snapshot = '{}' } = (await store.loadContext(key, 0)) ?? {}
        const commit = { key, expected, atMs, snapshot, tasks: [], log: [], journal: [], sends, webhooks: [] }
        // If it was too late, another process has stored the same.
        const isWritten = await store.commit(commit).catch((error: unknown) => {
          if (error !== NOT_OWNER) throw error
          return undefined
        })
        if (isWritten !== undefined) return
      }
      throw NOT_OWNER
    }
  }
}

/** Reads definitions in a store that is open for reading. */
export function readDefinitionIn({ readSend }: Pick<Store, 'readSend'>): DefinitionStore['readDefinition'] {
  return async digest => {
    const row = await readSend(OWNER, digest)
    const [part] = row && 'reply' in row ? row.reply.parts : []
    return part && 'text' in part ? part.text : undefined
  }
}
