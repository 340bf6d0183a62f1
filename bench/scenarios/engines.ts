import { PostgresServer } from '../../test/fixtures/stores/postgres.ts'
import { completed, resulting } from '../checks.ts'
import { oursHttp, type Contender } from '../contenders.ts'
import { DBOS, installEngine, RESTATE, type EnginePackages } from '../engine-packages.ts'
import { figuresOf } from '../figures.ts'
import { httpLoad, postLoad } from '../load/http-load.ts'
import { repeat, type Load } from '../load/load.ts'
import { run, type Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { machineOf, today } from '../surroundings.ts'
import { percent, short, table, times, whole } from '../tables.ts'
import { messageParams } from './message.ts'

/** How much less the races of synced engines do than those in memory. */
const FEWER = 2

/** An engine that could not be installed, and why. */
interface Missing {
  readonly name: string
  readonly reason: string
}

/**
 * A workflow of two steps and a result, where each step is durable before the next one begins: taskchart beside engines
 * of durable workflows. All of them are asked over HTTP, and share the cores and the disk. An engine that cannot be
 * installed has a row that says why.
 */
export async function engineTables({
  requests,
  requestRounds,
  warmUps
}: Scale): Promise<{ title: string; rows: string }[]> {
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=256MB'], { onDisk: true })
  try {
    const database = server.url()
    const ours = { ...oursHttp, load: checkedBy(completed, httpLoad) }
    const found = [
      { ...ours, name: 'taskchart, PostgreSQL', options: { database } },
      { ...ours, name: 'taskchart, SQLite', options: { durable: true } },
      await engineOf(DBOS, { file: 'dbos', pathOf: () => '/', options: { database } }),
      await engineOf(RESTATE, { file: 'restate', pathOf: params => `/work/${messageIdIn(params)}/run`, options: {} })
    ]
    const contenders = found.filter(isContender)
    const dbos = contenders.find(({ file }) => file === 'dbos')
    const missing = found.filter((one): one is Missing => !isContender(one))
    const where = `${today()}, ${machineOf(ServerProcess.node)}.`
    const tables: { title: string; rows: string }[] = []
    const rates = new Map<string, string[]>(contenders.map(({ name }) => [name, []]))
    for (const inFlight of [1, 16, 64]) {
      const race: Race = {
        title: `Engines: a workflow of two steps and a result, ${inFlight} in flight`,
        unit: 'task',
        contenders,
        ...(dbos && { baseline: { contender: dbos, name: 'DBOS' } }),
        work: 'steps',
        inFlight,
        rounds: Math.ceil(requestRounds / FEWER),
        times: inFlight === 1 ? requests / 10 : requests / FEWER,
        warmUp: load => repeat(warmUps / (inFlight === 1 ? 8 : 4), inFlight, () => send(load)),
        begin: async load => {
          await repeat(inFlight, inFlight, () => send(load))
          return async () => {
            await send(load)
            return 1
          }
        }
      }
      const figures = figuresOf(await run(race), race)
      for (const { name, rate, timesAsFast } of figures) rates.get(name)?.push(`${whole(rate)}, ${times(timesAsFast)}`)
      tables.push({
        title: race.title,
        rows: table(
          ['Engine', 'ms/task', 'tasks/s', 'spread', '× DBOS, rate', 'busy: load'],
          [
            ...figures.map(({ name, wallMs, rate, spread, timesAsFast, loadBusy }) => [
              name,
              short(wallMs * inFlight),
              whole(rate),
              percent(spread),
              times(timesAsFast),
              percent(loadBusy)
            ]),
            ...missing.map(({ name, reason }) => [`${name}: ${reason}`, '–', '–', '–', '–', '–'])
          ]
        )
      })
    }
    const summary = table(
      ['tasks/s, × DBOS', '1 in flight', '16 in flight', '64 in flight'],
      [
        ...Array.from(rates, ([name, cells]) => [name, ...cells]),
        ...missing.map(({ name, reason }) => [`${name}: ${reason}`, '–', '–', '–'])
      ]
    )
    return [{ title: 'Engines: a workflow of two steps and a result', rows: `${summary}\n\n${where}` }, ...tables]
  } finally {
    await server.stop()
  }
}

/** An engine that is asked by posting to a path, once its packages are there. */
async function engineOf(
  packages: EnginePackages,
  {
    file,
    pathOf,
    options
  }: { readonly file: string; readonly pathOf: (params: unknown) => string; readonly options: object }
): Promise<Contender | Missing> {
  const { name } = packages
  try {
    const engine = await installEngine(packages)
    const load = checkedBy(resulting, (port, inFlight) => postLoad(port, inFlight, pathOf))
    return { name, file, load, options: { ...options, engine } }
  } catch (error) {
    return { name, reason: `not installed, ${reasonOf((error as Error).message)}` }
  }
}

/** The code that npm names, or else the first line. */
function reasonOf(text: string): string {
  return /^npm error code (\S+)/m.exec(text)?.[1] ?? text.split('\n', 1).join('')
}

function isContender(one: Contender | Missing): one is Contender {
  return 'load' in one
}

/** A load whose every answer is checked. */
function checkedBy(check: (answer: string) => string, load: Contender['load']): Contender['load'] {
  return async (port, inFlight) => {
    const raw = await load(port, inFlight)
    return { ...raw, call: async (method, params) => check(await raw.call(method, params)) }
  }
}

function messageIdIn(params: unknown): string {
  return (params as { readonly message: { readonly messageId: string } }).message.messageId
}

async function send(load: Load): Promise<void> {
  await load.call('SendMessage', messageParams({ kind: 'artifact' }))
}
