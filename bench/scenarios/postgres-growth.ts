import { readFileSync } from 'node:fs'
import { postgresStore } from '../../adapters/postgres/postgres.ts'
import type { Store } from '../../runtime/store/store.ts'
import { onDatabase, PostgresServer } from '../../test/fixtures/stores/postgres.ts'
import { ending, opening, quiet, scope } from '../../test/fixtures/stores/stored-tasks.ts'
import { repeat } from '../load/load.ts'
import { median } from '../figures.ts'
import type { Scale } from '../scale.ts'
import { percent, short, table, whole } from '../tables.ts'

/** Commits in flight, the parts of the growth that are compared, and the lists that are timed after each. */
const IN_FLIGHT = 128
const PARTS = 10
const LISTS = 40

/**
 * How often a sweep and none alternate, for how long each, and how long after the change the commits are not counted.
 */
const TURNS = 40
const TURN_MS = 700
const SETTLE_MS = 150

/** Stored tasks are of this time and the next milliseconds, and the others of a later one. */
const OLD_MS = 1000
const NEW_MS = 1e12

/** CPU time comes in ticks of 10 ms. */
const TICK_MICROS = 10_000

/**
 * A database that grows from nothing, without ANALYZE by hand: commits and lists must not get slower. Then a sweep
 * beside commits. The store is loaded in this process, without a server.
 */
export async function postgresGrowthTables({ storedTasks }: Scale): Promise<{ title: string; rows: string }[]> {
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=256MB'], { onDisk: true })
  try {
    const url = server.url()
    const store = await postgresStore(url, { logger: quiet().logger })
    const tables = [
      {
        title: `PostgreSQL: growing to ${whole(storedTasks)} tasks of one caller, ${IN_FLIGHT} commits in flight`,
        rows: await growthRows(store, url, storedTasks)
      },
      { title: 'PostgreSQL: commits beside a sweep, 32 in flight', rows: await sweepRows(store, url) }
    ]
    await store.close()
    return tables
  } finally {
    await server.stop()
  }
}

async function put(store: Store, taskId: string, atMs: number): Promise<void> {
  const at = { text: 'x'.repeat(200), atMs }
  await store.commit(opening(taskId, at))
  await store.commit(ending(taskId, at))
}

async function growthRows(store: Store, url: string, storedTasks: number): Promise<string> {
  const rows: string[][] = []
  let count = 0
  for (let part = 1; part <= PARTS; part += 1) {
    const began = { ms: performance.now(), micros: await writerMicros(url) }
    const added = storedTasks / PARTS
    await repeat(added, IN_FLIGHT, () => put(store, `t${(count += 1)}`, OLD_MS + count))
    const seconds = (performance.now() - began.ms) / 1000
    const micros = (await writerMicros(url)) - began.micros
    const [size] = await onDatabase(
      url,
      `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relnamespace = 'taskchart'::regnamespace AND relkind = 'r'`
    )
    rows.push([
      whole(count),
      whole(added / seconds),
      short(micros / added),
      short(await listMs(store)),
      short(Number(size?.bytes) / count / 1000)
    ])
  }
  return table(['Tasks', 'tasks/s', 'CPU µs/task of the writing session', 'ListTasks of 50, p50 ms', 'kB/task'], rows)
}

async function listMs(store: Store): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < LISTS; i += 1) {
    const beganMs = performance.now()
    await store.listTasks(scope, { limit: 50 })
    times.push(performance.now() - beganMs)
  }
  return median(times)
}

async function writerMicros(url: string): Promise<number> {
  const [writer] = await onDatabase(url, `SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND granted`)
  const [, fields = ''] = readFileSync(`/proc/${String(writer?.pid)}/stat`, 'utf8').split(') ')
  const [user, system] = fields.split(' ').slice(11, 13).map(Number)
  return (Number(user) + Number(system)) * TICK_MICROS
}

async function sweepRows(store: Store, url: string): Promise<string> {
  const state = { isOver: false, isSweeping: false, commits: 0, swept: 0, count: 0 }
  const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
  const lanes = Array.from({ length: 32 }, async () => {
    while (!state.isOver) {
      await put(store, `n${(state.count += 1)}`, NEW_MS)
      state.commits += 2
    }
  })
  const sweeping = (async () => {
    while (!state.isOver) {
      if (state.isSweeping)
        state.swept += await store.sweep({ endedBeforeMs: NEW_MS, idleBeforeMs: -Infinity, sendsBeforeMs: 0 }, 256)
      else await pause(1)
    }
  })()
  const rates: { alone: number; beside: number; swept: number }[] = []
  let mostDead = 0
  for (let turn = 0; turn < TURNS; turn += 1) {
    const measured = async () => {
      await pause(SETTLE_MS)
      const began = { ...state, ms: performance.now() }
      await pause(TURN_MS)
      const seconds = (performance.now() - began.ms) / 1000
      return { commits: (state.commits - began.commits) / seconds, swept: (state.swept - began.swept) / seconds }
    }
    state.isSweeping = false
    const { commits: alone } = await measured()
    state.isSweeping = true
    const { commits: beside, swept } = await measured()
    rates.push({ alone, beside, swept })
    const [dead] = await onDatabase(
      url,
      `SELECT sum(n_dead_tup) AS rows FROM pg_stat_user_tables WHERE schemaname = 'taskchart'`
    )
    mostDead = Math.max(mostDead, Number(dead?.rows))
  }
  state.isOver = true
  await Promise.all([...lanes, sweeping])
  const of = (rate: (rates: { alone: number; beside: number; swept: number }) => number) => median(rates.map(rate))
  return table(
    ['', 'commits/s', 'commits/s beside a sweep', 'part', 'tasks swept/s', 'dead rows at most'],
    [
      [
        'median',
        whole(of(({ alone }) => alone)),
        whole(of(({ beside }) => beside)),
        percent(of(({ alone, beside }) => beside / alone)),
        whole(of(({ swept }) => swept)),
        whole(mostDead)
      ]
    ]
  )
}
