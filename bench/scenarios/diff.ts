import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openReader } from '../../adapters/cli/stores.ts'
import { postgresStore } from '../../adapters/postgres/postgres.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { readLocalModules } from '../../adapters/testing/diff/local-modules.ts'
import { defineAgent, setupWork } from '../../runtime/index.ts'
import { createNode } from '../../runtime/runtime.ts'
import type { Store } from '../../runtime/store/store.ts'
import { PostgresServer } from '../../test/fixtures/stores/postgres.ts'
import { median } from '../figures.ts'
import { repeat } from '../load/load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import type { Compared, CompareOptions } from '../servers/compare.ts'
import { comparedAgent, CONFIGURATIONS, configurationOf } from '../servers/compared-agent.ts'
import { mebibytes, short, table, times, whole } from '../tables.ts'
import { quotients } from './tenants.ts'

const IN_FLIGHT = 128
const SILENT = { warn: () => undefined, error: () => undefined }

/** A process that compared or read all open tasks. */
type Round = Compared & { readonly wallMs: number }

/**
 * `taskchart diff --db`: the open tasks of a store compared with an agent whose code has changed, and read by the same
 * reader without that. Each in a fresh process, in turns.
 */
export async function diffTables({ openTasks, rounds }: Scale): Promise<{ title: string; rows: string }[]> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-bench-'))
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=256MB'], { onDisk: true })
  try {
    const file = join(folder, 'open.db')
    const stores = [
      { name: 'SQLite', db: file, open: () => sqliteStore(file, { logger: SILENT }) },
      { name: 'PostgreSQL', db: server.url(), open: () => postgresStore(server.url(), { logger: SILENT }) }
    ]
    const rows: string[][] = []
    for (const { name, db, open } of stores) {
      await fill(db, open, openTasks)
      const compared: Round[] = []
      const read: Round[] = []
      for (let round = 0; round < rounds; round += 1) {
        compared.push(await take({ db, compares: true }, openTasks))
        read.push(await take({ db, compares: false }, openTasks))
      }
      rows.push(rowOf(`${name}, compared`, compared, read), rowOf(`${name}, only read`, read, read))
    }
    const title = `diff --db: ${whole(openTasks)} open tasks in ${CONFIGURATIONS} configurations of a chart of 100 states`
    return [{ title, rows: table(HEADS, rows) }]
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

const HEADS = [
  'Store',
  's',
  'the longest',
  '× only read',
  'CPU s',
  '× only read',
  'heap at most, MiB',
  'resident at most, MiB'
]

function rowOf(name: string, rounds: readonly Round[], limit: readonly Round[]): string[] {
  const of = (member: keyof Round & ('wallMs' | 'cpuMicros' | 'heap' | 'rss'), all = rounds) =>
    all.map(round => round[member])
  return [
    name,
    short(median(of('wallMs')) / 1000),
    short(Math.max(...of('wallMs')) / 1000),
    times(median(quotients(of('wallMs'), of('wallMs', limit)))),
    short(median(of('cpuMicros')) / 1e6),
    times(median(quotients(of('cpuMicros'), of('cpuMicros', limit)))),
    mebibytes(median(of('heap'))),
    mebibytes(median(of('rss')))
  ]
}

/** Runs a process to its end. Throws Error if it did not get all tasks, or did not compare each in its configuration. */
async function take(options: CompareOptions, expected: number): Promise<Round> {
  const beganMs = performance.now()
  const child = fork(new URL('../servers/compare.js', import.meta.url), [JSON.stringify(options)], {
    execPath: ServerProcess.node,
    env: { ...process.env, NODE_ENV: 'production' }
  })
  const exited = once(child, 'exit')
  const told = once(child, 'message') as Promise<[Compared]>
  const [code] = await exited
  const wallMs = performance.now() - beganMs
  if (code !== 0) throw new Error(`A comparison ended with code ${String(code)}.`)
  const [compared] = await told
  const { tasks, verdicts, configurations } = compared
  const isRight = !options.compares || (verdicts['depends'] === expected && configurations === CONFIGURATIONS)
  if (tasks !== expected || !isRight) throw new Error(`A comparison went wrong: ${JSON.stringify(compared)}`)
  return { ...compared, wallMs }
}

/** Has the agent open a task, and stores others like it, each in the next configuration. */
async function fill(db: string, open: () => Store | Promise<Store>, count: number): Promise<void> {
  const path = fileURLToPath(new URL('../servers/compared-agent.js', import.meta.url))
  const runtime = createNode({
    agent: comparedAgent({ defineAgent, setupWork }),
    store: await open(),
    logger: SILENT,
    localModules: () => readLocalModules(path)
  })
  await runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'begin' }] } })
  await runtime.close()
  const reader = await openReader(db, '.', SILENT)
  const {
    tasks: [first]
  } = await reader.openTasks(1, '')
  await reader.close()
  if (first?.snapshot === undefined) throw new Error('The agent has not stored its task.')
  const { taskId: itsId, contextId: itsContext, snapshot, state, tenant, principal } = first
  const store = await open()
  let made = 0
  await repeat(count - 1, IN_FLIGHT, async () => {
    made += 1
    const [taskId, contextId] = [`t${made}`, `c${made}`]
    const saved = JSON.parse(snapshot.replaceAll(itsId, taskId).replaceAll(itsContext, contextId)) as {
      readonly children: { readonly work: { readonly snapshot: object } }
    }
    Object.assign(saved.children.work.snapshot, { value: configurationOf(made) })
    await store.commit({
      key: { tenant, principal, contextId },
      expected: 0,
      atMs: made,
      snapshot: '{}',
      tasks: [{ taskId, snapshot: JSON.stringify(saved), state, generation: 2 }],
      log: [
        { message: { messageId: `m${made}`, role: 'ROLE_USER', parts: [] }, taskId, generation: 1, isNumbered: true },
        { taskId, generation: 2, update: { statusUpdate: { taskId, contextId, status: { state } } } }
      ],
      journal: [],
      sends: [],
      webhooks: []
    })
  })
  await store.close()
}
