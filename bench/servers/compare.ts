import { fileURLToPath } from 'node:url'
import { openReader } from '../../adapters/cli/stores.ts'
import type { StoreReader } from '../../adapters/rows/store-reader.ts'
import { readLocalModules } from '../../adapters/testing/diff/local-modules.ts'
import { diffStored } from '../../adapters/testing/diff/stored-diff.ts'
import { defineAgent, setupWork } from '../../runtime/index.ts'
import { comparedAgent } from './compared-agent.ts'

/** The portions in which a comparison reads, after each of which the heap is measured. */
const PORTION = 200

/** What a process does with the open tasks of a file or database: it compares them, or only reads them. */
export interface CompareOptions {
  readonly db: string
  readonly compares: boolean
}

/** What it found, and what the process took from its start on. */
export interface Compared {
  readonly tasks: number
  /** Of a comparison, how many tasks have each verdict, and in how many configurations tasks are. */
  readonly verdicts: Readonly<Record<string, number>>
  readonly configurations: number
  readonly cpuMicros: number
  /** The largest heap after a portion, garbage included, and what was resident at most; in bytes. */
  readonly heap: number
  readonly rss: number
}

const { db, compares } = JSON.parse(process.argv[2] ?? '') as CompareOptions
let tasks = 0
let heap = 0
const logger = { warn: refuse, error: refuse }
const reader = await openReader(db, '.', logger)
const found = await (compares ? compare(reader) : read(reader))
await reader.close()
const { user, system } = process.cpuUsage()
const compared: Compared = {
  tasks,
  ...found,
  cpuMicros: user + system,
  heap,
  rss: process.resourceUsage().maxRSS * 1024
}
process.send?.(compared, () => process.disconnect())

async function compare(store: StoreReader): Promise<Pick<Compared, 'verdicts' | 'configurations'>> {
  const path = fileURLToPath(new URL('compared-agent.js', import.meta.url))
  const agent = comparedAgent({ defineAgent, setupWork }, { isEdited: true })
  const verdicts: Record<string, number> = {}
  const { definitions } = await diffStored(
    store,
    { agent, localModules: () => readLocalModules(path) },
    {
      signal: new AbortController().signal,
      onTask: ({ verdict }) => {
        verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
        count(1)
      }
    }
  )
  return { verdicts, configurations: definitions.reduce((sum, { groups }) => sum + groups.length, 0) }
}

async function read(store: StoreReader): Promise<Pick<Compared, 'verdicts' | 'configurations'>> {
  let next: string | undefined = ''
  while (next !== undefined) {
    const page = await store.openTasks(PORTION, next)
    count(page.tasks.length)
    next = page.next
  }
  return { verdicts: {}, configurations: 0 }
}

function count(more: number): void {
  tasks += more
  if (tasks % PORTION === 0) heap = Math.max(heap, process.memoryUsage().heapUsed)
}

/** Damaged tasks are no part of this. */
function refuse(message: string): void {
  throw new Error(message)
}
